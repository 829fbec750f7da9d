"""Conversion to and from SymPy, for simplification, for the paper's complexity and for users of SymPy.

The functions import SymPy when they are called, because the import takes a third of a second.
"""

from typing import TYPE_CHECKING, Any

from lgf.errors import LgfError
from lgf.expression.frame import Frame
from lgf.expression.functions import FUNCTIONS
from lgf.expression.tree import SIGNAL, Expression, add, constant, function, mul, number, power, signal, symbol

if TYPE_CHECKING:
    import sympy


def to_sympy(expression: Expression) -> "sympy.Expr":
    """The expression in SymPy: u(t), Derivative(u(t), (t, n)), and C0, C1, ... for open constants."""
    import sympy

    t = sympy.Symbol("t")
    functions = {name: getattr(sympy, entry.sympy) for name, entry in FUNCTIONS.items()}

    def convert(e: Expression) -> Any:
        if e.head == "number":
            return sympy.Integer(int(e.args[0])) if e.args[0].is_integer() else sympy.Float(e.args[0])
        if e.head == "constant":
            return sympy.Symbol(f"C{e.args[0]}")
        if e.head == "symbol":
            name, derivative = e.args
            if name == "t":
                return t
            applied = sympy.Function(name)(t)
            return sympy.Derivative(applied, (t, derivative)) if derivative > 0 else applied
        parts = [convert(a) for a in e.args]
        if e.head == "+":
            return sympy.Add(*parts)
        if e.head == "*":
            return sympy.Mul(*parts)
        if e.head == "^":
            return sympy.Pow(*parts)
        return functions[e.head](*parts)

    return convert(expression)


def from_sympy(expression: "sympy.Expr", frame: Frame | None = None) -> Expression:
    """The SymPy expression as an Expression; LgfError if it holds something that has no counterpart here.

    Without a frame u, x0, x1, ... are states and F is an input.
    """
    import sympy
    from sympy.core.function import AppliedUndef

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
