"""sin, cos, exp, log and tanh of eight numbers at a time.

The calls into libm that numba makes are scalar, and cost three to eight times as much. Reductions and rational forms
are those of the Cephes library (S. L. Moshier), good to about one unit in the last place on the ranges stated.
"""

import numpy as np

from lgf.compilation import njit
from lgf.solver.kernels import FAST, INNER
from lgf.solver.kernels.lanes import exponent, has_bit, mantissa, power_of_two, repeated, rounded, where

_INLINE = INNER | {"fastmath": FAST, "forceinline": True}  # by LLVM: numba's own inlining types every copy anew

LARGEST_ANGLE = 1e5  # beyond it the three-part reduction by pi/2 loses digits


@njit(**_INLINE)
def sine(x, quarter_turns):
    """sin(x + quarter_turns * pi/2) for |x| < LARGEST_ANGLE."""
    k = rounded(x * 0.6366197723675814)
    r = ((x - k * 1.5707962512969971) - k * 7.549789415861596e-8) - k * 5.390302529957765e-15
    quadrant = k + quarter_turns
    z = r * r
    odd = 1.58962301576546568060e-10 * z - 2.50507477628578072866e-8
    odd = (odd * z + 2.75573136213857245213e-6) * z - 1.98412698295895385996e-4
    odd = (odd * z + 8.33333333332211858878e-3) * z - 1.66666666666666307295e-1
    odd = odd * z * r + r
    even = -1.13585365213876817300e-11 * z + 2.08757008419747316778e-9
    even = (even * z - 2.75573141792967388112e-7) * z + 2.48015872888517045348e-5
    even = (even * z - 1.38888888888730564116e-3) * z + 4.16666666666665929218e-2
    even = even * z * z - 0.5 * z + 1.0
    y = where(has_bit(quadrant, 1), even, odd)
    return where(has_bit(quadrant, 2), -y, y)


@njit(**_INLINE)
def exponential(x):
    """exp(x); infinite above 709, zero below -708, NaN for NaN."""
    y = where(x > -708.0, x, repeated(-708.0))
    y = where(y < 709.0, y, repeated(709.0))
    k = rounded(y * 1.4426950408889634)
    r = (y - k * 6.93145751953125e-1) - k * 1.42860682030941723212e-6
    z = r * r
    p = r * ((1.26177193074810590878e-4 * z + 3.02994407707441961300e-2) * z + 9.99999999999999999910e-1)
    q = (3.00198505138664455042e-6 * z + 2.52448340349684104192e-3) * z
    q = (q + 2.27265548208155028766e-1) * z + 2.0
    result = (1.0 + 2.0 * (p / (q - p))) * power_of_two(k)
    result = where(x < 709.0, result, x + np.inf)  # NaN too
    return where(x < -708.0, repeated(0.0), result)


@njit(**_INLINE)
def logarithm(x):
    """log(x); minus infinity at 0 (and below the normal range), NaN for negatives."""
    m = mantissa(x)
    small = m < 0.7071067811865476
    e = exponent(x) - where(small, repeated(1.0), repeated(0.0))
    r = where(small, m + m, m) - 1.0
    z = r * r
    p = (1.01875663804580931796e-4 * r + 4.97494994976747001425e-1) * r + 4.70579119878881725854
    p = ((p * r + 1.44989225341610930846e1) * r + 1.79368678507819816313e1) * r + 7.70838733755885391666
    q = (r + 1.12873587189167450590e1) * r + 4.52279145837532221105e1
    q = ((q * r + 8.29875266912776603211e1) * r + 7.11544750618563894466e1) * r + 2.31251620126765340583e1
    y = r * (z * p / q) - e * 2.121944400546905827679e-4 - 0.5 * z
    result = r + y + e * 0.693359375
    result = where(x > 2.3e-308, result, where(x >= 0.0, repeated(-np.inf), repeated(np.nan)))
    return where(x < np.inf, result, x)


@njit(**_INLINE)
def hyperbolic_tangent(x):
    """tanh(x), by its series where the quotient of exponentials would cancel."""
    a = where(x >= 0.0, x, -x)
    e = exponential(-2.0 * a)
    z = x * x
    series = a * (1.0 + z * (-1 / 3 + z * (2 / 15 + z * (-17 / 315 + z * (62 / 2835)))))
    y = where(a < 0.02, series, (1.0 - e) / (1.0 + e))
    return where(x >= 0.0, y, -y)
