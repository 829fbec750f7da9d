"""Tables of the report on single states and equilibria."""

from functools import lru_cache
from typing import Any

import numpy as np

from lgf.equation.system import System
from lgf.expression.frame import Variable
from lgf.runs.percentages import percentage
from lgf.runs.request import Run
from lgf.solver.equilibria import Equilibrium, equilibria
from lgf.solver.trajectory import Trajectory

MOST_EQUILIBRIA = 8  # of a table
MOST_SOLUTIONS = 6
_POINTS = 600


@lru_cache(maxsize=2)
def solutions(run: Run) -> tuple[Trajectory, ...]:
    """The solution of the first experiments, on fine grids."""
    observations = run.request.problem.observations[:MOST_SOLUTIONS]
    return tuple(run.trajectory(e, np.linspace(*o.window, _POINTS)) for e, o in enumerate(observations))


@lru_cache(maxsize=2)
def equilibria_of(run: Run) -> tuple[Equilibrium, ...]:
    """The equilibria of the chosen system without its inputs, those nearest to the data first."""
    variables = run.frame.variables
    values = {v: np.concatenate([trajectory[v] for trajectory in solutions(run)]) for v in variables}
    if not all(np.isfinite(values[v]).any() for v in variables):
        return ()
    names = run.frame.names
    sizes = {name: float(np.sqrt(np.nanmean(values[Variable(name)] ** 2))) or 1.0 for name in names}
    centre = np.array([np.nanmean(values[v]) for v in variables])
    size = np.array([sizes[v.name] for v in variables])
    found = equilibria(System(run.best.skeleton, run.best.fit.values), size)
    return tuple(sorted(found, key=lambda e: float(np.sum(((np.array(e.state) - centre) / size) ** 2))))


def equilibrium_rows(run: Run) -> list[dict[str, Any]]:
    """The equilibria nearest to the data, with their eigenvalues and kinds."""
    rows = []
    for rest in equilibria_of(run)[:MOST_EQUILIBRIA]:
        eigenvalues = ", ".join(_complex(z) for z in rest.eigenvalues if z.imag >= 0)
        rows.append({"equilibrium": str(rest), "kind": rest.kind, "eigenvalues": eigenvalues})
    return rows


def equilibrium_sentence(run: Run) -> str:
    """How many equilibria there are, and what the table leaves out."""
    found = equilibria_of(run)
    without = " without its input" if run.best.skeleton.forced else ""
    if not found:
        reason = "time occurs in the equation" if not run.best.skeleton.autonomous else "none lies near the data"
        return f"The system{without} has no equilibrium: {reason}."
    if len(isolated(found)) < len(found):
        return (
            f"Equilibria of the system{without} are not isolated: they fill a line or a surface. The table shows those "
            "found nearest to the data."
        )
    left_out = f" The table shows the {MOST_EQUILIBRIA} nearest to the data." if len(found) > MOST_EQUILIBRIA else ""
    count = "one equilibrium" if len(found) == 1 else f"{len(found)} equilibria"
    return f"The system{without} has {count} within ten times the range of the data.{left_out}"


def isolated(found: tuple[Equilibrium, ...]) -> tuple[Equilibrium, ...]:
    """The equilibria without those that fill a line or a surface: many of them, all degenerate."""
    alone = tuple(rest for rest in found if rest.kind != "degenerate")
    return found if len(found) - len(alone) <= MOST_EQUILIBRIA else alone


def _complex(z: complex) -> str:
    """The eigenvalue, a pair of conjugates as one: -0.1 \u00b1 3i."""
    size = abs(z)
    if abs(z.imag) <= 1e-9 * size:
        return f"{z.real:.3g}"
    real = "" if abs(z.real) <= 1e-9 * size else f"{z.real:.3g} "
    return f"{real}\u00b1 {z.imag:.3g}i"


def state_rows(run: Run) -> list[dict[str, Any]]:
    """The error of every measured column over all experiments: in its own units, of its signal, and as R2."""
    rows = []
    observations = run.request.problem.observations
    solved = [run.trajectory(e) for e in range(len(observations))]
    for variable in dict.fromkeys(v for o in observations for v in o.columns):
        pairs = [
            (c, s[variable]) for o, s in zip(observations, solved, strict=True) if (c := o.column(variable)) is not None
        ]
        measured, fitted = (np.concatenate(part) for part in zip(*pairs, strict=True))
        present = ~np.isnan(measured)
        error = float(np.sqrt(np.mean((measured[present] - fitted[present]) ** 2)))
        spread, finite = float(np.std(measured[present])), np.isfinite(error)
        rows.append({
            "measured": str(variable),
            "samples": int(present.sum()),
            "root mean square error": f"{error:.3g}" if finite else "the solution ends early",
            "of the variation": percentage(error / spread) if finite and spread > 0 else "",
            "R2": f"{1 - (error / spread) ** 2:.4f}" if finite and spread > 0 else "",
        })  # fmt: skip
    return rows
