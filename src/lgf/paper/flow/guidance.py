"""The likelihood ratios that guide the flow towards what predictors are to say.

A predictor's first layer is linear in one-hot tokens. One gradient therefore estimates the effect of every single-token
change (the Taylor approximation).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lgf.paper.flow.predictor import Predictor
from lgf.trained.layers import Array

STATIC_TEMPERATURE = 0.25  # of the guidance towards certain knowledge
_LOG_SQRT_TWO_PI = np.float32(0.5 * math.log(2 * math.pi))


@dataclass(frozen=True)
class Guide:
    """The goal of guidance: the category `target`, or a value of at most `target` for a continuous predictor."""

    predictor: Predictor
    target: float
    temperature: float = 1.0

    def log_probability(self, out: Array, t: Array) -> Array:
        """(1 / temperature) log p(y | x_t, t) of the predictor's outputs; log Phi((target - mu) / sigma_t) of means."""
        from scipy.special import log_ndtr  # imported late: a search starts sooner

        if self.predictor.classes:
            return out[..., int(self.target)] / np.float32(self.temperature)
        return log_ndtr(self._distance(out, t)) / np.float32(self.temperature)

    def slope(self, out: Array, t: Array) -> Array:
        """The derivatives of `log_probability` by the outputs [n, ...]."""
        from scipy.special import log_ndtr

        slope = np.zeros_like(out)
        if self.predictor.classes:
            slope[..., int(self.target)] = 1 / self.temperature
        else:
            z = self._distance(out, t)
            hazard = np.exp(-z * z / 2 - log_ndtr(z) - _LOG_SQRT_TWO_PI)
            slope[..., 0] = -hazard / self.predictor.sigma(t) / np.float32(self.temperature)
        return slope

    def _distance(self, out: Array, t: Array) -> Array:
        return (np.float32(self.target) - out[..., 0]) / self.predictor.sigma(t)


def taylor_log_ratio(guides: Sequence[Guide], x: NDArray[np.integer], t: Array, where: NDArray[np.bool_]) -> Array:
    """Log-ratios [n, D, S] of p(y | x with one token changed, t) to p(y | x, t), to first order; 0 outside `where`."""
    total = np.zeros((*x.shape, guides[0].predictor.layout.states), dtype=np.float32)
    for guide in guides:
        trace = guide.predictor.trace(x, t)
        entered, _ = guide.predictor.slopes(trace, guide.slope(trace.out, t))
        total += guide.predictor.slopes_by_tokens(entered)
    return (total - np.take_along_axis(total, x[..., None], -1)) * where[..., None]
