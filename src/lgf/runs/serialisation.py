"""Conversion of problems, settings and candidates to plain JSON data and back. Numbers are exact."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from lgf.data.knowledge import Knowledge
from lgf.data.observation import Observation
from lgf.data.problem import Problem
from lgf.equation.skeleton import Skeleton
from lgf.expression.frame import Frame, Variable
from lgf.expression.parse import read_expression
from lgf.expression.print import plain
from lgf.fit.constants import ConstantFit
from lgf.fit.segments import Shooting
from lgf.fit.sharing import Sharing, Varying
from lgf.search.candidate import Candidate, Noise, Prediction, Proposal
from lgf.search.loop import Iteration
from lgf.search.notes import Note, NoteKind
from lgf.search.settings import DiscoverySettings
from lgf.search.verdict import Reason, Trust, Verdict
from lgf.solver.forcing import Forcing
from lgf.solver.stability import Stability, StabilityKind
from lgf.solver.trajectory import SolveStatus

Plain = dict[str, Any]


def jsonable(value: Any, unbounded: Callable[[float], Any] = str) -> Any:
    """The value in JSON types; infinities and NaN become text, or what `unbounded` makes of them."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(inner, unbounded) for key, inner in value.items()}
    if isinstance(value, np.ndarray):
        return jsonable(value.tolist(), unbounded)
    if isinstance(value, (list, tuple)):
        return [jsonable(inner, unbounded) for inner in value]
    if isinstance(value, np.generic):
        return jsonable(value.item(), unbounded)
    if isinstance(value, float) and not math.isfinite(value):
        return unbounded(value)
    return value


def for_page(value: Any) -> Any:
    """The value in JSON types; infinities and NaN become null, which a plot leaves out."""
    return jsonable(value, lambda _: None)


@cache
def _reader() -> TypeAdapter[DiscoverySettings]:
    return TypeAdapter(DiscoverySettings)  # takes long to make, and a new search does not read settings


def problem_to_plain(problem: Problem) -> Plain:
    """The observations and the knowledge."""
    known = problem.knowledge
    knowledge = {name: getattr(known, name) for name in Knowledge.__dataclass_fields__}
    observations = [
        {
            "name": o.name,
            "t": o.t,
            "values": o.values,
            "columns": [str(v) for v in o.columns],
            "weights": o.weights,
            "initial": {str(v): value for v, value in o.initial.items()},
            "inputs": _inputs_to_plain(o.inputs),
        }
        for o in problem.observations
    ]
    knowledge["inputs"] = _inputs_to_plain(known.inputs)
    return jsonable({"knowledge": knowledge, "observations": observations})


def problem_from_plain(data: Plain) -> Problem:
    """The problem that `problem_to_plain` wrote."""
    known = dict(data["knowledge"])
    known["inputs"] = _inputs_from_plain(known["inputs"])
    observations = tuple(
        Observation(
            _array(o["t"]),
            _array(o["values"]),
            tuple(Variable.read(text) for text in o["columns"]),
            None if o["weights"] is None else _array(o["weights"]),
            {Variable.read(text): float(value) for text, value in o["initial"].items()},
            _inputs_from_plain(o["inputs"]),
            str(o["name"]),
        )
        for o in data["observations"]
    )
    return Problem(observations, Knowledge(**known))


def settings_to_plain(settings: DiscoverySettings) -> Plain:
    """Every setting by name."""
    return jsonable(asdict(settings), lambda unbounded: unbounded)


def settings_from_plain(data: Plain) -> DiscoverySettings:
    """The settings that `settings_to_plain` wrote; unknown settings are an error."""
    settings = _reader().validate_python(data)
    if settings_to_plain(settings) != data:
        raise ValueError("the settings are those of another version")
    return settings


def iteration_to_plain(iteration: Iteration) -> Plain:
    """One iteration of the history."""
    return jsonable(asdict(iteration))


def iteration_from_plain(data: Plain) -> Iteration:
    """The iteration that `iteration_to_plain` wrote."""
    return Iteration(
        number=int(data["number"]),
        origin=str(data["origin"]),
        new=int(data["new"]),
        evaluations=int(data["evaluations"]),
        seconds=float(data["seconds"]),
        best=float(data["best"]),
        top=float(data["top"]),
        settled=float(data["settled"]),
    )


def candidate_to_plain(candidate: Candidate) -> Plain:
    """A candidate without its latent tokens."""
    fit, proposal, stability, prediction = (
        candidate.fit, candidate.proposal, candidate.stability, candidate.prediction,
    )  # fmt: skip
    return jsonable(
        {
            "frame": frame_to_plain(fit.skeleton.frame),
            "skeleton": str(fit.skeleton),
            "values": fit.values,
            "loss": fit.loss,
            "losses": fit.losses,
            "objective": candidate.objective,
            "complexity": candidate.complexity,
            "prediction": None if prediction is None else asdict(prediction),
            "noise": None if candidate.noise is None else asdict(candidate.noise),
            "stability": None if stability is None else [stability.kind.value, stability.reason],
            "residual": fit.residual,
            "covariance": fit.covariance,
            "initial": fit.initial,
            "by_experiment": fit.by_experiment,
            "status": fit.status.value,
            "evaluations": fit.evaluations,
            "steps": fit.steps,
            "segments": fit.segments,
            "segment_states": fit.segment_states,
            "proposed": str(proposal.skeleton),
            "bits": proposal.bits,
            "derivation": proposal.derivation,
            "origin": proposal.origin,
            "start": proposal.start,
            "sharing": sharing_to_plain(proposal.sharing),
            "fitted_sharing": sharing_to_plain(fit.sharing),
            "random_length": fit.random_length,
            "shooting": None if proposal.shooting is None else asdict(proposal.shooting),
        }
    )


def candidate_from_plain(data: Plain) -> Candidate:
    """The candidate that `candidate_to_plain` wrote."""
    frame = frame_from_plain(data["frame"])
    skeleton = Skeleton.read(data["skeleton"], frame)
    p = skeleton.n_constants
    values = tuple(float(v) for v in data["values"])
    if len(values) != p:
        raise ValueError(f"{len(values)} values for {p} constants of {data['skeleton']}")
    derivation, start, stability, prediction, noise = (
        data["derivation"], data["start"], data["stability"], data["prediction"], data["noise"],
    )  # fmt: skip
    proposal = Proposal(
        Skeleton.read(data["proposed"], frame),
        float(data["bits"]),
        None if derivation is None else tuple(int(r) for r in derivation),
        str(data["origin"]),
        start=_floats(start),
        sharing=sharing_from_plain(data["sharing"], p),
        shooting=_shooting_from_plain(data["shooting"]),
    )
    initial = _array(data["initial"])
    if initial.ndim != 2 or initial.shape[1] != frame.dimension:
        raise ValueError(f"initial states of shape {initial.shape} for a state vector of length {frame.dimension}")
    losses = _array(data["losses"])
    if losses.shape != (len(frame.columns),):
        raise ValueError(f"{losses.size} losses for {len(frame.columns)} columns")
    fit = ConstantFit(
        skeleton,
        values,
        float(data["residual"]),
        float(data["loss"]),
        losses,
        _array(data["covariance"]).reshape(p, p),
        initial,
        _array(data["by_experiment"]).reshape(len(data["by_experiment"]), p),
        sharing_from_plain(data["fitted_sharing"], p),
        float(data["random_length"]),
        SolveStatus(data["status"]),
        int(data["evaluations"]),
        int(data["steps"]),
        int(data["segments"]),
        None if data["segment_states"] is None else _array(data["segment_states"]).reshape(-1, frame.dimension),
    )
    return Candidate(
        proposal,
        fit,
        int(data["complexity"]),
        float(data["objective"]),
        None if stability is None else Stability(StabilityKind(stability[0]), str(stability[1])),
        None if prediction is None else _prediction_from_plain(prediction),
        None if noise is None else Noise(float(noise["correlation_time"]), float(noise["share"])),
    )


def verdict_from_plain(data: Any) -> Verdict:
    """The verdict that was written as a list."""
    trust, reason, values = data
    return Verdict(Trust(trust), Reason(reason), {str(k): float(v) for k, v in values.items()})


def note_from_plain(data: Any) -> Note:
    """The note that was written as a list."""
    kind, subject, values = data
    return Note(NoteKind(kind), str(subject), dict(values))


def _prediction_from_plain(data: Plain) -> Prediction:
    forecast, left_out = (None if data[k] is None else float(data[k]) for k in ("forecast", "left_out"))
    return Prediction(forecast, left_out, float(data["surprise"]), float(data["growth"]))


def _floats(values: Any) -> tuple[float, ...] | None:
    return None if values is None else tuple(float(v) for v in values)


def _shooting_from_plain(data: Plain) -> Shooting | None:
    if data is None:
        return None
    segments = tuple(int(count) for count in data["segments"])
    return Shooting(segments, _floats(data["initial"]), _floats(data["noise"]), bool(data["whole"]))


def _array(values: Any) -> np.ndarray:
    """Array of numbers, including numbers written as text."""
    return np.array(values, dtype=object).astype(float)


def sharing_to_plain(sharing: Sharing) -> Plain:
    """The constants that vary by experiment, with mean and deviation."""
    return {"varying": [[v.constant, v.mean, v.deviation] for v in sharing.varying]}


def sharing_from_plain(data: Plain, n_constants: int) -> Sharing:
    """The sharing that `sharing_to_plain` wrote."""
    varying = tuple(Varying(int(j), float(mean), float(deviation)) for j, mean, deviation in data["varying"])
    if not all(0 <= v.constant < n_constants for v in varying):
        raise ValueError(f"a constant beyond {n_constants} varies")
    return Sharing(varying)


def frame_to_plain(frame: Frame) -> Plain:
    """The states with their orders, and the inputs."""
    return {"states": [[name, order] for name, order in frame.states], "inputs": list(frame.inputs)}


def frame_from_plain(data: Plain) -> Frame:
    """The frame that `frame_to_plain` wrote."""
    states = tuple((str(name), int(order)) for name, order in data["states"])
    return Frame(states, tuple(str(name) for name in data["inputs"]))


def _inputs_to_plain(inputs: Mapping[str, Forcing]) -> Plain:
    return {
        name: {"formula": None if f.formula is None else plain(f.formula), "samples": f.samples}
        | ({"held": True} if f.held else {})
        for name, f in inputs.items()
    }


def _inputs_from_plain(data: Plain) -> dict[str, Forcing]:
    return {str(name): _forcing_from_plain(entry) for name, entry in data.items()}


def _forcing_from_plain(data: Plain) -> Forcing:
    if data["formula"] is not None:
        return Forcing.from_formula(read_expression(data["formula"]))
    samples = _array(data["samples"])
    return Forcing.from_samples(samples[:, 0], samples[:, 1], bool(data.get("held")))
