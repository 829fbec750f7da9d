"""Starts of constants that stand in several equations, fitted to the residuals of all of them together."""

import numpy as np
from scipy.optimize import least_squares

from lgf.equation.skeleton import Skeleton
from lgf.expression.numeric import evaluate
from lgf.fit.target import Target

_SAMPLES = 128  # compared, about
_EVALUATIONS = 50  # of the residuals, for each start
_FAR = 1e6  # a residual in units of its derivative; where there is no value, it is this


def fitted_jointly(
    skeleton: Skeleton, target: Target, starts: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> np.ndarray:
    """The starts [s, p] after least squares on the residuals of all equations, each relative to its derivative.

    Of a constant that stands in several equations each gives another estimate, and their mean may suit none.
    """
    chosen = np.flatnonzero(target.complete)[:: max(len(target.t) // _SAMPLES, 1)]
    environment = {name: values[chosen] for name, values in target.environment.items()}
    scales = [float(np.sqrt(np.mean(environment[v] ** 2))) or 1.0 for v in skeleton.frame.highest]

    def residuals(values: np.ndarray) -> np.ndarray:
        parts = [
            np.broadcast_to(evaluate(e, environment, tuple(values)) / scale, len(chosen))
            for e, scale in zip(skeleton.residuals, scales, strict=True)
        ]
        return np.clip(np.nan_to_num(np.concatenate(parts), nan=_FAR), -_FAR, _FAR)

    clipped = np.clip(starts, lower, upper)
    fits = [least_squares(residuals, x, bounds=(lower, upper), max_nfev=_EVALUATIONS, x_scale="jac") for x in clipped]
    return np.array([fit.x for fit in sorted(fits, key=lambda fit: fit.cost)])
