"""Proposals, fitted candidates, and the population of all candidates."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from lgf.data.problem import Problem
from lgf.equation.operator_form import in_operator_form
from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System
from lgf.fit.constants import ConstantFit
from lgf.fit.segments import Shooting
from lgf.fit.sharing import COMMON, Sharing
from lgf.grammar import Derivation
from lgf.settings.ranges import Tally
from lgf.solver.stability import Stability

GIVEN = "given"  # the origin of the user's equations


@dataclass(frozen=True, eq=False)
class Proposal:
    """A skeleton to fit, its length in bits, and the proposer it came from."""

    skeleton: Skeleton
    bits: float
    derivation: Derivation | None = None
    origin: str = ""
    start: tuple[float, ...] | None = None  # initial guess of the constants
    sharing: Sharing = COMMON  # the constants that vary by experiment
    shooting: Shooting | None = None  # how the fit goes on from the start
    again: bool = False  # the structure may be fitted again, from another start


@dataclass(frozen=True)
class Prediction:
    """Errors of predictions, relative to the measured signal; None where there was nothing to predict."""

    forecast: float | None  # root mean square error of forecasts from rolling origins
    left_out: float | None  # root mean square error on left-out experiments
    surprise: float  # the largest z^2 of a prediction; NaN without predictions
    growth: float = 0.0  # logarithm of the factor by which a disturbed start grows, where there may be chaos

    @property
    def error(self) -> float | None:
        """The geometric mean of the errors that exist."""
        errors = [e for e in (self.forecast, self.left_out) if e is not None]
        return math.prod(errors) ** (1 / len(errors)) if errors else None


@dataclass(frozen=True)
class Noise:
    """Residuals that are correlated in time."""

    correlation_time: float  # in units of t
    share: float  # of the residuals' variance; the rest is white


@dataclass(frozen=True, eq=False)
class Candidate:
    """A fitted proposal with its objective; smaller is better."""

    proposal: Proposal
    fit: ConstantFit
    complexity: Tally
    objective: float
    stability: Stability | None = None
    prediction: Prediction | None = None  # how well it predicts what its fit did not see
    noise: Noise | None = None  # correlated residuals; None = white

    @property
    def skeleton(self) -> Skeleton:
        """The skeleton that was fitted."""
        return self.fit.skeleton

    @property
    def loss(self) -> float:
        """Relative mean square error of the solved trajectory."""
        return self.fit.loss

    def shown(self, problem: Problem) -> System:
        """The system as it is shown: in operator form, with standard errors, formulas of the inputs and units."""
        system = System(self.skeleton, self.fit.values, self.fit.errors, problem.formulas, problem.units)
        return in_operator_form(system, self.fit.covariance)


class Population:
    """All candidates of a search, one per structure. It is the only mutable object of a search."""

    def __init__(self, candidates: Iterable[Candidate] = ()):
        self._by_structure: dict[str, Candidate] = {}
        self._tried: set[str] = set()
        for candidate in candidates:
            self.add(candidate)

    def __len__(self) -> int:
        return len(self._by_structure)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self._by_structure.values())

    def __contains__(self, structure: str) -> bool:
        return structure in self._tried

    def get(self, structure: str) -> Candidate | None:
        """The candidate with this structure."""
        return self._by_structure.get(structure)

    def claim(self, structure: str) -> bool:
        """Whether this structure is new. The call marks it as tried."""
        if structure in self._tried:
            return False
        self._tried.add(structure)
        return True

    def add(self, candidate: Candidate) -> None:
        """Adds the candidate; of two with the same structure the better one stays, with the origin of the first."""
        structure = candidate.skeleton.structure
        self._tried.add(structure)
        previous = self._by_structure.get(structure)
        if previous is None:
            self._by_structure[structure] = candidate
        elif candidate.objective < previous.objective:
            proposal = replace(candidate.proposal, origin=previous.proposal.origin)
            self._by_structure[structure] = replace(candidate, proposal=proposal)

    def best(self, k: int = 1) -> list[Candidate]:
        """The k candidates with the smallest objective; ties go to the earlier one."""
        return sorted(self, key=lambda c: c.objective)[:k]

    def front(self) -> list[Candidate]:
        """The Pareto front of complexity and loss, simplest first."""
        front: list[Candidate] = []
        for candidate in sorted(self, key=lambda c: (c.complexity, c.loss)):
            if math.isfinite(candidate.loss) and (not front or candidate.loss < front[-1].loss):
                front.append(candidate)
        return front
