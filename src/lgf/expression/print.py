"""Printing of expressions: plain text that reads back exactly, text for people, LaTeX, and Python source."""

import keyword
import math
import re
from collections.abc import Sequence

from lgf.expression.frame import Frame, Variable
from lgf.expression.functions import FUNCTIONS
from lgf.expression.tree import MINUS_ONE, SIGNAL, Expression, number

MOST_DIGITS = 10  # of a number with a standard error; an unstable equation may determine its constants to 15


def format_number(value: float, error: float | None = None) -> str:
    """The number for people: to two digits of its standard error if that is known, else to four digits.

    >>> format_number(4.98765, 0.0321), format_number(4.98765), format_number(5.0), format_number(25.0)
    ('4.988', '4.988', '5.0', '25')
    """
    if not math.isfinite(value):
        return repr(value)
    if error is not None and math.isfinite(error) and error > 0.0 and value != 0.0:
        digits = math.floor(math.log10(abs(value))) - math.floor(math.log10(error)) + 2
        text = f"{value:#.{min(max(digits, 1), MOST_DIGITS)}g}".rstrip(".").replace(".e", "e")
        if "e" in text and 1e-4 <= abs(value) < 1e15:
            text = f"{float(text):.0f}"
        return text
    text = f"{value:.4g}"
    return text if abs(value) >= 10.0 or not text.lstrip("-").isdigit() else text + ".0"


def exact_number(value: float) -> str:
    """The shortest text that reads back as this number."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def plain(expression: Expression, constants: Sequence[str] | None = None) -> str:
    """Plain text with C0, C1, ... (or these texts) for open constants; with C0, C1, ... it reads back exactly."""
    return _Plain(constants).text(expression)


def display(
    expression: Expression,
    values: Sequence[float] = (),
    errors: Sequence[float] | None = None,
    units: Sequence[str] = (),
) -> str:
    """Text for people: rounded numbers, `5.0 u''` for a coefficient; it can be read back, up to rounding.

    `units` are those of the constants, which stand in brackets: `5.0 [kg] u''`.
    """
    return _Display(values, errors, units).text(expression)


def latex(
    expression: Expression,
    values: Sequence[float] | None = None,
    errors: Sequence[float] | None = None,
    units: Sequence[str] = (),
) -> str:
    """LaTeX, with dots for derivatives; open constants are C_0, C_1, ... unless values are given.

    `units` are those of the constants, in LaTeX.
    """
    return _Latex(values, errors, units).text(expression)


def python_function(frame: Frame, right_sides: Sequence[Expression] | None, residual: Expression, note: str) -> str:
    """The source of a Python module (NumPy only) with one function, for use without this package.

    With the right-hand side of every state it is `rhs(t, y)` for scipy.integrate.solve_ivp, otherwise the
    `residual(t, y)` of one state, which is zero where the equation holds. Open inputs are further arguments.
    """
    results = [residual] if right_sides is None else right_sides
    symbols = {node for e in results for node in e.nodes()}
    inputs = "".join(f", {_argument(s.args[0])}" for s in frame.input_symbols if s in symbols)
    writer = _Python(frame)
    if right_sides is None:
        name, meaning, value = "residual", "Zero where the equation holds", writer.text(residual)
        states = frame.columns
    else:
        name, meaning = "rhs", "Time derivative of y, for scipy.integrate.solve_ivp"
        formulas = dict(zip(frame.highest, right_sides, strict=True))
        rates = [Variable(v.name, v.derivative + 1) for v in frame.variables]
        value = "[" + ", ".join(writer.text(formulas.get(rate, rate.symbol)) for rate in rates) + "]"
        states = frame.variables
    lines = [
        *(["import numpy as np", "", ""] if "np." in value else []),
        f"def {name}(t, y{inputs}):",
        f'    """{meaning}; y = [{", ".join(map(str, states))}].',
        "",
    ]
    lines += [*(f"    {line}" for line in note.splitlines()), '    """', f"    return {value}", ""]
    return "\n".join(lines)


def is_divisor(e: Expression) -> bool:
    """Whether the factor is a divisor: a negative whole power (of a number only 1/0, all others are folded)."""
    if e.head != "^" or e.args[1].head != "number":
        return False
    exponent = e.args[1].args[0]
    return exponent == -1.0 or (exponent < 0.0 and exponent.is_integer() and e.args[0].head != "number")


def inverse(e: Expression) -> Expression:
    """The divisor without its minus sign: u^2 for u^-2."""
    base, exponent = e.args
    return base if exponent.args[0] == -1.0 else Expression("^", (base, number(-exponent.args[0])))


class _Plain:
    """A printer that walks a tree once; subclasses override the small methods."""

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

    def factor(self, e: Expression, first: bool = False) -> str:
        """The text of a factor, with parentheses where they are needed."""
        text = self.text(e)
        return self.parentheses(text) if e.head in "+*" or (text.startswith("-") and not first) else text

    def product(self, e: Expression) -> str:
        text = ""
        for i, a in enumerate(e.args):
            if i == 0 and a == MINUS_ONE and not is_divisor(e.args[1]):
                text = "-"
            elif is_divisor(a):
                text = (text or "1") + "/" + self.factor(inverse(a))
            elif text in ("", "-"):
                text += self.factor(a, first=not text)
            else:
                text += self.times + self.factor(a)
        return text

    def power(self, base: Expression, exponent: Expression) -> str:
        whole = Expression("^", (base, exponent))
        if is_divisor(whole):
            return "1/" + self.factor(inverse(whole))
        below, above = self.text(base), self.text(exponent)
        if base.head in ("+", "*", "^") or below.startswith("-"):
            below = self.parentheses(below)
        if exponent.head in ("+", "*", "^") or above.startswith("-"):
            above = self.parentheses(above)
        return f"{below}{self.raised}{above}"


class _Display(_Plain):
    """The printer of text for people: constants have values, and each product has one coefficient."""

    def __init__(self, values: Sequence[float] = (), errors: Sequence[float] | None = None, units: Sequence[str] = ()):
        super().__init__()
        self.values, self.errors, self.units = values, errors, units

    def number(self, value: float) -> str:
        return format_number(value) if not value.is_integer() or abs(value) >= 1e15 else exact_number(value)

    def constant(self, index: int) -> str:
        unit = self.units[index] if self.units else ""
        return self.rounded(index) + (f" [{unit}]" if unit else "")

    def rounded(self, index: int) -> str:
        """The value of a constant without its unit."""
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


_GREEK = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau phi chi psi omega"
GREEK = dict(zip(re.findall("[a-z]+", _GREEK), "αβγδεζηθικλμνξρστφχψω", strict=True))


def _latex_name(name: str) -> str:
    r"""The name as LaTeX: x0 is x with an index, theta a Greek letter, prey upright.

    >>> print(_latex_name("x0"), _latex_name("theta_1"), _latex_name("prey"))
    x_{0} \theta_{1} \mathrm{prey}
    """
    match = re.fullmatch(r"(.*?)_?([0-9]*)", name)
    assert match is not None
    stem, index = match[1].replace("_", r"\_"), match[2]
    text = rf"\{stem}" if stem in GREEK else stem if len(stem) == 1 else rf"\mathrm{{{stem}}}"
    return f"{text}_{{{index}}}" if index else text


class _Latex(_Display):
    """The printer of LaTeX: fractions, dots, e^{...}."""

    times = r" \, "

    def __init__(
        self, values: Sequence[float] | None = None, errors: Sequence[float] | None = None, units: Sequence[str] = ()
    ):
        super().__init__(values or (), errors, units)
        self.open = values is None

    def number(self, value: float) -> str:
        return self.scientific(super().number(value))

    def constant(self, index: int) -> str:
        if self.open:
            return f"C_{{{index}}}"
        unit = self.units[index] if self.units else ""
        return self.scientific(self.rounded(index)) + (rf"\,{unit}" if unit else "")

    def scientific(self, text: str) -> str:
        digits, _, exponent = text.partition("e")
        return rf"{digits} \cdot 10^{{{int(exponent)}}}" if exponent else digits

    def symbol(self, name: str, derivative: int) -> str:
        name = _latex_name(name)
        if derivative in (0, SIGNAL):
            return name
        if derivative > 2:
            return f"{name}^{{({derivative})}}"
        return ("\\dot{" if derivative == 1 else "\\ddot{") + name + "}"

    def parentheses(self, text: str) -> str:
        return rf"\left({text}\right)"

    def function(self, name: str, argument: Expression) -> str:
        return FUNCTIONS[name].latex.format(self.text(argument))

    def product(self, e: Expression) -> str:
        below = [inverse(a) for a in e.args if is_divisor(a)]
        above = [a for a in e.args if not is_divisor(a)]
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
        if is_divisor(whole):
            return rf"\frac{{1}}{{{self.text(inverse(whole))}}}"
        below = self.text(base)
        # a derivative or a function already has a mark where the exponent would go
        bare = base.head in ("sqrt", "abs") or (base.head in ("number", "constant") and not below.startswith("-"))
        if not bare and not (base.head == "symbol" and base.args[1] < 3 and "_" not in below):
            below = self.parentheses(below)
        return f"{below}^{{{self.text(exponent)}}}"


def _argument(name: str) -> str:
    """The argument name for an input, changed where Python reserves the name."""
    return f"{name}_" if name in ("y", "np") or keyword.iskeyword(name) else name


class _Python(_Plain):
    """The printer of Python: np, t, functions of t for the inputs, and the state vector y."""

    raised = "**"

    def __init__(self, frame: Frame):
        super().__init__()
        self.frame = frame

    def symbol(self, name: str, derivative: int) -> str:
        if derivative == SIGNAL:
            return name if name == "t" else f"{_argument(name)}(t)"
        return f"y[{self.frame.positions[Variable(name, derivative)]}]"

    def function(self, name: str, argument: Expression) -> str:
        return f"np.{super().function(name, argument)}"
