r"""Units of the constants of an equation, and whether units allow the equation at all.

Every open constant may have a unit, so a sum of terms with coefficients is always possible. Not possible are functions
of a quantity with a unit (sin(u) for u in m; sin(C*u) is), sums of different units without a constant between them
(u + u^2, 1 + u), a power u^C without a coefficient, and exponents with units. log(u) is possible beside the same term
without it: a*u + b*u*log(u) is b*u*log(u/u0). A quantity whose unit is not known may have any.

The units of constants and of unknown quantities are the solution of linear equations: the exponents of each unit on
both sides of a sum are equal, and those of an argument are 0. An exponent that is fitted is a symbol in them: with
k*u^p, k has the unit of u' divided by m^p.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from lgf.equation.skeleton import Skeleton
from lgf.equation.units import Unit, dimension, read_unit, simplest, unit_text
from lgf.expression.frame import Variable
from lgf.expression.print import plain
from lgf.expression.tree import SIGNAL, Expression, factors, summands

Units = tuple[tuple[str, str], ...]
"""(quantity, unit) of time (t), of states, derivatives or inputs, as far as they are known."""

Word = str | tuple[str, int]  # a unit, or a unit to the power of a constant with this number
Unknown = str | int  # a quantity, or the number of a constant
_TINY = 1e-9


@dataclass(frozen=True)
class _Exponents:
    """The unit of an expression: exponents of words, and multiples of unknown units."""

    words: Mapping[Word, float] = field(default_factory=dict)
    unknown: Mapping[Unknown, float] = field(default_factory=dict)

    def plus(self, other: "_Exponents", times: float = 1.0) -> "_Exponents":
        return _Exponents(_sum(self.words, other.words, times), _sum(self.unknown, other.unknown, times))


_NUMBER = _Exponents()


def _sum(a: Mapping, b: Mapping, times: float) -> dict:
    total = dict(a)
    for key, value in b.items():
        total[key] = total.get(key, 0.0) + times * value
        if abs(total[key]) < _TINY:
            del total[key]
    return total


def objection(skeleton: Skeleton, units: Units, trusted: Iterable[int] = ()) -> str | None:
    """Why units exclude the equations, as "it ..."; None if they do not.

    The numbers in `trusted` rows, which the user stated, may have units.
    """
    return _analysis(skeleton, units, frozenset(trusted)).objection


def term_objection(term: Expression, units: Units) -> str | None:
    """Why units exclude a term with an open coefficient in every equation, as "which ..."; None if they do not."""
    return _of_term(term, units)


@lru_cache(maxsize=20_000)  # a dictionary of terms is asked for again by every proposer
def _of_term(term: Expression, units: Units) -> str | None:
    walk = _Walk(_quantities(units), lenient=True)
    walk.sum([term])
    return walk.solve()[0]


def scalable(name: str, equations: Mapping[Variable, Expression]) -> bool:
    """Whether the equations stay valid if this state is multiplied by any number and their open constants change too.

    It is, if the state may have a unit while all others, time and every number have none.

    >>> from lgf.expression.parse import read_expression
    >>> from lgf.expression.frame import Frame
    >>> read = lambda text: read_expression(text, Frame((("x", 1), ("y", 1))))
    >>> [scalable("y", {Variable("x", 1): read(right)}) for right in ("C*x*y", "C*(y - x)", "0.1*x*y")]
    [True, False, False]
    """
    quantities = {v.name for v in equations}.union(
        str(n.args[0]) for right in equations.values() for n in right.nodes() if n.head == "symbol"
    )
    walk = _Walk({quantity: {"meter": 1.0} if quantity == name else {} for quantity in ("t", name, *quantities)})
    for left, right in equations.items():
        walk.sum([left.symbol, *summands(right)])
    return walk.solve()[0] is None


def constant_units(skeleton: Skeleton, units: Units, values: Sequence[float]) -> tuple[dict[str, float] | None, ...]:
    """The unit of each constant; None where it depends on units that are not known."""
    solved = _analysis(skeleton, units, frozenset()).constants
    result = []
    for i in range(skeleton.n_constants):
        words = solved.get(i)
        if words is None:
            result.append(None)
            continue
        unit: dict[str, float] = {}
        for word, exponent in words.items():
            name, power = (word, exponent) if isinstance(word, str) else (word[0], exponent * values[word[1]])
            unit[name] = unit.get(name, 0.0) + power
        result.append(simplest(unit))
    return tuple(result)


def quantity_units(units: Units, variables: Iterable[Variable], inputs: Iterable[str] = ()) -> dict[str, Unit]:
    """The unit of time, of these variables and of inputs, as far as it follows from those that are known."""
    known = _quantities(units)
    found: dict[str, Unit] = {}
    for name in ("t", *inputs):
        if name in known:
            found[name] = known[name]
    for variable in variables:
        unit = _unit_of(variable, known)
        if unit is not None:
            found[str(variable)] = unit
    return found


@dataclass(frozen=True)
class _Analysis:
    objection: str | None
    constants: Mapping[int, Mapping[Word, float]]


@lru_cache(maxsize=5_000)
def _analysis(skeleton: Skeleton, units: Units, trusted: frozenset[int]) -> _Analysis:
    walk = _Walk(_quantities(units))
    for row, (left, right) in enumerate(skeleton.sides):
        walk.trusting = row in trusted
        walk.sum([*summands(left), *summands(right)])
    sentence, solved = walk.solve()
    return _Analysis(sentence, {i: words for i, words in solved.items() if isinstance(i, int)})


@lru_cache(maxsize=64)
def _quantities(units: Units) -> dict[str, dict[str, float]]:
    """The units of time, inputs and states, those of states from their derivatives where time has a unit."""
    known = {name: read_unit(text) for name, text in units}
    for name in list(known):
        stem = name.rstrip("'")
        if stem != name and stem not in known and "t" in known:
            known[stem] = _sum(known[name], known["t"], float(len(name) - len(stem)))
    return known


def _unit_of(variable: Variable, known: Mapping[str, Unit]) -> Unit | None:
    if str(variable) in known:
        return known[str(variable)]
    if variable.name in known and (variable.derivative == 0 or "t" in known):
        return _sum(known[variable.name], known.get("t", {}), -float(variable.derivative))
    return None


class _Walk:
    """The unit of an expression, and the equations that it asks for."""

    def __init__(self, known: Mapping[str, Unit], lenient: bool = False):
        self.known, self.lenient = known, lenient  # lenient: log(u) may have its companion elsewhere
        self.trusting = False
        self.equations: list[tuple[_Exponents, str]] = []  # each is a pure number, or for this reason impossible
        self.numbers = 0

    def unit(self, e: Expression) -> _Exponents:
        head = e.head
        if head == "number":
            return self.anything() if self.trusting or e.args[0] == 0.0 else _NUMBER
        if head == "constant":
            return _Exponents(unknown={e.args[0]: 1.0})
        if head == "symbol":
            return self.symbol(*e.args)
        if head == "+":
            return self.sum(e.args)
        if head == "*":
            total = _NUMBER
            for factor in e.args:
                total = total.plus(self.unit(factor))
            return total
        if head == "^":
            return self.power(*e.args)
        inside = self.unit(e.args[0])
        if head == "abs":
            return inside
        if head == "sqrt":
            return _NUMBER.plus(inside, 0.5)
        self.pure(inside, f"takes {head} of a quantity with a unit in {plain(e, _C)}")
        return _NUMBER

    def anything(self) -> _Exponents:
        self.numbers += 1
        return _Exponents(unknown={f"number {self.numbers}": 1.0})

    def symbol(self, name: str, derivative: int) -> _Exponents:
        variable = Variable(name, max(derivative, 0))
        unit = _unit_of(variable, self.known)
        if unit is not None:
            return _Exponents({**unit})
        time = self.symbol("t", SIGNAL) if variable.derivative else _NUMBER
        return _Exponents(unknown={name: 1.0}).plus(time, -float(variable.derivative))

    def sum(self, parts: Sequence[Expression]) -> _Exponents:
        """The common unit of the parts."""
        logarithms = [] if self.lenient else _logarithms_with_companion(parts)
        units = [self.product_without(part, logarithms) for part in parts]
        first = min(units, key=lambda unit: len(unit.unknown))
        for unit in units:
            self.pure(unit.plus(first, -1.0), "adds quantities of different units")
        return first

    def product_without(self, part: Expression, logarithms: Sequence[Expression]) -> _Exponents:
        """The unit of a summand, in which these logarithms are numbers."""
        total = _NUMBER
        for factor in factors(part):
            free = factor in logarithms or (self.lenient and factor.head == "log")
            total = total if free else total.plus(self.unit(factor))
        return total

    def power(self, base: Expression, exponent: Expression) -> _Exponents:
        below = self.unit(base)
        if exponent.head == "number":
            return _NUMBER.plus(below, exponent.args[0])
        self.pure(self.unit(exponent), "has a unit in an exponent")
        parts = factors(exponent)
        constants = [f.args[0] for f in parts if f.head == "constant"]
        if below.unknown or len(constants) != 1 or any(f.head not in ("constant", "number") for f in parts):
            self.pure(below, f"raises a quantity with a unit to a power in {plain(base, _C)}^C")
            return _NUMBER
        times = 1.0
        for f in parts:
            times *= f.args[0] if f.head == "number" else 1.0
        return _Exponents({(str(word), constants[0]): times * p for word, p in below.words.items()})

    def pure(self, unit: _Exponents, reason: str) -> None:
        """Asks that the unit is 1."""
        if unit.words or unit.unknown:
            self.equations.append((unit, reason))

    def solve(self) -> tuple[str | None, dict[Unknown, Mapping[Word, float]]]:
        """(why there is no solution or None, the words of every unknown that is determined), by elimination."""
        solved: dict[Unknown, _Exponents] = {}
        for equation, reason in self.equations:
            for unknown, value in solved.items():
                if unknown in equation.unknown:
                    equation = _replaced(equation, unknown, value)
            # Constants give way before quantities, whose units are facts about the data.
            pivot = next(iter(sorted(equation.unknown, key=lambda u: (isinstance(u, str), str(u)))), None)
            if pivot is None:
                if not _is_pure(equation.words):
                    return reason, {}
                continue
            times = equation.unknown[pivot]
            rest = _Exponents(equation.words, {u: p for u, p in equation.unknown.items() if u != pivot})
            value = _NUMBER.plus(rest, -1.0 / times)
            solved = {u: _replaced(v, pivot, value) for u, v in solved.items()}
            solved[pivot] = value
        return None, {u: v.words for u, v in solved.items() if not v.unknown}


_C = ["C"] * 99


def _replaced(unit: _Exponents, unknown: Unknown, value: _Exponents) -> _Exponents:
    times = unit.unknown.get(unknown)
    if times is None:
        return unit
    rest = _Exponents(unit.words, {u: p for u, p in unit.unknown.items() if u != unknown})
    return rest.plus(value, times)


def _is_pure(words: Mapping[Word, float]) -> bool:
    """Whether the words cancel to a pure number, for any value of the exponents in them."""
    groups: dict[int | None, dict[str, float]] = {}
    for word, exponent in words.items():
        name, group = (word, None) if isinstance(word, str) else word
        groups.setdefault(group, {})[name] = exponent
    return not any(dimension(unit) for unit in groups.values())


def _logarithms_with_companion(parts: Sequence[Expression]) -> list[Expression]:
    """The logarithms of summands C*g*log(x) beside which C*g stands: C*g*log(x/x0) in another form."""
    bodies = [_body(part) for part in parts]
    free = [any(f.head == "constant" for f in factors(part)) for part in parts]
    found = []
    for body, own in zip(bodies, free, strict=True):
        for logarithm in (f for f in body if f.head == "log" and own):
            if any(n.head == "constant" for n in logarithm.nodes()):
                continue
            rest = [f for f in body if f is not logarithm]
            if any(
                other_free and sorted(other) == sorted(rest) for other, other_free in zip(bodies, free, strict=True)
            ):
                found.append(logarithm)
    return found


def _body(part: Expression) -> list[Expression]:
    """The factors of a summand without constants and numbers."""
    return [f for f in factors(part) if f.head not in ("constant", "number")]


def describe_units(units: Units) -> str:
    """The units in one sentence."""
    pairs = ", ".join(f"{name} in {unit_text(read_unit(text)) or 'pure numbers'}" for name, text in units)
    return f"Units: {pairs}."
