"""Conversion to SymPy, for the paper's complexity and for users of SymPy."""

from typing import TYPE_CHECKING, Any

from lgf.expression.functions import FUNCTIONS
from lgf.expression.tree import Expression

if TYPE_CHECKING:
    import sympy


def to_sympy(expression: Expression) -> "sympy.Expr":
    """The expression in SymPy: u(t), Derivative(u(t), (t, n)), and C0, C1, ... for open constants."""
    import sympy  # takes a third of a second

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
