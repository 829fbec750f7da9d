"""Labels of axes: the name of a quantity with its unit."""

from lgf.equation.dimensions import quantity_units
from lgf.equation.units import unit_pretty
from lgf.expression.frame import Variable
from lgf.runs.request import Run


def axis_label(run: Run, quantity: Variable | str) -> str:
    """The name of time, a variable or an input, with its unit if that is known: u [m]."""
    units = run.request.problem.units
    known = quantity_units(units, run.frame.columns, run.frame.inputs).get(str(quantity)) if units else None
    return f"{quantity} [{unit_pretty(known)}]" if known else str(quantity)
