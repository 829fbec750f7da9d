"""Conversion from SymPy, in which formulas of benchmarks are written or differentiated."""

from typing import Any

import sympy
from sympy.core.function import AppliedUndef

from lgf.errors import LgfError
from lgf.expression.frame import Frame
from lgf.expression.functions import FUNCTIONS
from lgf.expression.tree import SIGNAL, Expression, add, constant, function, mul, number, power, signal, symbol


def from_sympy(expression: sympy.Expr, frame: Frame | None = None) -> Expression:
    """The SymPy expression as an Expression; LgfError if it holds something that has no counterpart here.

    Without a frame u, x0, x1, ... are states and F is an input.
    """
    names_by_sympy = {entry.sympy: name for name, entry in FUNCTIONS.items()}

    def convert(e: Any) -> Expression:
        if isinstance(e, sympy.Derivative):
            state = convert(e.expr)
            if state.head != "symbol" or state.args[1] == SIGNAL or any(v.name != "t" for v in e.variables):
                raise LgfError(f"{e} is not the time derivative of a state; write Derivative(u(t), (t, n))")
            return symbol(state.args[0], state.args[1] + len(e.variables))
        if e.is_number and e.is_real:
            return number(float(e))
        if isinstance(e, sympy.Symbol | AppliedUndef):
            return _named(e.name if isinstance(e, sympy.Symbol) else e.func.__name__, frame)
        parts = tuple(convert(a) for a in e.args)
        if isinstance(e, sympy.Add):
            return add(*parts)
        if isinstance(e, sympy.Mul):
            return mul(*parts)
        if isinstance(e, sympy.Pow):
            return function("sqrt", parts[0]) if e.exp == sympy.Rational(1, 2) else power(*parts)
        name = type(e).__name__
        if len(parts) != 1:
            raise LgfError(f"the SymPy node {name} has no counterpart here")
        return function(names_by_sympy.get(name, name), parts[0])

    return convert(expression)


def _named(name: str, frame: Frame | None) -> Expression:
    if name == "t" or name in (("F",) if frame is None else frame.inputs):
        return signal(name)
    if name == "u" or (name[:1] == "x" and name[1:].isdigit()) if frame is None else name in frame.names:
        return symbol(name)
    if name[:1] == "C" and name[1:].isdigit():
        return constant(int(name[1:]))
    names = "t, F, u, x0, x1, ..." if frame is None else ", ".join(("t", *frame.inputs, *frame.names))
    raise LgfError(f"the name {name!r} is not known; known are {names} and C0, C1, ...")
