"""Compiled numerical kernels: arrays in, arrays out.

Every user waits once for the compilation, so a kernel has one signature (numba specialises on literal arguments: pass
np.int64(1), not 1) and no unused wrappers.
"""

from lgf.compilation import CACHED

KERNEL = {"cache": CACHED, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}  # called from Python
INNER = KERNEL | {"no_cpython_wrapper": True}  # called by kernels only: a call from Python would crash
FAST = {"contract", "nsz", "arcp"}  # safe for NaN, infinity and the order of sums
FASTEST = FAST | {"reassoc"}
