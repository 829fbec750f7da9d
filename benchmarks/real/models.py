"""Predictions by equations: those that lgf discovers, linear ones, and PySINDy's."""

import json
import subprocess
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from benchmarks.peers.asking import LONGEST, interpreter
from benchmarks.real.protocol import Piece, Trial
from benchmarks.real.records import Experiment
from benchmarks.surroundings import ROOT
from lgf import LatentGrammarFlow, System
from lgf.data.column_roles import DEFAULT_INPUT
from lgf.data.observation import Observation
from lgf.errors import LgfError
from lgf.expression.frame import Frame, Variable
from lgf.search.candidate import Population, Proposal
from lgf.search.settings import DiscoverySettings, EnumerationSettings, ProposerShare
from lgf.smoothing.complete import complete
from lgf.solver.forcing import Forcing
from lgf.solver.solve import solve
from lgf.solver.trajectory import Trajectory

Simulate = Callable[[np.ndarray, Sequence[float], Forcing | None], Trajectory]
"""(times, initial state at the first one, input) -> trajectory."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """The predicted samples of each piece, and the equation behind them."""

    values: list[np.ndarray]
    equation: str
    constants: int
    in_sample: float | None  # root mean square error of the training samples, of the signal
    seconds: float


def discovered(test: Trial, settings: dict[str, Any]) -> Prediction:
    """The prediction of the equation that lgf discovers; `settings` are arguments of the estimator."""
    started = time.process_time()
    model = fitted(test, LatentGrammarFlow(**settings))
    return _prediction(test, model, time.process_time() - started)


def linear(test: Trial, order: int) -> Prediction:
    """The prediction of the linear equation of this order (1 or 2), fitted by lgf as a start without a search."""
    started = time.process_time()
    names = test.states
    own = [name + "'" * k for name in names for k in range(order)]
    terms = [*own, "1", *([DEFAULT_INPUT] if test.training[0].input is not None else [])]
    right = " + ".join("C" if term == "1" else f"C*{term}" for term in terms)
    text = "; ".join(f"{name}{chr(39) * order} = {right}" for name in names)
    settings = DiscoverySettings(enumeration=EnumerationSettings(iterations=0), proposers=(ProposerShare("none", 1.0),))
    model = LatentGrammarFlow(
        order=order, settings=settings, initial_equations=[text], proposers={"none": lambda *_: _Silent()}
    )
    return _prediction(test, fitted(test, model), time.process_time() - started)


class _Silent:
    """A proposer that proposes nothing."""

    def ask(self, n: int) -> list[Proposal]:
        """No proposals."""
        return []

    def tell(self, population: Population) -> None:
        """Does nothing."""


def fitted(test: Trial, model: LatentGrammarFlow) -> LatentGrammarFlow:
    """The model, fitted to the training experiments."""
    forcing = [_forcing(e) for e in test.inputs] if test.training[0].input is not None else None
    values = [e.values if len(test.states) > 1 else e.values[:, 0] for e in test.training]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # findings of the data check
        return model.fit(
            [e.t for e in test.training], values, states=test.states if len(test.states) > 1 else None, forcing=forcing
        )


def pysindy(test: Trial) -> Prediction:
    """The prediction of PySINDy's equation, of order 1 or 2 by its criterion; two states are of order 1."""
    started = time.process_time()
    answers = [_ask_pysindy(test, order) for order in ((1, 2) if len(test.states) == 1 else (1,))]
    best = min(answers, key=lambda answer: answer["criterion"])
    frame = best["frame"]
    system = System.read(best["equation"], frame=frame)

    def simulate(t: np.ndarray, initial: Sequence[float], forcing: Forcing | None) -> Trajectory:
        return solve(system, initial, t, {} if forcing is None else {DEFAULT_INPUT: forcing}, max_steps=20_000)

    values = [from_start(simulate, frame, test, piece) for piece in test.pieces]
    return Prediction(values, str(system), len(system.values), None, time.process_time() - started)


def from_start(simulate: Simulate, frame: Frame, test: Trial, piece: Piece) -> np.ndarray:
    """The samples of `piece.rest`, from the initial state that fits `piece.seen` best by least squares."""
    t = np.concatenate([piece.seen.t, piece.rest.t])
    n = len(piece.seen.t)
    whole = test.inputs[piece.index] if piece.index is not None else None
    forcing = None
    if piece.seen.input is not None:
        both = np.concatenate([piece.seen.input, np.asarray(piece.rest.input)])
        forcing = _forcing(whole or Experiment(t, np.zeros((len(t), 1)), both))

    def solved(initial: np.ndarray, times: np.ndarray) -> np.ndarray:
        trajectory = simulate(times, initial.tolist(), forcing)
        return np.column_stack([trajectory[name] for name in test.states])

    def residuals(initial: np.ndarray) -> np.ndarray:
        error = (solved(initial, piece.seen.t) - piece.seen.values) / test.scales
        return np.clip(np.nan_to_num(error, nan=1e3, posinf=1e3, neginf=-1e3), -1e3, 1e3).ravel()

    fits = []
    with np.errstate(all="ignore"):
        for guess in _guesses(frame, piece.seen):
            size = np.maximum(np.abs(guess), 1e-3 * np.abs(guess).max() + 1e-9)
            fits.append(least_squares(residuals, guess, x_scale=size, max_nfev=60))
        best = min(fits, key=lambda fit: fit.cost)
        return solved(best.x, t)[n:]


def _guesses(frame: Frame, seen: Experiment) -> list[np.ndarray]:
    """Initial states: the first sample with slope 0, and with the slope of the first samples."""
    few = min(len(seen.t), 4)
    slopes = np.polynomial.polynomial.polyfit(seen.t[:few] - seen.t[0], seen.values[:few], 1)[1]
    guesses = []
    for share in (1.0, 0.0):
        values = {Variable(n, 0): seen.values[0, k] for k, n in enumerate(frame.names)}
        values |= {Variable(n, 1): share * slopes[k] for k, n in enumerate(frame.names)}
        guesses.append(np.array([values.get(variable, 0.0) for variable in frame.variables]))
    return guesses if frame.dimension > len(frame.names) else guesses[:1]


def _prediction(test: Trial, model: LatentGrammarFlow, seconds: float) -> Prediction:
    run, values = model.run_, []
    for piece in test.pieces:
        if piece.index is None:
            forcing = None
            if piece.seen.input is not None:
                both = np.concatenate([piece.seen.input, np.asarray(piece.rest.input)])
                forcing = _forcing(Experiment(np.concatenate([piece.seen.t, piece.rest.t]), both[:, None], both))
            seen = piece.seen.values if len(test.states) > 1 else piece.seen.values[:, 0]
            predicted = model.predict_new(piece.rest.t, piece.seen.t, seen, forcing=forcing)
            values.append(predicted.reshape(len(piece.rest.t), -1))
        else:
            predicted = model.predict(piece.rest.t, experiment=piece.index)
            values.append(predicted.reshape(len(piece.rest.t), -1))
    best = run.best
    return Prediction(values, str(model.equation_), best.skeleton.n_constants, float(best.loss) ** 0.5, seconds)


def _forcing(experiment: Experiment) -> Forcing:
    return Forcing.from_samples(experiment.t, np.asarray(experiment.input))


def _ask_pysindy(test: Trial, order: int) -> dict[str, Any]:
    """PySINDy's answer for this order, with the frame."""
    if not interpreter("pysindy").exists():
        raise LgfError("PySINDy is not installed; run python -m benchmarks peers install pysindy.")
    forced = test.training[0].input is not None
    frame = Frame(tuple((name, order) for name in test.states), (DEFAULT_INPUT,) if forced else ())
    n = frame.dimension
    parts = []
    for experiment in test.training:
        observation = Observation(experiment.t, experiment.values, tuple(Variable(s) for s in test.states))
        smooth = complete(observation, replace(frame, inputs=())).trajectory.values.T
        parts.append(
            {
                "t": experiment.t.tolist(),
                "vector": smooth[:n].tolist(),
                "highest": smooth[n:].tolist(),
                "values": experiment.values.T.tolist(),
                "input": None if experiment.input is None else experiment.input.tolist(),
            }
        )
    following = [Variable(v.name, v.derivative + 1) for v in frame.variables]
    task = {
        "names": [*map(str, frame.variables), *frame.inputs],
        "equations": [str(v) for v in frame.highest],
        "next": [frame.variables.index(v) if v in frame.variables else -1 - frame.highest.index(v) for v in following],
        "measured": [frame.variables.index(Variable(name)) for name in frame.names],
        "experiments": parts,
    }
    run = subprocess.run(
        [interpreter("pysindy"), "-m", "benchmarks.real.pysindy_records"], input=json.dumps(task), capture_output=True,
        text=True, cwd=ROOT, timeout=LONGEST, check=True,
    )  # fmt: skip
    return json.loads(run.stdout.splitlines()[-1]) | {"frame": frame}
