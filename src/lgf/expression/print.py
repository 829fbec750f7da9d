"""Expression -> text: plain text that reads back exactly, text for people, LaTeX, and Python source."""

import math
from collections.abc import Sequence

from lgf.expression.tree import MINUS_ONE, Expression, number, symbol


def format_number(value: float, error: float | None = None) -> str:
    """The number for people: to two digits of its standard error if that is known, else to four digits.

    >>> format_number(4.98765, 0.0321), format_number(4.98765), format_number(5.0), format_number(25.0)
    ('4.988', '4.988', '5.0', '25')
    """
    if not math.isfinite(value):
        return repr(value)
    if error is not None and math.isfinite(error) and error > 0.0 and value != 0.0:
        digits = math.floor(math.log10(abs(value))) - math.floor(math.log10(error)) + 2
        text = f"{value:#.{min(max(digits, 1), 15)}g}".rstrip(".").replace(".e", "e")
        if "e" in text and 1e-4 <= abs(value) < 1e15:
            text = f"{float(text):.0f}"
        return text
    text = f"{value:.4g}"
    return text if abs(value) >= 10.0 or not text.lstrip("-").isdigit() else text + ".0"


def exact_number(value: float) -> str:
    """The shortest text that reads back as this number."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def plain(expression: Expression, constants: Sequence[str] | None = None) -> str:
    """Plain text, C0, C1, ... for open constants (or the given texts); without these it reads back as the same tree."""
    return _Plain(constants).text(expression)


def display(expression: Expression, values: Sequence[float] = (), errors: Sequence[float] | None = None) -> str:
    """Text for people: rounded numbers, `5.0 u''` for a coefficient; it too can be read, but not back to the same."""
    return _Display(values, errors).text(expression)


def latex(expression: Expression, values: Sequence[float] | None = None, errors: Sequence[float] | None = None) -> str:
    """LaTeX, with dots for derivatives; open constants are C_0, C_1, ... unless values are given."""
    return _Latex(values, errors).text(expression)


def python_function(explicit: Expression | None, residual: Expression, order: int, note: str) -> str:
    """Source of a Python module (NumPy only) with one function, for use away from this package.

    If the highest derivative is known explicitly it is `rhs(t, y)` for scipy.integrate.solve_ivp, else the
    `residual(t, y)`, which is zero where the equation holds; both take a function F if the forcing is open.
    """
    result = residual if explicit is None else explicit
    forced = ", F" if symbol("F") in result.nodes() else ""
    states = ", ".join("u" + "'" * i for i in range(order + (explicit is None)))
    formula = _Python().text(result)
    if explicit is None:
        name, meaning, value = "residual", "Zero where the equation holds", formula
    else:
        name, meaning = "rhs", "Time derivative of y, for scipy.integrate.solve_ivp"
        value = "[" + ", ".join([*(f"y[{i}]" for i in range(1, order)), formula]) + "]"
    lines = [
        "import numpy as np",
        "",
        "",
        f"def {name}(t, y{forced}):",
        f'    """{meaning}; y = [{states}].',
        "",
    ]
    lines += [f"    {note}", '    """', f"    return {value}", ""]
    return "\n".join(lines)


class _Plain:
    """Walks a tree once; what differs between the kinds of text is in the small methods."""

    times = "*"
    raised = "^"

    def __init__(self, constants: Sequence[str] | None = None):
        self.constants = constants

    def text(self, e: Expression) -> str:
        head = e.head
        if head == "number":
            return self.number(e.args[0])
        if head == "constant":
            return self.constant(e.args[0])
        if head == "symbol":
            return self.symbol(*e.args)
        if head == "+":
            return self.sum(e)
        if head == "*":
            return self.product(e)
        if head == "^":
            return self.power(*e.args)
        return self.function(head, e.args[0])

    def number(self, value: float) -> str:
        return exact_number(value)

    def constant(self, index: int) -> str:
        return f"C{index}" if self.constants is None else self.constants[index]

    def symbol(self, name: str, derivative: int) -> str:
        return name + "'" * derivative

    def function(self, name: str, argument: Expression) -> str:
        return f"{name}({self.text(argument)})"

    def parentheses(self, text: str) -> str:
        return f"({text})"

    def sum(self, e: Expression) -> str:
        first, *others = (self.text(a) for a in e.args)
        return first + "".join(f" - {text[1:]}" if text.startswith("-") else f" + {text}" for text in others)

    def is_divisor(self, e: Expression) -> bool:
        """Whether the factor is written behind a `/`: a negative whole power; a number's are folded, but for 1/0."""
        if e.head != "^" or e.args[1].head != "number":
            return False
        exponent = e.args[1].args[0]
        return exponent == -1.0 or (exponent < 0.0 and exponent.is_integer() and e.args[0].head != "number")

    def inverse(self, e: Expression) -> Expression:
        base, exponent = e.args
        return base if exponent.args[0] == -1.0 else Expression("^", (base, number(-exponent.args[0])))

    def factor(self, e: Expression, first: bool = False) -> str:
        """The text of a factor, in parentheses where it would be read otherwise."""
        text = self.text(e)
        return self.parentheses(text) if e.head in "+*" or (text.startswith("-") and not first) else text

    def product(self, e: Expression) -> str:
        text = ""
        for i, a in enumerate(e.args):
            if i == 0 and a == MINUS_ONE and not self.is_divisor(e.args[1]):
                text = "-"
            elif self.is_divisor(a):
                text = (text or "1") + "/" + self.factor(self.inverse(a))
            elif text in ("", "-"):
                text += self.factor(a, first=not text)
            else:
                text += self.times + self.factor(a)
        return text

    def power(self, base: Expression, exponent: Expression) -> str:
        whole = Expression("^", (base, exponent))
        if self.is_divisor(whole):
            return "1/" + self.factor(self.inverse(whole))
        below, above = self.text(base), self.text(exponent)
        if base.head in ("+", "*", "^") or below.startswith("-"):
            below = self.parentheses(below)
        if exponent.head in ("+", "*", "^") or above.startswith("-"):
            above = self.parentheses(above)
        return f"{below}{self.raised}{above}"


class _Display(_Plain):
    """For people: constants have values, numbers and constants of a product are one coefficient."""

    def __init__(self, values: Sequence[float] = (), errors: Sequence[float] | None = None):
        super().__init__()
        self.values, self.errors = values, errors

    def number(self, value: float) -> str:
        return format_number(value) if not value.is_integer() or abs(value) >= 1e15 else exact_number(value)

    def constant(self, index: int) -> str:
        return format_number(self.values[index], None if self.errors is None else self.errors[index])

    def product(self, e: Expression) -> str:
        numbers = [a for a in e.args if a.head in ("number", "constant")]
        others: list[Expression] = [a for a in e.args if a.head not in ("number", "constant")]
        if len(numbers) > 1 and others:
            value = math.prod(a.args[0] if a.head == "number" else self.values[a.args[0]] for a in numbers)
            coefficient = format_number(value)
        elif numbers and others and numbers[0] != MINUS_ONE:
            coefficient = self.text(numbers[0])
        else:
            return super().product(e)
        rest = super().product(Expression("*", tuple(others))) if len(others) > 1 else self.factor(others[0])
        if rest.startswith("1/"):
            return coefficient + rest[1:]
        return f"{coefficient} {rest}" if rest[0].isalpha() else f"{coefficient}*{rest}"


class _Latex(_Display):
    """LaTeX: fractions, dots, e^{...}."""

    times = r" \, "

    def __init__(self, values: Sequence[float] | None = None, errors: Sequence[float] | None = None):
        super().__init__(values or (), errors)
        self.open = values is None

    def number(self, value: float) -> str:
        return self.scientific(super().number(value))

    def constant(self, index: int) -> str:
        return f"C_{{{index}}}" if self.open else self.scientific(super().constant(index))

    def scientific(self, text: str) -> str:
        digits, _, exponent = text.partition("e")
        return rf"{digits} \cdot 10^{{{int(exponent)}}}" if exponent else digits

    def symbol(self, name: str, derivative: int) -> str:
        name = f"x_{{{name[1:]}}}" if name.startswith("x") else name
        if derivative == 0:
            return name
        if derivative > 2:
            return f"{name}^{{({derivative})}}"
        return ("\\dot{" if derivative == 1 else "\\ddot{") + name + "}"

    def parentheses(self, text: str) -> str:
        return rf"\left({text}\right)"

    def function(self, name: str, argument: Expression) -> str:
        inside = self.text(argument)
        if name == "exp":
            return f"e^{{{inside}}}"
        if name == "sqrt":
            return rf"\sqrt{{{inside}}}"
        if name == "abs":
            return rf"\left|{inside}\right|"
        return rf"\{name}{self.parentheses(inside)}"

    def product(self, e: Expression) -> str:
        below = [self.inverse(a) for a in e.args if self.is_divisor(a)]
        above = [a for a in e.args if not self.is_divisor(a)]
        sign = ""
        if above and above[0] == MINUS_ONE:
            sign, above = "-", above[1:]
        numerator = self.factors(above)
        if not below:
            return sign + numerator
        if numerator.startswith("-"):
            sign, numerator = "-", numerator[1:]
        return sign + rf"\frac{{{numerator or '1'}}}{{{self.factors(below)}}}"

    def factors(self, factors: list[Expression]) -> str:
        if len(factors) == 1:
            return self.text(factors[0])
        return self.times.join(self.factor(a, first=i == 0) for i, a in enumerate(factors))

    def power(self, base: Expression, exponent: Expression) -> str:
        whole = Expression("^", (base, exponent))
        if self.is_divisor(whole):
            return rf"\frac{{1}}{{{self.text(self.inverse(whole))}}}"
        below = self.text(base)
        # a derivative or a function already carries a mark of its own where the exponent would go
        bare = base.head in ("sqrt", "abs") or (base.head in ("number", "constant") and not below.startswith("-"))
        if not bare and not (base.head == "symbol" and base.args[1] < 3 and not base.args[0].startswith("x")):
            below = self.parentheses(below)
        return f"{below}^{{{self.text(exponent)}}}"


class _Python(_Plain):
    """A Python expression over np, t, F(t) and the state vector y = [u, u', ...]."""

    raised = "**"

    def symbol(self, name: str, derivative: int) -> str:
        return f"y[{derivative}]" if name == "u" else "F(t)" if name == "F" else name

    def function(self, name: str, argument: Expression) -> str:
        return f"np.{super().function(name, argument)}"
