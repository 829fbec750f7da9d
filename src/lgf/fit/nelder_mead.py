"""The paper's search for constants: Nelder-Mead on the solution loss, first coarse, then fine."""

import numpy as np
from scipy.optimize import minimize

from lgf.fit.settings import Fitting, Found
from lgf.fit.trajectory_stage import on_window


def nelder_mead(fitting: Fitting, start: np.ndarray) -> Found:
    """What the two stages find, by SciPy, from 1 for every constant and from the start's initial values."""
    compiled, _, settings, lower, upper = fitting
    evaluations = 0

    def solved(x: np.ndarray) -> Found:
        nonlocal evaluations
        evaluations += 1
        return on_window(fitting, x[None, :], 1.0, -1.0, 0)

    x = np.concatenate([np.ones(compiled.n_constants), start[compiled.n_constants :]])
    if len(x):
        stages = (
            (settings.coarse_iterations, settings.coarse_fatol, settings.coarse_xatol),
            (settings.fine_iterations, settings.fine_fatol, settings.fine_xatol),
        )
        for iterations, fatol, xatol in stages:
            found = minimize(
                lambda x: solved(x).loss, x, method="Nelder-Mead",
                options={"maxiter": iterations, "fatol": fatol, "xatol": xatol},
            )  # fmt: skip
            x = np.clip(found.x, lower, upper)
            if not found.fun < settings.refine_below:
                break
    best = solved(x)
    return best._replace(evaluations=evaluations)
