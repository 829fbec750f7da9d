"""The scikit-learn estimator."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, Unpack, overload

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from lgf.data import Knowledge, Problem, make_inputs, observations_from_arrays
from lgf.data.array_times import TimeScale, time_scale, times_as_numbers, times_in_scale
from lgf.data.array_values import columns_of_rows, without_times
from lgf.data.knowledge import Statements
from lgf.data.quantities import take_units
from lgf.data.row_terms import texts
from lgf.equation.units import unit_text
from lgf.errors import LgfError, quoted
from lgf.expression.frame import Variable
from lgf.report.figures import front_figure, prediction_front_figure, trajectory_figure
from lgf.report.live import live_progress
from lgf.report.page import run_html, write_report
from lgf.report.phase_portrait import phase_portrait
from lgf.report.run_view import run_view
from lgf.runs.bands import Band, Bands
from lgf.runs.equations import front_rows
from lgf.runs.folder import holds_run, read_run, write_run
from lgf.runs.forecast import forecast
from lgf.runs.lock import locked
from lgf.runs.new_experiment import continued
from lgf.runs.presets import checked_settings, model_named, preset_named, with_budget
from lgf.runs.quantities import (
    band_in_quantities,
    columns_in_quantities,
    initial_in_numbers,
    inputs_in_numbers,
    states_in_quantities,
    times_in_numbers,
    units_of,
)
from lgf.runs.request import Request, Run, execute, warn
from lgf.runs.suggestion import Allowed, Suggestion, allowed_starts, suggest, useful
from lgf.search.mixture import MakeProposer
from lgf.search.settings import DiscoverySettings
from lgf.solver.trajectory import Trajectory

_RENAMED = {"seed": "random_state", "progress": "verbose", "warm_start": "initial_equations"}


class Prediction(NamedTuple):
    """Predicted states and the ends of their interval, each (N,), or (N, n) for n states."""

    values: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


class LatentGrammarFlow(BaseEstimator):
    """Discovers the ordinary differential equation behind one or more measured records.

    knowledge            what is known about the system: a `Knowledge`, or its fields as keywords, such as order=2 and
                         hidden="lynx"; keywords are stated beside a `Knowledge` that is given
    model                "standard", "b1", "b2", "b3", or the path of a grammar or trained model
    preset               "default" or "paper"; `settings` (a DiscoverySettings) overrides it
    proposers            the user's own proposers by name; each needs a share in `settings`
    initial_equations    equations to try first, as text
    max_evaluations, max_seconds  budgets of the search; with max_evaluations the result is the same on every machine
    random_state, n_jobs the same seed gives the same result at any number of jobs
    verbose              whether `fit` shows its progress, in a terminal or a notebook

    After `fit`:

    equation_            the System: print it, or use .latex() .sympy() .python() .constants .errors .complexity
    front_               DataFrame of the Pareto front, `chosen` marking the equation
    prediction_front_    DataFrame of the simplest equation at each level of prediction error, `chosen` marking one
    verdict_             sentences on what predictions and residuals say about the equation
    constants_           DataFrame of the constants: value, error, and spread and values if it varies by experiment
    indistinguishable_   DataFrame of the equations that fit about as well as the chosen one
    equivalents_         systems that give exactly the same measured states with another hidden state
    findings_            findings of the data check
    origin_              the date from which the times count, if they were dates; None in a loaded estimator
    run_, discovery_     everything else; discovery_ is None in a loaded estimator

    >>> import numpy as np
    >>> t = np.linspace(0, 4, 60)
    >>> model = LatentGrammarFlow(order=1, max_evaluations=40).fit(t, 3 * np.exp(-0.5 * t), initial=3.0)
    >>> print(model.equation_)
    u' = -0.5 u
    """

    def __init__(
        self,
        knowledge: Knowledge | None = None,
        *,
        model: str | Path = "standard",
        preset: str = "default",
        settings: DiscoverySettings | None = None,
        proposers: Mapping[str, MakeProposer] | None = None,
        initial_equations: Sequence[str] = (),
        max_evaluations: int | None = None,
        max_seconds: float | None = None,
        random_state: int = 0,
        n_jobs: int = 1,
        verbose: bool = False,
        **statements: Unpack[Statements],
    ):
        for name in _RENAMED.keys() & statements.keys():
            raise LgfError(f"{quoted(name)} is called {_RENAMED[name]}, since version 0.3.")
        # scikit-learn sees one parameter, the knowledge, which is kept as it is if no keyword states anything.
        self.knowledge = Knowledge.stated(statements, knowledge) if statements else knowledge
        self.model = model
        self.preset = preset
        self.settings = settings
        self.proposers = proposers
        self.initial_equations = initial_equations
        self.max_evaluations = max_evaluations
        self.max_seconds = max_seconds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        t: Any,
        values: Any,
        *,
        states: Sequence[str] | Sequence[Sequence[str]] | None = None,
        derivative: int | Sequence[int] | Mapping[str, int] | None = None,
        initial: Any = None,
        forcing: Any = None,
        weights: Any = None,
    ) -> "LatentGrammarFlow":
        """The estimator itself, fitted to `values` measured at times `t`.

        Times may be dates, periods or durations; they count in the largest unit of time that is no longer than their
        usual step (`units_`), dates from the first one. Several experiments are lists of arrays. A table of values has
        one column per state, named by `states` (or by a DataFrame or records, whose column of the times is left out);
        experiments may have different columns. `derivative` is the measured quantity: 0 for u, 1 for u', 2 for u'', one
        of these per column of one state, or by state: {"x2": 2}. `initial` holds the values known at the first sample
        of each experiment, u(t[0]), u'(t[0]), ..., or a mapping from names to values; the others are fitted. `forcing`
        is a formula in t, a function, samples at t, a mapping from the names of inputs to these, or one of these for
        each experiment.
        """
        t, values = columns_of_rows(t), without_times(columns_of_rows(t), columns_of_rows(values))
        known = Knowledge.stated({}, self.knowledge)
        scale, given = time_scale(t, (known.units or {}).get("t")), known.units
        if scale is not None:
            t, given = times_in_scale(t, scale), {**(given or {}), "t": scale.unit}
        t, values, forcing, initial, units = take_units(t, values, forcing, initial, states, derivative, given)
        scalar = initial is not None and not isinstance(initial, Mapping) and not np.ndim(_arrays(initial))
        observations = observations_from_arrays(
            t, values, states=states, derivative=derivative, forcing=forcing, weights=weights,
            initial=(initial,) if scalar else initial, by_name=bool(known.hidden),
        )  # fmt: skip
        grammar, trained = model_named(self.model)
        request = Request(
            Problem(observations, replace(known, units=units or None)), grammar, self.search_settings(),
            seed_of(self.random_state), texts(self.initial_equations, "initial equations"), trained,
        )  # fmt: skip
        warn(request.findings)
        makers, n_jobs = _makers(self.proposers), jobs_of(self.n_jobs)
        self.origin_ = None if scale is None else scale.origin
        with live_progress(request) if self.verbose else nullcontext() as notify:
            return self._store(execute(request, proposers=makers, n_jobs=n_jobs, notify=notify))

    def search_settings(self) -> DiscoverySettings:
        """The settings that the parameters give."""
        settings = self.settings
        settings = preset_named(self.preset) if settings is None else checked_settings(settings)
        return with_budget(settings, self.max_evaluations, self.max_seconds)

    def _store(self, run: Run) -> "LatentGrammarFlow":
        self.run_ = run
        self.discovery_ = run.discovery
        self.equation_ = run.system
        self.findings_ = run.request.findings
        self.equivalents_ = [run.display_system(c) for c in run.equivalents]
        view = run_view(run)
        self.front_ = pd.DataFrame(front_rows(view.front))
        self.prediction_front_ = pd.DataFrame(view.prediction_rows)
        self.constants_ = pd.DataFrame(view.constant_rows)
        self.verdict_ = " ".join(view.sentences)
        self.indistinguishable_ = pd.DataFrame(front_rows(view.equal))
        return self

    @property
    def units_(self) -> dict[str, str]:
        """The unit of time, of every variable and of the inputs, as far as they are known."""
        check_is_fitted(self, "run_")
        return {name: unit_text(unit) for name, unit in units_of(self.run_).items()}

    @overload
    def predict(
        self, t: Any, experiment: int = 0, interval: None = None, *, quantities: Literal[False] = False
    ) -> np.ndarray: ...
    @overload
    def predict(
        self, t: Any, experiment: int = 0, *, interval: float, quantities: Literal[False] = False
    ) -> "Prediction": ...
    @overload
    def predict(
        self, t: Any, experiment: int = 0, interval: float | None = None, *, quantities: Literal[True]
    ) -> Any: ...
    def predict(self, t: Any, experiment: int = 0, interval: float | None = None, *, quantities: bool = False) -> Any:
        """The solution of the equation at the times t, NaN where it blows up: (N,), or (N, n) for n states.

        It starts from the given or fitted initial state of this experiment, with that experiment's forcing. After the
        last sample, what is left of correlated residuals there is added (`lgf.runs.forecast`). With
        interval=0.9 it is a Prediction (values, lower, upper): a new measurement of the state lies between lower and
        upper with this probability; for a state that was not measured, its value does. t may be a pint quantity. With
        quantities=True the result has units; of several states it is a mapping from names.
        """
        check_is_fitted(self, "run_")
        times = self._times(t)
        give = partial(states_in_quantities, self.run_) if quantities else self._states
        if interval is None:
            return give(forecast(self.run_, experiment, times))
        band = Bands(self.run_).of_experiment(experiment, times, interval)
        return Prediction(*(give(part) for part in band))

    def predict_new(self, t: ArrayLike, seen_t: ArrayLike, seen: ArrayLike, *, forcing: Any = None) -> np.ndarray:
        """The prediction at times t of a new experiment with the samples `seen` at `seen_t`: (N,), or (N, n).

        Its initial state, and its constants that vary by experiment, are fitted to these samples and to what is usual
        among the experiments of the data. NaN where the solution blows up.
        """
        check_is_fitted(self, "run_")
        names = self.run_.frame.names
        (observation,) = observations_from_arrays(
            self._times(seen_t, "seen_t"), _arrays(seen), states=names if len(names) > 1 else None
        )
        if len(names) == 1:
            observation = replace(observation, columns=(Variable(names[0]),))
        return self._states(continued(self.run_, observation, self._times(t), _arrays(forcing)))

    def _times(self, t: Any, name: str = "t") -> np.ndarray:
        """The times as numbers, as they count in the data."""
        scale = TimeScale(self.units_.get("t") or "second", getattr(self, "origin_", None))
        return _numbers(times_as_numbers(_arrays(times_in_numbers(self.run_, t)), scale), name)

    def _states(self, solved: Trajectory) -> np.ndarray:
        columns = [solved[name] for name in self.run_.frame.names]
        return columns[0] if len(columns) == 1 else np.column_stack(columns)

    def score(self, t: ArrayLike, values: ArrayLike, experiment: int = 0) -> float:
        """R2 of the predicted trajectory over all states; 1 is perfect, minus infinity if it blows up."""
        estimate = self.predict(t, experiment)
        y = _numbers(values, "the values") if estimate.ndim == 1 else np.asarray(values, float)
        if y.shape != estimate.shape:
            raise LgfError(
                f"the values have shape {np.shape(values)} but the prediction {estimate.shape}; give one value per "
                "time and state."
            )
        measured = ~np.isnan(y)
        if not np.all(np.isfinite(estimate[measured])):
            return float("-inf")
        spread = float(np.nansum((y - np.nanmean(y, axis=0)) ** 2))
        error = float(np.sum((y[measured] - estimate[measured]) ** 2))
        return 1.0 - error / spread if spread > 0.0 else float("-inf")

    @overload
    def simulate(
        self, t: Any, initial: Any, forcing: Any = None, experiment: int | None = None, interval: None = None, *,
        quantities: Literal[False] = False,
    ) -> Trajectory: ...  # fmt: skip
    @overload
    def simulate(
        self, t: Any, initial: Any, forcing: Any = None, experiment: int | None = None, *, interval: float,
        quantities: Literal[False] = False,
    ) -> Band: ...  # fmt: skip
    @overload
    def simulate(
        self, t: Any, initial: Any, forcing: Any = None, experiment: int | None = None, interval: float | None = None,
        *, quantities: Literal[True],
    ) -> Any: ...  # fmt: skip
    def simulate(
        self,
        t: ArrayLike,
        initial: Any,
        forcing: Any = None,
        experiment: int | None = None,
        interval: float | None = None,
        *,
        quantities: bool = False,
    ) -> Any:
        """The Trajectory (["prey"], .u .du .d2u .status) from a new initial state at t[0], with optional new inputs.

        `initial` has one value per variable of the state vector, in order or by name: {"prey": 8.3, "predator": 3.4}.
        Constants that vary by experiment are those of `experiment`, or their means.
        With interval=0.9 it is a Band (trajectory, lower, upper): a new measurement lies between lower and upper with
        this probability; of a variable that was not measured, its value does. The initial state is taken as exact.
        Times, initial values and named inputs may be pint quantities. With quantities=True the result is a mapping from
        names (t, u, u', ...; of a band also lower u, upper u, ...) to quantities.
        """
        check_is_fitted(self, "run_")
        run = self.run_
        times = self._times(t)
        start, inputs = initial_in_numbers(run, initial), inputs_in_numbers(run, _arrays(forcing))
        if not isinstance(start, Mapping):
            start = _numbers(start, "initial").tolist()
        if not np.all(np.isfinite(_numbers(list(start.values() if isinstance(start, Mapping) else start), "initial"))):
            raise LgfError(f"the initial state is {quoted(initial)}; give finite numbers.")
        if interval is not None:
            band = Bands(run).of_simulation(times, start, inputs, interval, experiment)
            return band_in_quantities(run, band) if quantities else band
        solved = run.simulate(times, start, inputs, experiment)
        return columns_in_quantities(run, solved) if quantities else solved

    def suggest(
        self,
        n: int = 1,
        *,
        starts: Mapping[str, Sequence[float]] | None = None,
        durations: Sequence[float] | None = None,
        samples: int | None = None,
        forcings: Any = None,
    ) -> list[Suggestion]:
        """The experiments that tell the equally good equations apart best: print them, or use .start .t .inputs.

        They are n, or fewer if further ones would tell nothing; LgfError if no experiment tells any equation apart.
        `starts` are ranges of initial values by variable, {"u": (-1, 2)}; `durations` and `forcings` are lists to
        choose from; `samples` is the number of samples. What is not given is as in the data.
        """
        check_is_fitted(self, "run_")
        window = self.run_.request.problem.observations[0].t
        forcings = forcings if forcings is None or isinstance(forcings, (list, tuple)) else [forcings]
        allowed = Allowed(
            starts=allowed_starts(starts or {}),
            durations=None if durations is None else tuple(_numbers(durations, "durations").tolist()),
            samples=samples,
            inputs=None if forcings is None else tuple(make_inputs(_arrays(f), window) for f in forcings),
        )
        return useful(suggest(self.run_, n, allowed))

    def plot(self) -> Figure:
        """A matplotlib figure of the data, the trajectory with its band, and the residuals, for each experiment."""
        check_is_fitted(self, "run_")
        return trajectory_figure(self.run_)

    def plot_front(self) -> Figure:
        """A matplotlib figure of the Pareto front: error against complexity."""
        check_is_fitted(self, "run_")
        return front_figure(self.run_)

    def plot_phase(self) -> Figure:
        """A matplotlib figure of trajectories, vector field and equilibria, in planes of two variables."""
        check_is_fitted(self, "run_")
        portrait = phase_portrait(self.run_)
        if portrait is None:
            raise LgfError("one equation of first order has no phase portrait; it needs two variables.")
        return portrait

    def plot_prediction_front(self) -> Figure:
        """A matplotlib figure of the simplest equation at each level of prediction error."""
        check_is_fitted(self, "run_")
        return prediction_front_figure(self.run_)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        if not hasattr(self, "run_"):
            return {"text/plain": repr(self)}
        return {"text/plain": str(self.equation_), "text/html": run_html(self.run_)}

    def save(self, folder: str | Path) -> None:
        """Writes the run with its figures and its report into the folder."""
        check_is_fitted(self, "run_")
        path = folder_named(folder)
        with locked(path) if holds_run(path) else nullcontext():
            write_run(self.run_, path, anew=True)
        write_report(self.run_, path)

    @classmethod
    def load(cls, folder: str | Path) -> "LatentGrammarFlow":
        """The estimator fitted by the run in the folder."""
        run = read_run(folder_named(folder))
        limits = run.request.settings.search
        return cls(
            run.request.problem.knowledge, model=run.request.trained or run.request.grammar.name,
            settings=run.request.settings, max_evaluations=limits.max_evaluations, max_seconds=limits.max_seconds,
            initial_equations=run.request.start, random_state=run.request.seed,
        )._store(run)  # fmt: skip


def folder_named(folder: Any) -> Path:
    """The path of a folder that the user names."""
    if not isinstance(folder, (str, PathLike)):
        raise LgfError(f"the folder is {quoted(folder)}; give its name.")
    return Path(folder).expanduser()


def seed_of(seed: Any) -> int:
    """The seed, if it is one."""
    if isinstance(seed, bool) or not hasattr(seed, "__index__") or seed < 0:
        raise LgfError(f"random_state is {quoted(seed)}; give a whole number that is not negative.")
    return int(seed)


def jobs_of(n_jobs: Any) -> int:
    """The number of jobs, if it is one."""
    if isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__") or (n_jobs < 1 and n_jobs != -1):
        raise LgfError(f"n_jobs is {quoted(n_jobs)}; give a number of processors, or -1 for all.")
    return int(n_jobs)


def _numbers(values: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(_arrays(values), float).ravel()
    except (TypeError, ValueError, OverflowError) as error:
        raise LgfError(f"{name} cannot be read as an array of numbers ({error}).") from error


def _arrays(values: Any) -> Any:
    """The values with pandas objects, alone or in a list, converted to arrays."""
    if hasattr(values, "to_numpy"):
        return values.to_numpy()
    return [_arrays(v) for v in values] if isinstance(values, (list, tuple)) else values


def _makers(proposers: Any) -> Mapping[str, MakeProposer]:
    if proposers is None:
        return {}
    if not isinstance(proposers, Mapping) or not all(callable(make) for make in proposers.values()):
        raise LgfError(f"proposers is {quoted(proposers)}; give a mapping from a name to a function that makes one.")
    return proposers
