"""Pages and parts of them as templates of Jinja2, in which every text is escaped."""

from functools import cache
from typing import TYPE_CHECKING, Any

from lgf.expression.print import format_number
from lgf.runs.percentages import percentage

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **values: Any) -> str:
    """The HTML of a template with these values."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined  # imported late: most commands write no page

    environment = Environment(
        loader=PackageLoader("lgf.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=StrictUndefined,
    )  # fmt: skip
    environment.filters["number"] = format_number
    environment.filters["percent"] = lambda share: "" if share is None else percentage(share)
    return environment
