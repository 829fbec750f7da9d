"""Knowledge about a system before the search; every field may be unknown."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

import numpy as np

from lgf.data.bounds import Bounds, bounds_in_words, read_bounds
from lgf.data.row_terms import by_row_and_term, read_known, read_row_term, read_shared, term_texts, texts
from lgf.equation.dimensions import Units, describe_units
from lgf.equation.units import read_unit
from lgf.errors import LgfError, quoted
from lgf.expression.frame import HIGHEST_ORDER, Variable, check_name
from lgf.expression.functions import FUNCTIONS
from lgf.solver.forcing import Forcing


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
        for name, read in _READERS.items():
            value = getattr(self, name)
            if value is not None:
                set_(self, name, read(value))
        if self.inputs:
            if self.forced is False:
                raise LgfError("a forcing is given but the system is said to be unforced; drop one of the two.")
            set_(self, "forced", True)

    def __deepcopy__(self, memo: dict) -> "Knowledge":
        return self  # it does not change; so a clone of an estimator has equal parameters

    @classmethod
    def stated(cls, statements: "Statements", beside: "Knowledge | None" = None) -> "Knowledge":
        """What the keywords state, beside what is known; LgfError names a keyword that states nothing."""
        names = cls.__dataclass_fields__
        unknown = next((name for name in statements if name not in names), None)
        if unknown is not None:
            raise LgfError(f"nothing can be stated by {quoted(unknown)}; knowledge is stated by {', '.join(names)}.")
        known = cls() if beside is None else beside
        if not isinstance(known, cls):
            raise LgfError(f"knowledge is {quoted(known)}; give a Knowledge, or its fields as keywords: order=2.")
        return replace(known, **statements) if statements else known

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
        return tuple(sentence for _, sentence in self.described())

    def described(self) -> Iterator[tuple[str, str]]:
        """(field, sentence) for each piece of knowledge."""
        if isinstance(self.order, Mapping):
            for name, order in self.order.items():
                yield "order", f"The equation of {name} is of order {order}."
        elif self.order is not None:
            yield "order", f"The equation is of order {self.order}."
        if self.stable is not None:
            yield "stable", "The system is stable." if self.stable else "The system is not stable."
        if self.autonomous is not None:
            none, some = "Time does not appear by itself.", "Time appears by itself in the equation."
            yield "autonomous", none if self.autonomous else some
        for name, forcing in self.inputs.items():
            yield "inputs", f"The system is driven by {name} = {forcing.describe()}."
        if not self.inputs and self.forced is not None:
            yield "forced", "A known input drives the system." if self.forced else "No input drives the system."
        functions = {"": self.functions} if isinstance(self.functions, tuple) else self.functions or {}
        for row, names in functions.items():
            where = f" in the equation of {row}" if row else ""
            yield "functions", f"Functions allowed{where}: {', '.join(names) or 'none'}."
        if self.variables is not None:
            yield "variables", f"Variables allowed: {', '.join(self.variables)}."
        for term, (low, high) in (self.bounds or {}).items():
            yield "bounds", f"The coefficient of {read_row_term(term).place} {bounds_in_words(low, high)}."
        if self.constants is not None:
            yield "constants", f"Every other constant {bounds_in_words(*self.constants)}."
        for name, words, terms in (("required", "must", self.required), ("forbidden", "must not", self.forbidden)):
            if terms:
                yield name, f"Terms that {words} be there: {_places(terms)}."
        if self.vary == "none":
            yield "vary", "All constants are the same in every experiment."
        elif not isinstance(self.vary, str):
            yield "vary", f"The coefficient varies by experiment for: {_places(self.vary)}."
        if self.units:
            yield "units", describe_units(self.unit_pairs)
        for name in self.hidden or ():
            yield "hidden", f"Hidden: {name} was not measured; its equation and its path are inferred."
        for row, right in (self.known or {}).items():
            yield "known", f"Known right-hand side of {Variable.read(row).name}: {right}."
        for tie in map(read_shared, self.shared or ()):
            times = "equals" if tie.factor == 1.0 else f"is {tie.factor:g} times"
            yield "shared", f"The coefficient of {tie.left.place} {times} the coefficient of {tie.right.place}."
        for quantity in self.conserved or ():
            yield "conserved", f"Conserved: {quantity} does not change."
        if self.populations:
            divisible = "each such right-hand side is divisible by its own state"
            yield "populations", f"Populations: {', '.join(self.populations)}; {divisible}."


Texts = str | Sequence[str] | None


class Statements(TypedDict, total=False):
    """The fields of `Knowledge` as keywords, in every form in which a user may state them."""

    order: int | Mapping[str, int] | None
    stable: bool | None
    autonomous: bool | None
    forced: bool | None
    inputs: Mapping[str, Forcing]
    functions: Texts | Mapping[str, Sequence[str]]
    variables: Texts
    bounds: Mapping[str, Any] | None
    constants: str | Bounds | None
    required: Texts | Mapping[str, Texts]
    forbidden: Texts | Mapping[str, Texts]
    known: Texts | Mapping[str, str]
    shared: Texts
    conserved: Texts
    populations: Texts
    hidden: Texts
    vary: Texts | Mapping[str, Texts]
    units: Mapping[str, str] | None


def _units(units: Any) -> dict[str, str]:
    if not isinstance(units, Mapping):
        raise LgfError(f'units are {quoted(units)}; give them by quantity: {{"t": "s", "u": "m"}}.')
    named = {str(name).strip(): str(unit).strip() for name, unit in units.items()}
    for unit in named.values():
        read_unit(unit)
    return named


def _places(terms: tuple[str, ...]) -> str:
    return ", ".join(read_row_term(term).place for term in terms)


def _truth(name: str) -> Callable[[Any], bool]:
    def read(value: Any) -> bool:
        if np.ndim(value) or value not in (True, False):
            raise LgfError(f"{name} is {quoted(value)}; say True, False, or None for unknown.")
        return bool(value)

    return read


def _inputs(inputs: Any) -> dict[str, Forcing]:
    if not isinstance(inputs, Mapping):
        raise LgfError(f'inputs are {quoted(inputs)}; give a mapping from their names: {{"F": "cos(t)"}}.')
    for name, forcing in inputs.items():
        check_name(str(name))
        if not isinstance(forcing, Forcing):
            raise LgfError(f"the input {name} is a {type(forcing).__name__}; make it a Forcing first.")
    return dict(inputs)


def _orders(order: Any) -> int | dict[str, int]:
    return {str(name): _order(n) for name, n in order.items()} if isinstance(order, Mapping) else _order(order)


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


def _functions(functions: object) -> tuple[str, ...] | dict[str, tuple[str, ...]]:
    if isinstance(functions, Mapping):
        return {_state(row): _function_names(names) for row, names in functions.items()}
    return _function_names(functions)


def _function_names(functions: object) -> tuple[str, ...]:
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


def _vary(terms: Any) -> str | tuple[str, ...]:
    named = term_texts(terms, "terms that vary by experiment") or ("auto",)
    return named[0] if named in (("auto",), ("none",)) else named


_READERS: dict[str, Callable[[Any], Any]] = {
    "order": _orders,
    "stable": _truth("stable"),
    "autonomous": _truth("autonomous"),
    "forced": _truth("forced"),
    "inputs": _inputs,
    "functions": _functions,
    "variables": _variables,
    "bounds": lambda bounds: {term: read_bounds(term, limits) for term, limits in by_row_and_term(bounds).items()},
    "constants": lambda bounds: read_bounds("every constant", bounds),
    "required": lambda terms: term_texts(terms, "required terms"),
    "forbidden": lambda terms: term_texts(terms, "forbidden terms"),
    "known": read_known,
    "shared": lambda ties: tuple(str(read_shared(text)) for text in texts(ties, "shared constants")),
    "conserved": lambda sums: tuple(text.strip() for text in texts(sums, "conserved quantities")),
    "populations": lambda names: tuple(_state(name) for name in texts(names, "populations")),
    "hidden": _hidden,
    "vary": _vary,
    "units": _units,
}
"""How a field is read from what the user states."""
