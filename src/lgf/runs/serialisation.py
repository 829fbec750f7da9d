"""Problems, settings and candidates as plain data for JSON, and back; numbers come back exactly."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from lgf.data.knowledge import Knowledge
from lgf.data.observation import Observation, Problem
from lgf.equation.skeleton import Skeleton
from lgf.expression.parse import read_expression
from lgf.expression.print import plain
from lgf.fit.constants import ConstantFit
from lgf.search.candidate import Candidate, Proposal
from lgf.search.loop import Iteration
from lgf.search.settings import DiscoverySettings
from lgf.solver.stability import Stability, Verdict
from lgf.solver.trajectory import Forcing, SolveStatus

Plain = dict[str, Any]
_SETTINGS = TypeAdapter(DiscoverySettings)


def jsonable(value: Any) -> Any:
    """The value in JSON's own types; numbers that JSON does not know are written as text."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray):
        return jsonable(value.tolist())
    if isinstance(value, (list, tuple)):
        return [jsonable(inner) for inner in value]
    if isinstance(value, np.generic):
        return jsonable(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def problem_to_plain(problem: Problem) -> Plain:
    """Everything measured and known."""
    known = problem.knowledge
    knowledge = {name: getattr(known, name) for name in Knowledge.__dataclass_fields__ if name != "forcing"}
    observations = [
        {
            "name": o.name,
            "t": o.t,
            "values": o.values,
            "measured": o.measured,
            "weights": o.weights,
            "initial": o.initial,
            "forcing": _forcing_to_plain(o.forcing),
        }
        for o in problem.observations
    ]
    knowledge["forcing"] = _forcing_to_plain(known.forcing)
    return jsonable({"knowledge": knowledge, "observations": observations})


def problem_from_plain(data: Plain) -> Problem:
    """The problem that `problem_to_plain` described."""
    known = dict(data["knowledge"])
    known["forcing"] = _forcing_from_plain(known["forcing"])
    if known["bounds"] is not None:
        known["bounds"] = {term: (float(low), float(high)) for term, (low, high) in known["bounds"].items()}
    if known["constants"] is not None:
        known["constants"] = tuple(float(limit) for limit in known["constants"])
    observations = tuple(
        Observation(
            _array(o["t"]),
            _array(o["values"]),
            tuple(o["measured"]),
            None if o["weights"] is None else _array(o["weights"]),
            None if o["initial"] is None else tuple(o["initial"]),
            _forcing_from_plain(o["forcing"]),
            str(o["name"]),
        )
        for o in data["observations"]
    )
    return Problem(observations, Knowledge(**known))


def settings_to_plain(settings: DiscoverySettings) -> Plain:
    """Every setting by name."""
    return _SETTINGS.dump_python(settings, mode="json")


def settings_from_plain(data: Plain) -> DiscoverySettings:
    """The settings that `settings_to_plain` described; a setting that this version does not know is an error."""
    settings = _SETTINGS.validate_python(data)
    if settings_to_plain(settings) != data:
        raise ValueError("the settings are those of another version")
    return settings


def iteration_to_plain(iteration: Iteration) -> Plain:
    """One line of the history."""
    return jsonable(asdict(iteration))


def iteration_from_plain(data: Plain) -> Iteration:
    """The iteration that `iteration_to_plain` described."""
    return Iteration(
        number=int(data["number"]),
        origin=str(data["origin"]),
        new=int(data["new"]),
        evaluations=int(data["evaluations"]),
        seconds=float(data["seconds"]),
        best=float(data["best"]),
        top=float(data["top"]),
    )


def candidate_to_plain(candidate: Candidate) -> Plain:
    """A candidate, all but its tokens in a latent space."""
    fit, proposal, judged = candidate.fit, candidate.proposal, candidate.stability
    return jsonable(
        {
            "skeleton": str(fit.skeleton),
            "values": fit.values,
            "loss": fit.loss,
            "objective": candidate.objective,
            "complexity": candidate.complexity,
            "held_out": candidate.held_out,
            "stability": None if judged is None else [judged.verdict.value, judged.reason],
            "residual": fit.residual,
            "covariance": fit.covariance,
            "initial": fit.initial,
            "status": fit.status.value,
            "evaluations": fit.evaluations,
            "steps": fit.steps,
            "proposed": str(proposal.skeleton),
            "bits": proposal.bits,
            "derivation": proposal.derivation,
            "origin": proposal.origin,
            "start": proposal.start,
        }
    )


def candidate_from_plain(data: Plain) -> Candidate:
    """The candidate that `candidate_to_plain` described."""
    skeleton = Skeleton.read(data["skeleton"])
    p = skeleton.n_constants
    values = tuple(float(v) for v in data["values"])
    if len(values) != p:
        raise ValueError(f"{len(values)} values for {p} constants of {data['skeleton']}")
    derivation, start, judged = data["derivation"], data["start"], data["stability"]
    proposal = Proposal(
        Skeleton.read(data["proposed"]),
        float(data["bits"]),
        None if derivation is None else tuple(int(r) for r in derivation),
        str(data["origin"]),
        start=None if start is None else tuple(float(v) for v in start),
    )
    initial = _array(data["initial"])
    if initial.ndim != 2 or initial.shape[1] != skeleton.order:
        raise ValueError(f"initial states of shape {initial.shape} for an equation of order {skeleton.order}")
    fit = ConstantFit(
        skeleton,
        values,
        float(data["residual"]),
        float(data["loss"]),
        _array(data["covariance"]).reshape(p, p),
        initial,
        SolveStatus(data["status"]),
        int(data["evaluations"]),
        int(data["steps"]),
    )
    return Candidate(
        proposal,
        fit,
        int(data["complexity"]),
        float(data["objective"]),
        None if judged is None else Stability(Verdict(judged[0]), str(judged[1])),
        None if data["held_out"] is None else float(data["held_out"]),
    )


def _array(values: Any) -> np.ndarray:
    """Numbers, those written as text included."""
    return np.array(values, dtype=object).astype(float)


def _forcing_to_plain(forcing: Forcing | None) -> Plain | None:
    if forcing is None:
        return None
    return {"formula": None if forcing.formula is None else plain(forcing.formula), "samples": forcing.samples}


def _forcing_from_plain(data: Plain | None) -> Forcing | None:
    if data is None:
        return None
    if data["formula"] is not None:
        return Forcing.from_formula(read_expression(data["formula"]))
    samples = _array(data["samples"])
    return Forcing.from_samples(samples[:, 0], samples[:, 1])
