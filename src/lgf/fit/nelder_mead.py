"""The paper's search for constants: Nelder-Mead on the solution loss, first coarse, then fine."""

import numpy as np

from lgf.fit.settings import Fitting, StageResult
from lgf.fit.trajectory_stage import on_window


def nelder_mead(fitting: Fitting, start: np.ndarray, anew: bool = True) -> StageResult:
    """The result of both stages, by SciPy; `anew` from 1 for every constant, else from those of the start."""
    from scipy.optimize import minimize  # imported late: a search starts sooner

    settings, (lower, upper), n_free = fitting.settings, fitting.unknown_limits, fitting.layout.n_free
    evaluations = 0

    def solution(x: np.ndarray) -> StageResult:
        nonlocal evaluations
        evaluations += 1
        return on_window(fitting, x[None, :], 1.0, settings.rtol, -1.0, 0)

    x = np.concatenate([np.ones(n_free), start[n_free:]]) if anew else start
    if len(x):
        stages = (
            (settings.coarse_iterations, settings.coarse_fatol, settings.coarse_xatol),
            (settings.fine_iterations, settings.fine_fatol, settings.fine_xatol),
        )
        for iterations, fatol, xatol in stages:
            minimum = minimize(
                lambda x: solution(x).loss, x, method="Nelder-Mead",
                options={"maxiter": iterations, "fatol": fatol, "xatol": xatol},
            )  # fmt: skip
            x = np.clip(minimum.x, lower, upper)
            if not minimum.fun < settings.refine_below:
                break
    best = solution(x)
    return best._replace(evaluations=evaluations)
