"""Trajectories of an equation of a run under changed constants, start and inputs: what the sliders ask for."""

from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field

from lgf.app.answers import Answers
from lgf.app.results import BAND_POINTS, bands_of, candidate_at, system_in
from lgf.data import make_inputs
from lgf.errors import LgfError
from lgf.report.figures import INTERVAL
from lgf.runs.bands import Band
from lgf.runs.request import Run
from lgf.solver.forcing import Forcing
from lgf.solver.solve import solve
from lgf.solver.trajectory import Trajectory

MOST_POINTS = 2000
_MOST_STEPS = 50_000  # of the solver, so that a stiff equation ends in about a second

Finite = Annotated[float, Field(allow_inf_nan=False, ge=-1e30, le=1e30)]


class Trial(Answers):
    """What to solve: an equation of the run by number, and what differs from the data."""

    equation: int = Field(ge=0)
    experiment: int = Field(0, ge=0)
    initial: dict[str, Finite] | None = None
    constants: tuple[Finite, ...] | None = None
    inputs: dict[str, Annotated[str, Field(max_length=3000)]] = Field(default_factory=dict)
    end: Finite | None = None
    n: int = Field(1000, ge=2, le=MOST_POINTS)


def try_out(run: Run, trial: Trial) -> Trajectory:
    """The trajectory of the trial from the start of its experiment; inputs that it does not name are the data's."""
    candidate = candidate_at(run, trial.equation, trial.experiment)
    system = system_in(run, candidate, trial.experiment)
    if trial.constants is not None:
        if len(trial.constants) != len(system.values):
            raise LgfError(f"The equation has {len(system.values)} constants but {len(trial.constants)} were given.")
        system = replace(system, values=trial.constants, errors=None)
    t = _times(run, trial, trial.n)
    initial = candidate.fit.initial[trial.experiment] if trial.initial is None else trial.initial
    branch = run.branches[trial.experiment] if trial.initial is None and trial.constants is None else None
    return solve(system, initial, t, _inputs(run, trial, t), branch=branch, max_steps=_MOST_STEPS)


def band_around(run: Run, trial: Trial) -> Band | None:
    """The band around the trial; None if it is not of the chosen equation with its own constants."""
    if candidate_at(run, trial.equation, trial.experiment) is not run.best or trial.constants is not None:
        return None
    t = _times(run, trial, BAND_POINTS)
    initial = run.best.fit.initial[trial.experiment] if trial.initial is None else trial.initial
    return bands_of(run).of_simulation(t, initial, _inputs(run, trial, t), INTERVAL, trial.experiment)


def _times(run: Run, trial: Trial, n: int) -> np.ndarray:
    begin, end = run.request.problem.observations[trial.experiment].window
    end = end if trial.end is None else trial.end
    if end <= begin:
        raise LgfError(f"The end is {end:g}; it must be later than the start at {begin:g}.")
    return np.linspace(begin, end, n)


def _inputs(run: Run, trial: Trial, t: np.ndarray) -> dict[str, Forcing]:
    problem = run.request.problem
    changed = {name: formula for name, formula in trial.inputs.items() if name in problem.inputs}
    return {**problem.signals(trial.experiment), **make_inputs(changed, t)}
