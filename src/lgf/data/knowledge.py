"""Knowledge about a system before the search; every field may be unknown."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lgf.errors import LgfError, quoted
from lgf.expression.frame import HIGHEST_ORDER, check_name
from lgf.expression.functions import FUNCTIONS
from lgf.solver.forcing import Forcing

SIGNS = {"positive": (0.0, math.inf), "negative": (-math.inf, 0.0)}

Bounds = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Prior knowledge about a system; None means unknown.

    order        of the highest derivative, for all states or by state
    stable       the system returns to rest, or stays bounded
    autonomous   time does not appear outside the inputs
    forced       whether a known input drives the system; False says that none does
    inputs       the known inputs common to all experiments, by name
    functions    the only functions allowed, of sin cos exp log sqrt abs tanh
    variables    the only variables allowed in a term, such as ("u", "u'", "t")
    bounds       term -> (low, high) or a sign in words, for the coefficient of that term: {"u^3": "positive"}
    constants    the same for every other constant
    required     terms that must stand in the equation, such as ("u^3",)
    """

    order: int | Mapping[str, int] | None = None
    stable: bool | None = None
    autonomous: bool | None = None
    forced: bool | None = None
    inputs: Mapping[str, Forcing] = field(default_factory=dict)
    functions: tuple[str, ...] | None = None
    variables: tuple[str, ...] | None = None
    bounds: Mapping[str, Bounds] | None = None
    constants: Bounds | None = None
    required: tuple[str, ...] | None = None

    def __post_init__(self):
        set_ = object.__setattr__
        if isinstance(self.order, Mapping):
            set_(self, "order", {str(name): _order(order) for name, order in self.order.items()})
        elif self.order is not None:
            set_(self, "order", _order(self.order))
        for name in ("stable", "autonomous", "forced"):
            if getattr(self, name) not in (None, True, False):
                raise LgfError(f"{name} is {quoted(getattr(self, name))}; say True, False, or None for unknown.")
        set_(self, "inputs", dict(self.inputs or {}))
        for name, forcing in self.inputs.items():
            check_name(name)
            if not isinstance(forcing, Forcing):
                raise LgfError(f"the input {name} is a {type(forcing).__name__}; make it a Forcing first.")
        if self.inputs:
            if self.forced is False:
                raise LgfError("a forcing is given but the system is said to be unforced; drop one of the two.")
            set_(self, "forced", True)
        if self.functions is not None:
            set_(self, "functions", _functions(self.functions))
        if self.variables is not None:
            set_(self, "variables", _variables(self.variables))
        if self.constants is not None:
            set_(self, "constants", _bounds("every constant", self.constants))
        if self.bounds is not None:
            if not isinstance(self.bounds, Mapping):
                raise LgfError('bounds map a term to (low, high) or to a sign: {"u^3": "positive"}.')
            set_(self, "bounds", {_term(k): _bounds(k, v) for k, v in self.bounds.items()})
        if self.required is not None:
            set_(self, "required", tuple(_term(term) for term in _texts(self.required, "required terms")))

    def order_of(self, state: str) -> int | None:
        """The known order of this state, or None."""
        return self.order.get(state) if isinstance(self.order, Mapping) else self.order

    def describe(self) -> tuple[str, ...]:
        """One plain sentence for each piece of knowledge; empty when nothing is known."""
        sentences: list[str] = []
        if isinstance(self.order, Mapping):
            sentences += [f"The equation of {name} is of order {order}." for name, order in self.order.items()]
        elif self.order is not None:
            sentences.append(f"The equation is of order {self.order}.")
        if self.stable is not None:
            sentences.append("The system is stable." if self.stable else "The system is not stable.")
        if self.autonomous is not None:
            sentences.append(
                "Time does not appear by itself." if self.autonomous else "Time appears by itself in the equation."
            )
        for name, forcing in self.inputs.items():
            sentences.append(f"The system is driven by {name} = {forcing.describe()}.")
        if not self.inputs and self.forced is not None:
            sentences.append("A known input drives the system." if self.forced else "No input drives the system.")
        if self.functions is not None:
            sentences.append(f"Functions allowed: {', '.join(self.functions) or 'none'}.")
        if self.variables is not None:
            sentences.append(f"Variables allowed: {', '.join(self.variables)}.")
        for term, (low, high) in (self.bounds or {}).items():
            sentences.append(f"The coefficient of {term} {_in_words(low, high)}.")
        if self.constants is not None:
            sentences.append(f"Every other constant {_in_words(*self.constants)}.")
        if self.required:
            sentences.append(f"Terms that must be there: {', '.join(self.required)}.")
        return tuple(sentences)


def _order(order: Any) -> int:
    if isinstance(order, (bool, str)) or not hasattr(order, "__index__") or not 1 <= order <= HIGHEST_ORDER:
        raise LgfError(f"order is {quoted(order)}; give a whole number from 1 to {HIGHEST_ORDER}, or None for unknown.")
    return int(order)


def _texts(texts: Any, what: str) -> tuple[str, ...]:
    sequence = tuple(texts) if isinstance(texts, Iterable) and not isinstance(texts, str) else (texts,)
    if not all(isinstance(text, str) for text in sequence):
        raise LgfError(f"{what} are given as text, but got {quoted(texts)}.")
    return sequence


def _functions(functions: object) -> tuple[str, ...]:
    names = _texts(functions, "functions")
    for name in names:
        if name not in FUNCTIONS:
            raise LgfError(f"the function {quoted(name)} is not known; choose from {', '.join(FUNCTIONS)}.")
    return names


def _variables(variables: object) -> tuple[str, ...]:
    names = _texts(variables, "variables")
    if not names:
        raise LgfError("no variable is allowed; name at least one, such as t or u.")
    return names


def _term(term: object) -> str:
    if not isinstance(term, str) or not term.strip():
        raise LgfError(f'a term is given as text such as "u^3", but got {quoted(term)}.')
    return term.strip()


def _bounds(term: object, bounds: Any) -> Bounds:
    if isinstance(bounds, str):
        if bounds not in SIGNS:
            raise LgfError(
                f"the bounds of {quoted(term)} are {quoted(bounds)}; say {', '.join(SIGNS)}, or give (low, high)."
            )
        return SIGNS[bounds]
    try:
        low, high = (float(x) for x in bounds)
    except (TypeError, ValueError) as error:
        raise LgfError(
            f"the bounds of {quoted(term)} are {quoted(bounds)}; give (low, high) or a sign in words."
        ) from error
    if math.isnan(low) or math.isnan(high) or low > high:
        raise LgfError(
            f"the bounds of {quoted(term)} are ({low:g}, {high:g}); the low one must not exceed the high one."
        )
    return low, high


def _in_words(low: float, high: float) -> str:
    if (low, high) == SIGNS["positive"]:
        return "is positive"
    if (low, high) == SIGNS["negative"]:
        return "is negative"
    return f"lies between {low:g} and {high:g}"
