"""Whitening of residuals that are the sum of white noise and an Ornstein-Uhlenbeck process, by a Kalman filter."""

import math

import numpy as np

from lgf.compilation import njit
from lgf.solver.kernels import KERNEL


@njit(**KERNEL)
def whiten(t, first, rows, share, length):
    """(whitened rows [R, N], log determinant of the covariance) of series first[s] .. first[s + 1] - 1 of the rows.

    The covariance is that of white noise of variance 1 and a process of variance `share` and correlation time
    `length`; every series starts anew.
    """
    R, N = rows.shape
    out = np.empty((R, N))
    mean = np.zeros(R)
    log_determinant = 0.0
    for s in range(first.shape[0] - 1):
        mean[:] = 0.0
        variance = share
        for i in range(first[s], first[s + 1]):
            if i > first[s]:
                decay = math.exp(-(t[i] - t[i - 1]) / length)
                variance = decay * decay * variance + share * (1.0 - decay * decay)
                for r in range(R):
                    mean[r] *= decay
            total = variance + 1.0
            scale = 1.0 / math.sqrt(total)
            gain = variance / total
            for r in range(R):
                innovation = rows[r, i] - mean[r]
                out[r, i] = innovation * scale
                mean[r] += gain * innovation
            variance *= 1.0 - gain
            log_determinant += math.log(total)
    return out, log_determinant
