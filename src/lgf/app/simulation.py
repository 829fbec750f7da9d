"""Trajectories of an equation of a run under changed constants, start and inputs: what the sliders ask for."""

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lgf.app.views import equations
from lgf.data import make_inputs
from lgf.errors import LgfError
from lgf.runs.request import Run
from lgf.solver.solve import solve
from lgf.solver.trajectory import Trajectory

MOST_POINTS = 2000
_MOST_STEPS = 50_000  # of the solver, so that a stiff equation ends in about a second

Finite = Annotated[float, Field(allow_inf_nan=False, ge=-1e30, le=1e30)]


class Trial(BaseModel):
    """What to solve: an equation of the run by number, and what differs from the data."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    equation: int = Field(ge=0)
    experiment: int = Field(0, ge=0)
    initial: dict[str, Finite] | None = None
    constants: tuple[Finite, ...] | None = None
    inputs: dict[str, Annotated[str, Field(max_length=3000)]] = {}
    end: Finite | None = None
    n: int = Field(1000, ge=2, le=MOST_POINTS)


def read_trial(answers: Any) -> Trial:
    """The trial with these answers; LgfError names the first that cannot be used."""
    try:
        return Trial.model_validate(answers)
    except ValidationError as error:
        first = error.errors()[0]
        place = " ".join(str(part) for part in first["loc"]) or "the trial"
        raise LgfError(f"The value of {place} cannot be used: {first['msg'].lower()}; change it.") from error


def try_out(run: Run, trial: Trial) -> Trajectory:
    """The trajectory of the trial from the start of its experiment; inputs that it does not name are the data's."""
    problem, candidates = run.request.problem, equations(run)
    if trial.equation >= len(candidates) or trial.experiment >= len(problem.observations):
        raise LgfError("There is no such equation or experiment in this run; open the run again.")
    candidate = candidates[trial.equation]
    system = run.display_system(candidate)
    if trial.constants is not None:
        if len(trial.constants) != len(system.values):
            raise LgfError(f"The equation has {len(system.values)} constants but {len(trial.constants)} were given.")
        system = replace(system, values=trial.constants, errors=None)
    begin, end = problem.observations[trial.experiment].window
    end = end if trial.end is None else trial.end
    if end <= begin:
        raise LgfError(f"The end is {end:g}; it must be later than the start at {begin:g}.")
    t = np.linspace(begin, end, trial.n)
    initial = candidate.fit.initial[trial.experiment] if trial.initial is None else trial.initial
    known = problem.signals(trial.experiment)
    inputs = {**known, **make_inputs({k: f for k, f in trial.inputs.items() if k in system.frame.inputs}, t)}
    branch = run.branches[trial.experiment] if trial.initial is None and trial.constants is None else None
    return solve(system, initial, t, inputs, branch=branch, max_steps=_MOST_STEPS)
