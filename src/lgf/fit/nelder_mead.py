"""The paper's search for constants: Nelder-Mead on the solution loss, first coarse, then fine."""

import numpy as np

from lgf.fit.settings import Fitting, StageResult
from lgf.fit.trajectory_stage import losses_on_record, on_window

COARSE = (50, 0.5, 0.1)  # iterations and tolerances (of the unknowns, of the loss) of the first stage
FINE = (0.1, 0.001)  # tolerances of the second
_REFINE_BELOW = 25.0  # the loss


def nelder_mead(fitting: Fitting, start: np.ndarray, anew: bool = True) -> StageResult:
    """The result of both stages; `anew` from 1 for every constant, else from those of the start.

    Its steps are those of the last solution only, because after many steps a selection takes fewer finalists.
    """
    from scipy.optimize import minimize  # imported late: a search by default needs it at its end only

    settings, (lower, upper), n_free = fitting.settings, fitting.unknown_limits, fitting.layout.n_free
    x = np.concatenate([np.ones(n_free), start[n_free:]]) if anew else start
    evaluations = 0
    if len(x):
        for stage in (COARSE, (settings.fine_iterations, *FINE)):
            options = dict(zip(("maxiter", "xatol", "fatol"), stage, strict=True))
            found = minimize(losses_on_record(fitting), x, method="Nelder-Mead", options=options)
            x, evaluations = np.clip(found.x, lower, upper), evaluations + found.nfev
            if not found.fun < _REFINE_BELOW:
                break
    best = on_window(fitting, x[None, :], 1.0, settings.rtol, -1.0, 0)
    return best._replace(evaluations=evaluations + best.evaluations)
