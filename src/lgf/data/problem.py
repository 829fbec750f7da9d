"""Problem: the experiments of one system and what is known about it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from lgf.data.knowledge import Knowledge
from lgf.data.noise import is_noise_alone
from lgf.data.observation import Observation
from lgf.data.row_knowledge import row_knowledge
from lgf.equation.dimensions import Units, quantity_units
from lgf.equation.units import dimension, read_unit, unit_text
from lgf.errors import LgfError, quoted
from lgf.expression.frame import HIGHEST_ORDER, Frame
from lgf.expression.tree import Expression
from lgf.solver.forcing import Forcing

MOST_SAMPLES = 200_000  # of all experiments: a fit of more takes seconds, and they add nothing


@dataclass(frozen=True, eq=False)
class Problem:
    """One or more experiments of the same system, and the prior knowledge about it.

    Experiments may measure different states. `unmeasured` are states of the system that none of these measures.
    `likely_orders` are those that the data ask for (`data.orders`); what is known comes first.
    """

    observations: tuple[Observation, ...]
    knowledge: Knowledge = field(default_factory=Knowledge)
    unmeasured: tuple[str, ...] = ()
    likely_orders: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self):
        if isinstance(self.observations, Observation):
            object.__setattr__(self, "observations", (self.observations,))
        object.__setattr__(self, "observations", tuple(self.observations))
        if not self.observations:
            raise LgfError("there is no experiment in the data; give at least one.")
        if self.n_samples > MOST_SAMPLES:
            every = -(-self.n_samples // MOST_SAMPLES)
            raise LgfError(
                f"there are {self.n_samples:,} samples but at most {MOST_SAMPLES:,} are searched; "
                f"average every {every}, or keep one of them."
            )
        for observation in self.observations:
            self._check(observation)
        self._check_knowledge()

    def _check(self, observation: Observation) -> None:
        where = f"experiment {quoted(observation.name)}" if observation.name else "the data"
        unknown = next((v for v in observation.initial if v.name not in self.states), None)
        if unknown is not None:
            raise LgfError(
                f"the initial state gives {quoted(str(unknown))}, which is not measured; the states are "
                f"{', '.join(self.states)}."
            )
        for name in observation.states:
            order = self._order_of(name)
            if order is None:
                continue
            highest = max(v.derivative for v in observation.columns if v.name == name)
            if highest > order:
                raise LgfError(
                    f"{where}: derivative {highest} of {name} was measured but order {order} is said to be known; "
                    f"leave the order open or set it to at least {highest}."
                )
            values = [v for v in observation.initial if v.name == name]
            if any(v.derivative >= order for v in values):
                raise LgfError(
                    f"{where}: the initial state has {len(values)} values but an equation of "
                    f"order {order} takes {order}; give {name}(t0) and its derivatives below the order."
                )
        if self.knowledge.forced is False and observation.inputs:
            raise LgfError(f"{where} has a forcing but the system is said to be unforced; drop one of the two.")

    def _check_knowledge(self) -> None:
        measured = next((name for o in self.observations for name in o.states if name in self.hidden), None)
        if measured is not None:
            raise LgfError(f"{measured} is said to be hidden but is measured; drop one of the two.")
        order = next((self.knowledge.order_of(name) for name in self.hidden), None)
        if order not in (None, 1):
            raise LgfError(
                f"the hidden state {self.hidden[0]} is said to be of order {order}, but a hidden state is of order 1; "
                f"give the order of each state: {self.hidden[0]}=1."
            )
        frame, known = self.frames[-1], self.knowledge
        row_knowledge(known, frame)  # reads every text
        names = ("t", *map(str, frame.columns))
        for name in known.variables or ():
            if name not in names:
                raise LgfError(f"the variable {quoted(name)} is not known; choose from {', '.join(names)}.")
        self._check_units()
        for what, by_state in (("order", known.order), ("functions", known.functions)):
            for name in by_state if isinstance(by_state, Mapping) else ():
                if name not in self.states:
                    given = f"the {what} of {quoted(name)} {'is' if what == 'order' else 'are'} given"
                    raise LgfError(f"{given}; the states are {', '.join(self.states)}.")

    def _check_units(self) -> None:
        """Raises LgfError if a unit is of nothing in the data, or a derivative has another than its state per time."""
        frame, units = self.frames[-1], self.knowledge.units or {}
        names = ("t", *map(str, frame.columns), *frame.inputs)
        unknown = next((name for name in units if name not in names), None)
        if unknown is not None:
            raise LgfError(
                f"a unit of {quoted(unknown)} is given; the quantities of the data are {', '.join(names[:12])}."
            )
        for variable in frame.columns:
            given = units.get(str(variable))
            state = {name: unit for name, unit in units.items() if name in ("t", variable.name)}
            if variable.derivative == 0 or given is None or len(state) < 2:
                continue
            expected = quantity_units(tuple(state.items()), [variable])[str(variable)]
            if dimension(expected) != dimension(read_unit(given)):
                raise LgfError(
                    f"{variable} is in {given}, but {variable.name} in {state[variable.name]} and t in {state['t']}; "
                    f"convert the values of {variable} to {unit_text(expected)}."
                )

    def _order_of(self, state: str) -> int | None:
        """The known order of this state, from its known equation if it has one, or the likely one; None if unknown."""
        right = (self.knowledge.known or {}).get(state)
        order = self.knowledge.order_of(state)
        if order is None and right is not None:
            primes = re.findall(rf"(?<!\w){state}\b('*)", right)
            order = min(max((len(p) for p in primes), default=0) + 1, HIGHEST_ORDER)
        return self.likely_orders.get(state) if order is None else order

    @cached_property
    def states(self) -> tuple[str, ...]:
        """The names of the states, in the order of their first column, those that are not measured last."""
        measured = (name for o in self.observations for name in o.states)
        return tuple(dict.fromkeys([*measured, *self.unmeasured, *self.hidden]))

    @property
    def hidden(self) -> tuple[str, ...]:
        """The states that are known to exist and were measured in no experiment."""
        return self.knowledge.hidden or ()

    def part(self, experiments: Sequence[int]) -> "Problem":
        """The problem with these experiments only; its states are the same."""
        observations = tuple(self.observations[i] for i in experiments)
        return replace(self, observations=observations, unmeasured=self.states)

    @property
    def experiment_names(self) -> list[str]:
        """The names of the experiments; one without a name has its number."""
        return [o.name or f"Experiment {number}" for number, o in enumerate(self.observations, start=1)]

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The names of the known inputs."""
        names = [*self.knowledge.inputs, *(name for o in self.observations for name in o.inputs)]
        return tuple(dict.fromkeys(names))

    @cached_property
    def frames(self) -> tuple[Frame, ...]:
        """The frames that a system may have, lowest order first.

        Orders that are not known are 1 and 2 for a single state, as far as the measured derivatives allow, and the
        least possible for several.
        """
        highest = dict.fromkeys(self.states, 1)
        for observation in self.observations:
            for name, derivative in observation.columns:
                highest[name] = max(highest[name], derivative)
        known = {name: self._order_of(name) for name in self.states}
        if len(self.states) == 1 and known[self.states[0]] is None:
            name, least = self.states[0], highest[self.states[0]]
            return tuple(Frame(((name, order),), self.inputs) for order in range(least, max(2, least) + 1))
        return (Frame(tuple((name, known[name] or highest[name]) for name in self.states), self.inputs),)

    @cached_property
    def formulas(self) -> tuple[tuple[str, Expression], ...]:
        """(input, formula) of the inputs that are the same formula in every experiment."""
        formulas: list[tuple[str, Expression]] = []
        for name in self.inputs:
            signals = [self.signals(e).get(name) for e in range(len(self.observations))]
            distinct = {None if s is None else s.formula for s in signals}
            formula = distinct.pop() if len(distinct) == 1 else None
            if formula is not None:
                formulas.append((name, formula))
        return tuple(formulas)

    @cached_property
    def held_inputs(self) -> frozenset[str]:
        """The sampled inputs that are held from each sample to the next wherever they change, as those of a switch."""
        held = set()
        for name in self.inputs:
            signals = [self.signals(e).get(name) for e in range(len(self.observations))]
            changing = [s for s in signals if s is not None and (s.samples is None or np.ptp(s.samples[:, 1]) > 0.0)]
            if changing and all(s.has_steps for s in changing):
                held.add(name)
        return frozenset(held)

    @property
    def units(self) -> Units:
        """(quantity, unit) of the quantities whose unit is known."""
        return self.knowledge.unit_pairs

    @property
    def forced(self) -> bool | None:
        """Whether a known input drives the system; None if unknown."""
        return True if self.inputs else self.knowledge.forced

    @property
    def n_samples(self) -> int:
        """The number of measured values in all experiments."""
        return sum(o.n_samples for o in self.observations)

    @cached_property
    def variation(self) -> float:
        """The standard deviation of the measured values relative to their root mean square; the mean over columns."""
        shares = []
        for variable in dict.fromkeys(v for o in self.observations for v in o.columns):
            columns = [column for o in self.observations if (column := o.column(variable)) is not None]
            values = np.concatenate(columns)
            shares.append(float(np.nanvar(values) / max(np.nanmean(values**2), 1e-300)))
        return float(np.sqrt(np.mean(shares)))

    def signals(self, experiment: int = 0) -> dict[str, Forcing]:
        """The known inputs of this experiment by name: its own, else those known for all."""
        return {**self.knowledge.inputs, **self.observations[experiment].inputs}


def shaken(signals: Mapping[str, Forcing], t: np.ndarray) -> bool:
    """Whether a known input changes at every sample, as random excitation does: its effect then looks like noise."""
    return any(is_noise_alone([forcing.values(t)]) for forcing in signals.values())
