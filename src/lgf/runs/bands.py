"""Bands: intervals around a trajectory that hold a new measurement with a given probability.

Three parts add up: the uncertainty of the constants and of the initial state (`lgf.runs.posterior`), the choice among
the equations that the data cannot tell apart, each with the weight exp(-difference of description length / 2), and the
spread of the residuals. The interval is that of the mixture of Student distributions which they make. It is computed,
not drawn at random.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit  # Student's t; scipy.stats takes long to import

from lgf.data.experiments import ForcingLike
from lgf.errors import LgfError, quoted
from lgf.expression.frame import Variable
from lgf.runs.forecast import forecast, relative_noise
from lgf.runs.posterior import Posterior, make_posterior
from lgf.runs.request import Run
from lgf.solver.forcing import Forcing
from lgf.solver.solve import Initial, state_vector
from lgf.solver.trajectory import Trajectory

_BISECTIONS = 40


class Band(NamedTuple):
    """A trajectory with the lower and upper ends of its interval, each a Trajectory with the same columns.

    For a variable that was measured the interval is for a new measurement, noise included. For any other variable it is
    for the value itself.
    """

    trajectory: Trajectory
    lower: Trajectory
    upper: Trajectory


@dataclass(frozen=True, eq=False)
class Mixture:
    """The equations that the data cannot tell apart, the chosen one first, with their weights."""

    posteriors: tuple[Posterior, ...]
    weights: np.ndarray


@dataclass(frozen=True, eq=False)
class Bands:
    """The bands of a run; what they share is computed once."""

    run: Run

    @cached_property
    def mixture(self) -> Mixture:
        """The equations with their weights; the chosen one has the largest."""
        return make_mixture(self.run)

    def of_experiment(self, experiment: int, t: ArrayLike | None, interval: float) -> Band:
        """The band around the forecast for this experiment, at its times or at t."""
        check_interval(interval)
        trajectory = forecast(self.run, experiment, t)
        unique, inverse = np.unique(trajectory.t, return_inverse=True)
        parts = [p.of_experiment(experiment, unique) for p in self.mixture.posteriors]
        return self._band(trajectory, [(m[inverse], v[inverse]) for m, v in parts], interval)

    def of_simulation(
        self,
        t: ArrayLike,
        initial: Initial,
        forcing: ForcingLike | Mapping[str, ForcingLike],
        interval: float,
        experiment: int | None = None,
    ) -> Band:
        """The band around the solution from this initial state, which is taken as exactly known.

        Constants that vary by experiment are those of `experiment`, or those of a new one.
        Equations that need an initial value or an input which the chosen one does not need do not take part, nor do
        others with a hidden state, whose initial value means something else in each of them.
        """
        check_interval(interval)
        trajectory = self.run.simulate(t, initial, forcing, experiment)
        inputs = self.run.simulation_inputs(t, forcing)
        start = state_vector(self.run.frame, initial)
        parts = []
        for posterior in self.mixture.posteriors:
            own = _shared_start(self.run, posterior, start)
            foreign = bool(self.run.request.problem.hidden) and posterior is not self.mixture.posteriors[0]
            if own is None or foreign or not _driven_by(posterior, inputs):
                empty = np.full((len(trajectory.t), len(posterior.candidate.skeleton.frame.columns)), np.nan)
                parts.append((empty, empty))
            else:
                parts.append(posterior.of_simulation(trajectory.t, own, inputs, experiment))
        return self._band(trajectory, parts, interval)

    def _band(self, trajectory: Trajectory, parts: list[tuple[np.ndarray, np.ndarray]], interval: float) -> Band:
        """The band from (mean, variance) of every equation; an equation without a solution does not take part."""
        lower, upper = np.full(trajectory.values.shape, np.nan), np.full(trajectory.values.shape, np.nan)
        freedom = min((p.freedom for p in self.mixture.posteriors), default=1)
        hidden = self.run.request.problem.hidden  # another equation means something else by the same name
        for c, variable in enumerate(trajectory.variables):
            means, deviations, weights = [], [], []
            for posterior, weight, (mean, variance) in zip(
                self.mixture.posteriors, self.mixture.weights, parts, strict=True
            ):
                columns = posterior.candidate.skeleton.frame.columns
                if variable not in columns or (variable.name in hidden and posterior is not self.mixture.posteriors[0]):
                    continue
                k = columns.index(variable)
                means.append(mean[:, k])
                noise = posterior.noise.get(variable, 0.0) * relative_noise(self.run, variable, mean[:, k])
                deviations.append(np.sqrt(variance[:, k] + noise**2))
                weights.append(weight)
            if means:
                ends = quantiles(np.array(means), np.array(deviations), np.array(weights), freedom, interval)
                known = np.isfinite(trajectory.values[:, c])
                lower[known, c], upper[known, c] = ends[0][known], ends[1][known]
        return Band(
            trajectory,
            Trajectory(trajectory.t, lower, trajectory.variables, trajectory.inputs, trajectory.status),
            Trajectory(trajectory.t, upper, trajectory.variables, trajectory.inputs, trajectory.status),
        )


def make_mixture(run: Run) -> Mixture:
    """The chosen equation and its equals that can be solved, with their weights."""
    chosen = run.best
    others = [c for c in run.indistinguishable if c.skeleton.structure != chosen.skeleton.structure]
    made = [(c, make_posterior(run, c)) for c in (chosen, *others)]
    usable = [(c, p) for c, p in made if p is not None]
    lengths = np.array([max(c.objective - chosen.objective, 0.0) for c, _ in usable])
    weights = np.exp(-0.5 * lengths)
    return Mixture(tuple(p for _, p in usable), weights / max(weights.sum(), 1e-300))


def quantiles(
    means: np.ndarray, deviations: np.ndarray, weights: np.ndarray, freedom: int, interval: float
) -> tuple[np.ndarray, np.ndarray]:
    """The ends [N] of the central interval of a mixture of Student distributions [component, N].

    Components that are NaN at a time do not take part there; NaN if none does.
    """
    usable = np.isfinite(means) & np.isfinite(deviations)
    shares = np.where(usable, weights[:, None], 0.0)
    total = shares.sum(axis=0)
    shares = np.divide(shares, total, out=np.zeros_like(shares), where=total > 0)
    centre, width = np.where(usable, means, 0.0), np.where(usable, np.maximum(deviations, 1e-300), 1.0)
    ends = []
    for probability in ((1 - interval) / 2, (1 + interval) / 2):
        single = centre + width * stdtrit(freedom, probability)
        low = np.min(np.where(usable, single, np.inf), axis=0, initial=np.inf)
        high = np.max(np.where(usable, single, -np.inf), axis=0, initial=-np.inf)
        low, high = np.where(total > 0, low, np.nan), np.where(total > 0, high, np.nan)
        for _ in range(_BISECTIONS if len(means) > 1 else 0):
            middle = 0.5 * (low + high)
            below = np.sum(shares * stdtr(freedom, (middle - centre) / width), axis=0) < probability
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        ends.append(0.5 * (low + high))
    return ends[0], ends[1]


def check_interval(interval: float) -> None:
    """Raises LgfError unless the interval is a probability between 0 and 1."""
    if isinstance(interval, bool) or not isinstance(interval, (int, float)) or not 0 < interval < 1:
        raise LgfError(f"the interval is {quoted(interval)}; give a probability between 0 and 1, such as 0.9.")


def _shared_start(run: Run, posterior: Posterior, start: np.ndarray) -> np.ndarray | None:
    """The initial state for the frame of another equation; None if a value is missing."""
    known = dict(zip(run.frame.variables, start, strict=True))
    variables: tuple[Variable, ...] = posterior.candidate.skeleton.frame.variables
    return np.array([known[v] for v in variables]) if all(v in known for v in variables) else None


def _driven_by(posterior: Posterior, inputs: Mapping[str, Forcing]) -> bool:
    """Whether every input of the equation is among these."""
    skeleton = posterior.candidate.skeleton
    return all(s.args[0] in inputs for s in skeleton.frame.input_symbols if s in skeleton.symbols)
