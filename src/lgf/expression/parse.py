"""Reading of expressions and equations from text; the parser returns an expression or raises ReadingError.

It reads numbers, + - * / ^ (also **), parentheses, the table of functions (and ln, Abs), time t, known inputs (F or
F(t)), states with their derivatives (u'', u''(t), diff(u, t, 2), du/dt, Derivative(u(t), (t, 2))), pi, and open
constants: every bare C is a new one; C0, C1, ... have explicit numbers. A frame says which names are states and which
are inputs; without one u, x0, x1, ... are states and F is an input. `^` is right-associative and binds before the
sign: -u^2 is -(u^2). A number may stand before a name without `*`: 5.0 u''.
"""

import math
import re
from typing import NamedTuple, NoReturn

from lgf.errors import LgfError, quoted
from lgf.expression.frame import Frame
from lgf.expression.functions import FUNCTIONS
from lgf.expression.tree import (
    MINUS_ONE,
    SIGNAL,
    Expression,
    add,
    constant,
    function,
    mul,
    nesting,
    number,
    power,
    signal,
    symbol,
)

MAX_LENGTH = 3_000  # characters; keeps the slowest text far below 50 ms
MAX_DEPTH = 64  # nested parentheses and powers; each takes five of Python's thousand frames
MAX_ORDER = 20  # of a derivative
MAX_NESTING = 6  # see `nesting`; each level multiplies the time of the canonical form by four

_TOKEN = re.compile(r"(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<name>[A-Za-z_][A-Za-z_0-9]*)"
                    r"|(?P<prime>'+)|(?P<sign>\*\*|[-+*/^(),])")  # fmt: skip
_TYPOGRAPHY = str.maketrans("−–·×′’\n\t\r", "--**''   ")  # one character for one, so that positions stay valid
_DEFAULT_STATE = re.compile(r"u|x[0-9]{1,3}")
_PRIMES = str.maketrans("′’", "''")
_CONSTANT = re.compile(r"C[0-9]{1,3}")
_LEIBNIZ = re.compile(r"d([0-9]{0,2})([A-Za-z_][A-Za-z_0-9]*)")
_FUNCTION_NAMES = {**{name: name for name in FUNCTIONS}, "ln": "log", "Abs": "abs"}


class ReadingError(LgfError):
    """A text that is not an expression; the message shows where (with a caret), what was got and what to do."""

    def __init__(self, message: str, text: str, position: int):
        self.message, self.position = message, position
        start = max(0, position - 40)
        excerpt = text[start : position + 40].translate(_TYPOGRAPHY)
        excerpt = "".join(c if c.isprintable() else "?" for c in excerpt)
        super().__init__(f"{message} (character {position + 1})\n  {excerpt}\n  {' ' * (position - start)}^")


class _Token(NamedTuple):
    kind: str  # number, name, prime, end, or the sign itself
    text: str
    position: int


def read_expression(text: str, frame: Frame | None = None) -> Expression:
    """The expression in the text."""
    if "=" in text:
        raise ReadingError("an expression has no '='; for equations use read_equations", text, text.index("="))
    return _Reader(text, frame).read(0, len(text))


def read_equations(text: str, frame: Frame | None = None) -> tuple[tuple[Expression, Expression], ...]:
    """The left and right side of every equation of the text, one per line (or separated by semicolons)."""
    # Units of printed equations are left out; spaces take their place, so that errors point to the right column.
    text = re.sub(r"\[[^\[\]]*\]", lambda m: " " * len(m[0]), text)
    reader = _Reader(text, frame)
    sides = []
    begin = 0
    for line in re.split(r"[;\n]", text):
        end = begin + len(line)
        equal = text.find("=", begin, end)
        if equal >= 0 and text.find("=", equal + 1, end) >= 0:
            raise ReadingError("a second '='; an equation has one", text, text.find("=", equal + 1, end))
        if equal >= 0:
            sides.append((reader.read(begin, equal), reader.read(equal + 1, end)))
        elif line.strip() or not text.strip():
            sides.append((reader.read(begin, end), number(0)))
        begin = end + 1
    return tuple(sides)


_EXPLICIT = re.compile(r"\s*([A-Za-z_][A-Za-z_0-9]*)\s*('+)\s*=")


def infer_frame(text: str, inputs: tuple[str, ...] = ("F",)) -> Frame | None:
    """The frame of equations that all read `name' = ...`, whose names are the states; None for any other text.

    The frame has those of the inputs that occur.
    """
    lines = [line for line in re.split(r"[;\n]", text.translate(_PRIMES)) if line.strip()]
    lefts = [_EXPLICIT.match(line) for line in lines]
    if not lines or any(left is None for left in lefts):
        return None
    states = tuple((left[1], len(left[2])) for left in lefts if left is not None)
    words = set(re.findall(r"[A-Za-z_][A-Za-z_0-9]*", text))
    return Frame(states, tuple(name for name in inputs if name in words and name not in dict(states)))


class _Reader:
    """A recursive-descent parser of one text; it numbers the bare C's of the whole text."""

    def __init__(self, text: str, frame: Frame | None):
        self.text, self.frame = text, frame
        if len(text) > MAX_LENGTH:
            self.fail(f"the text has {len(text)} characters; at most {MAX_LENGTH} are read", MAX_LENGTH)
        self.bare = 0
        self.numbered = False

    @property
    def known(self) -> str:
        """The names that the text may use, for messages."""
        frame = self.frame
        names = "t, F, u, x0, x1, ..." if frame is None else ", ".join(("t", *frame.inputs, *frame.names))
        return f"{names}, C, pi and the functions {', '.join(FUNCTIONS)}"

    def is_state(self, name: str) -> bool:
        """Whether this is the name of a state."""
        return _DEFAULT_STATE.fullmatch(name) is not None if self.frame is None else name in self.frame.names

    def is_input(self, name: str) -> bool:
        """Whether this is the name of a known input."""
        return name == "F" if self.frame is None else name in self.frame.inputs

    def fail(self, message: str, position: int) -> NoReturn:
        raise ReadingError(message, self.text, position)

    def read(self, start: int, stop: int) -> Expression:
        """The expression between two positions of the text."""
        self.tokens = self.tokenise(start, stop)
        self.at = 0
        self.depth = 0
        if self.tokens[0].kind == "end":
            self.fail("nothing here; an expression such as 2*u' + u was expected", start)
        result = self.sum()
        token = self.tokens[self.at]
        if token.kind != "end":
            if token.kind == ")":
                self.fail("a ')' without its '('; remove it", token.position)
            self.fail(
                f"{quoted(token.text)} cannot follow here; write * between factors, + or - between terms",
                token.position,
            )
        if not all(math.isfinite(n.args[0]) for n in result.nodes() if n.head == "number"):
            self.fail("the numbers are too large to compute with; rescale them", start)
        if (deep := nesting(result)) > MAX_NESTING:
            self.fail(f"functions, powers and products of sums nest {deep} deep; at most {MAX_NESTING} is read", start)
        return result

    def tokenise(self, start: int, stop: int) -> list[_Token]:
        text = self.text.translate(_TYPOGRAPHY)
        tokens = []
        while start < stop:
            if text[start] == " ":
                start += 1
                continue
            match = _TOKEN.match(text, start, stop)
            if match is None:
                self.fail(f"the character {text[start]!r} is not known here; known are {self.known}", start)
            kind = match.lastgroup or ""
            word = match.group()
            tokens.append(_Token(word if kind == "sign" else kind, word, start))
            start = match.end()
        tokens.append(_Token("end", "the end", stop))
        return tokens

    def take(self, kind: str) -> bool:
        """Whether the next token is of this kind; if so it is consumed."""
        if self.tokens[self.at].kind == kind:
            self.at += 1
            return True
        return False

    def expect(self, kind: str, where: str) -> _Token:
        token = self.tokens[self.at]
        if token.kind != kind:
            self.fail(f"{kind!r} was expected {where}, got {quoted(token.text)}", token.position)
        self.at += 1
        return token

    def sum(self) -> Expression:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"nested deeper than {MAX_DEPTH}; write it flatter", self.tokens[self.at].position)
        terms = [self.product()]
        while (kind := self.tokens[self.at].kind) in ("+", "-"):
            self.at += 1
            term = self.product()
            terms.append(term if kind == "+" else mul(MINUS_ONE, term))
        self.depth -= 1
        # add once: pairwise flattening would take quadratic time
        return add(*terms)

    def product(self) -> Expression:
        sign = self.signs()
        first = self.tokens[self.at]
        factors = [self.power()] if sign is None else [sign, self.power()]
        if first.kind == "number" and self.tokens[self.at - 1] is first and self.tokens[self.at].kind == "name":
            factors.append(self.power())
        while (kind := self.tokens[self.at].kind) in ("*", "/"):
            self.at += 1
            sign = self.signs()
            factor = self.power()
            if kind == "/":
                factor = self.reciprocal(factors, factor)
            factors.append(factor)
            if sign is not None:
                factors.append(sign)
        return mul(*factors)

    def reciprocal(self, factors: list[Expression], divisor: Expression) -> Expression:
        # 2/3 is the nearest number to two thirds, which 2*(1/3) need not be
        if divisor.head == "number" and factors[-1].head == "number" and divisor.args[0] != 0.0:
            quotient = factors[-1].args[0] / divisor.args[0]
            if math.isfinite(quotient):
                factors.pop()
                return number(quotient)
        return power(divisor, MINUS_ONE)

    def signs(self) -> Expression | None:
        """MINUS_ONE if an odd number of minus signs comes next."""
        negative = False
        while (kind := self.tokens[self.at].kind) in ("+", "-"):
            self.at += 1
            negative ^= kind == "-"
        return MINUS_ONE if negative else None

    def power(self) -> Expression:
        base = self.atom()
        if self.take("^") or self.take("**"):
            self.depth += 1
            if self.depth > MAX_DEPTH:
                self.fail(f"more than {MAX_DEPTH} powers on top of each other", self.tokens[self.at].position)
            sign = self.signs()
            exponent = self.power()
            self.depth -= 1
            return power(base, exponent if sign is None else mul(sign, exponent))
        return base

    def atom(self) -> Expression:
        token = self.tokens[self.at]
        self.at += 1
        if token.kind == "number":
            value = float(token.text)
            if math.isinf(value):
                self.fail("the number is too large", token.position)
            return number(value)
        if token.kind == "(":
            inside = self.sum()
            self.expect(")", f"to close the '(' of character {token.position + 1}")
            return inside
        if token.kind == "name":
            return self.named(token)
        return self.fail(f"a number, a name or '(' was expected, got {quoted(token.text)}", token.position)

    def named(self, token: _Token) -> Expression:
        name = token.text
        if name in _FUNCTION_NAMES:
            self.expect("(", f"after {name}")
            argument = self.sum()
            self.expect(")", f"to close {name}(")
            return function(_FUNCTION_NAMES[name], argument)
        if self.is_state(name):
            return self.state(name)
        if self.is_input(name):
            self.of_time()
            return signal(name)
        if name in ("diff", "Derivative"):
            return self.derivative(token)
        if name == "t":
            return signal("t")
        if name == "pi":
            return number(math.pi)
        if name == "C" or _CONSTANT.fullmatch(name):
            return self.constant(token)
        leibniz = _LEIBNIZ.fullmatch(name)
        if leibniz and self.is_state(leibniz[2]):
            return self.leibniz(token, leibniz[1], leibniz[2])
        return self.fail(f"the name {quoted(name)} is not known; known are {self.known}", token.position)

    def of_time(self) -> bool:
        """Whether `(t)` comes next; if so it is consumed."""
        ahead = self.tokens[self.at : self.at + 3]
        if len(ahead) == 3 and ahead[0].kind == "(" and ahead[1].text == "t" and ahead[2].kind == ")":
            self.at += 3
            return True
        return False

    def state(self, name: str) -> Expression:
        applied = self.of_time()
        order = 0
        prime = self.tokens[self.at]
        if self.take("prime"):
            order = self.order(len(prime.text), prime.position)
            if not applied:
                self.of_time()
        return symbol(name, order)

    def order(self, order: int, position: int) -> int:
        if order > MAX_ORDER:
            self.fail(f"a derivative of order {order}; at most {MAX_ORDER} is read", position)
        return order

    def derivative(self, token: _Token) -> Expression:
        """diff(u, t), diff(u, t, 2), diff(u, t, t), Derivative(u(t), (t, 2))."""
        self.expect("(", f"after {token.text}")
        inside = self.sum()
        if inside.head != "symbol" or inside.args[1] == SIGNAL:
            self.fail(f"{token.text} takes a state or a derivative of one, such as {token.text}(u, t)", token.position)
        order = 0
        self.expect(",", f"and then t, as in {token.text}(u, t)")
        while True:
            grouped = self.take("(")
            if self.expect("name", "as the variable t").text != "t":
                self.fail("derivatives are with respect to t", self.tokens[self.at - 1].position)
            times = 1
            if self.tokens[self.at].kind == "," and self.tokens[self.at + 1].kind == "number":
                self.at += 1
                count = self.expect("number", "as the order")
                if not re.fullmatch(r"[0-9]{1,3}", count.text):
                    self.fail(f"the order of a derivative is a whole number, got {count.text[:20]}", count.position)
                times = int(count.text)
            if grouped:
                self.expect(")", "after the order")
            order += times
            if not self.take(","):
                break
        self.expect(")", f"to close {token.text}(")
        return symbol(inside.args[0], self.order(inside.args[1] + order, token.position))

    def leibniz(self, token: _Token, times: str, name: str) -> Expression:
        """du/dt, d2u/dt2."""
        ahead = self.tokens[self.at : self.at + 3]
        if len(ahead) < 3 or ahead[0].kind != "/" or ahead[1].text != f"dt{times}":
            self.fail(f"{quoted(token.text)} must be followed by /dt{times}; or write {name}'", token.position)
        if ahead[2].kind in ("^", "**"):
            self.fail(
                f"write ({token.text}/dt{times})^n or {name}'^n, so that it is clear what the power is of",
                token.position,
            )
        self.at += 2
        return symbol(name, self.order(int(times or 1), token.position))

    def constant(self, token: _Token) -> Expression:
        if token.text == "C":
            index = self.bare
            self.bare += 1
        else:
            index = int(token.text[1:])
            self.numbered = True
        if self.numbered and self.bare:
            self.fail("bare C and numbered constants are mixed; number all of them or none", token.position)
        return constant(index)
