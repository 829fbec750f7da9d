"""Knowledge about a system before the search; every field may be unknown."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lgf.data.row_terms import by_row_and_term, read_row_term, read_shared, term_texts, texts
from lgf.equation.dimensions import Units, describe_units
from lgf.equation.units import read_unit
from lgf.errors import LgfError, quoted
from lgf.expression.frame import HIGHEST_ORDER, Variable, check_name
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
    functions    the only functions allowed, of sin cos exp log sqrt abs tanh, for all states or by state
    variables    the only variables allowed in a term, such as ("u", "u'", "t")
    bounds       term -> (low, high) or a sign in words, for the coefficient of that term: {"u^3": "positive"}
    constants    the same for every other constant
    required     terms that must stand in the equation, such as ("u^3",)
    forbidden    terms that must not stand in it
    known        right-hand sides by state, such as {"x": "v"}; their numbers stay as they are, C is fitted
    shared       coefficients that are one constant, up to a factor, such as ("S: S*I = -I: S*I",)
    conserved    sums of states that do not change, such as ("S + I + R",)
    populations  states whose right-hand side is divisible by the state itself
    hidden       a state that was not measured, such as ("lynx",); its equation and its path are inferred
    vary         terms whose coefficient differs between experiments, or "auto" (the data decide), or "none"
    units        units by quantity (t, states, derivatives, inputs), such as {"t": "s", "u": "m"}

    A term of one equation is written `x: x*y`, or {"x": ("x*y",)}; without a state it may stand in any equation.
    """

    order: int | Mapping[str, int] | None = None
    stable: bool | None = None
    autonomous: bool | None = None
    forced: bool | None = None
    inputs: Mapping[str, Forcing] = field(default_factory=dict)
    functions: tuple[str, ...] | Mapping[str, tuple[str, ...]] | None = None
    variables: tuple[str, ...] | None = None
    bounds: Mapping[str, Bounds] | None = None
    constants: Bounds | None = None
    required: tuple[str, ...] | None = None
    forbidden: tuple[str, ...] | None = None
    known: Mapping[str, str] | None = None
    shared: tuple[str, ...] | None = None
    conserved: tuple[str, ...] | None = None
    populations: tuple[str, ...] | None = None
    hidden: tuple[str, ...] | None = None
    vary: str | tuple[str, ...] = "auto"
    units: Mapping[str, str] | None = None

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
        if isinstance(self.functions, Mapping):
            set_(self, "functions", {_state(row): _functions(names) for row, names in self.functions.items()})
        elif self.functions is not None:
            set_(self, "functions", _functions(self.functions))
        if self.variables is not None:
            set_(self, "variables", _variables(self.variables))
        if self.constants is not None:
            set_(self, "constants", _bounds("every constant", self.constants))
        if self.bounds is not None:
            if not isinstance(self.bounds, Mapping):
                raise LgfError('bounds map a term to (low, high) or to a sign: {"u^3": "positive"}.')
            set_(self, "bounds", {term: _bounds(term, v) for term, v in by_row_and_term(self.bounds).items()})
        for name in ("required", "forbidden"):
            if getattr(self, name) is not None:
                set_(self, name, term_texts(getattr(self, name), f"{name} terms"))
        if self.vary not in ("auto", "none"):
            set_(self, "vary", term_texts(self.vary, "terms that vary by experiment"))
        if self.units is not None:
            set_(self, "units", _units(self.units))
        self._check_rows()

    def _check_rows(self) -> None:
        set_ = object.__setattr__
        if self.known is not None:
            set_(self, "known", _known(self.known))
        if self.shared is not None:
            set_(self, "shared", tuple(str(read_shared(text)) for text in texts(self.shared, "shared constants")))
        if self.conserved is not None:
            set_(self, "conserved", tuple(text.strip() for text in texts(self.conserved, "conserved quantities")))
        if self.populations is not None:
            set_(self, "populations", tuple(_state(name) for name in texts(self.populations, "populations")))
        if self.hidden is not None:
            set_(self, "hidden", _hidden(self.hidden))

    def order_of(self, state: str) -> int | None:
        """The known order of this state, or None; a known row such as x'' = ... gives it too."""
        order = self.order.get(state) if isinstance(self.order, Mapping) else self.order
        if order is None:
            order = next((v.derivative for v in map(Variable.read, self.known or {}) if v.name == state), 0) or None
        return order

    def functions_of(self, state: str) -> tuple[str, ...] | None:
        """The only functions allowed in the equation of this state; None allows all."""
        return self.functions.get(state) if isinstance(self.functions, Mapping) else self.functions

    @property
    def by_row(self) -> bool:
        """Whether something is known about single terms or equations, beyond what rules of a grammar exclude."""
        return any(
            (self.required, self.forbidden, self.known, self.shared, self.conserved, self.populations, self.units)
        )

    @property
    def unit_pairs(self) -> Units:
        """The units as pairs (quantity, unit)."""
        return tuple((self.units or {}).items())

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
        for row, names in self.functions.items() if isinstance(self.functions, Mapping) else ():
            sentences.append(f"Functions allowed in the equation of {row}: {', '.join(names) or 'none'}.")
        if self.functions is not None and not isinstance(self.functions, Mapping):
            sentences.append(f"Functions allowed: {', '.join(self.functions) or 'none'}.")
        if self.variables is not None:
            sentences.append(f"Variables allowed: {', '.join(self.variables)}.")
        for term, (low, high) in (self.bounds or {}).items():
            sentences.append(f"The coefficient of {read_row_term(term).place} {_in_words(low, high)}.")
        if self.constants is not None:
            sentences.append(f"Every other constant {_in_words(*self.constants)}.")
        if self.required:
            sentences.append(f"Terms that must be there: {_places(self.required)}.")
        if self.forbidden:
            sentences.append(f"Terms that must not be there: {_places(self.forbidden)}.")
        if self.vary == "none":
            sentences.append("All constants are the same in every experiment.")
        elif not isinstance(self.vary, str):
            sentences.append(f"The coefficient varies by experiment for: {_places(self.vary)}.")
        if self.units:
            sentences.append(describe_units(self.unit_pairs))
        sentences += [
            f"Hidden: {name} was not measured; its equation and its path are inferred." for name in self.hidden or ()
        ]
        return (*sentences, *self._describe_rows())

    def _describe_rows(self) -> list[str]:
        sentences = [
            f"Known right-hand side of {Variable.read(row).name}: {right}." for row, right in (self.known or {}).items()
        ]
        for shared in map(read_shared, self.shared or ()):
            times = "equals" if shared.factor == 1.0 else f"is {shared.factor:g} times"
            sentences.append(f"The coefficient of {shared.left.place} {times} the coefficient of {shared.right.place}.")
        sentences += [f"Conserved: {quantity} does not change." for quantity in self.conserved or ()]
        if self.populations:
            sentences.append(
                f"Populations: {', '.join(self.populations)}; each such right-hand side is divisible by its own state."
            )
        return sentences


def _units(units: Any) -> dict[str, str]:
    if not isinstance(units, Mapping):
        raise LgfError(f'units are {quoted(units)}; give them by quantity: {{"t": "s", "u": "m"}}.')
    named = {str(name).strip(): str(unit).strip() for name, unit in units.items()}
    for unit in named.values():
        read_unit(unit)
    return named


def _places(terms: tuple[str, ...]) -> str:
    return ", ".join(read_row_term(term).place for term in terms)


def _order(order: Any) -> int:
    if isinstance(order, (bool, str)) or not hasattr(order, "__index__") or not 1 <= order <= HIGHEST_ORDER:
        raise LgfError(f"order is {quoted(order)}; give a whole number from 1 to {HIGHEST_ORDER}, or leave it out.")
    return int(order)


def _state(name: object) -> str:
    return check_name(str(name).strip())


def _hidden(hidden: object) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(_state(name) for name in texts(hidden, "hidden states")))
    if len(names) > 1:
        raise LgfError(
            f"there are {len(names)} hidden states ({', '.join(names)}); one can be inferred: measure the others, or "
            "leave them out."
        )
    return names


def _known(known: Any) -> dict[str, str]:
    if isinstance(known, Mapping):
        pairs = [(str(row), right) for row, right in known.items()]
    else:
        equations = [text.split("=") for text in texts(known, "known right-hand sides")]
        wrong = next(("=".join(sides) for sides in equations if len(sides) != 2), None)
        if wrong is not None:
            raise LgfError(f"the known equation {quoted(wrong)} cannot be read; write it like x' = v.")
        pairs = [(left, right) for left, right in equations]
    rows: dict[str, str] = {}
    for row, right in pairs:
        if not isinstance(right, str) or not right.strip():
            raise LgfError(
                f'the known right-hand side of {quoted(row.strip())} is {quoted(right)}; write it like {{"x": "v"}} or '
                "x' = v."
            )
        variable = Variable.read(row)
        if variable.name in (Variable.read(r).name for r in rows):
            raise LgfError(f"the right-hand side of {variable.name} is given twice; give it once.")
        rows[str(variable)] = right.strip()
    return rows


def _functions(functions: object) -> tuple[str, ...]:
    names = texts(functions, "functions")
    for name in names:
        if name not in FUNCTIONS:
            raise LgfError(f"the function {quoted(name)} is not known; choose from {', '.join(FUNCTIONS)}.")
    return names


def _variables(variables: object) -> tuple[str, ...]:
    names = texts(variables, "variables")
    if not names:
        raise LgfError("no variable is allowed; name at least one, such as t or u.")
    return names


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
