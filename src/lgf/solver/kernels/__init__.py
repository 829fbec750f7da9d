"""Compiled numerical kernels: arrays in, arrays out.

Cold compilation is paid by every user once, so a kernel has one signature (numba specialises on literal arguments: pass
np.int64(1), not 1) and no wrapper that nobody calls.
"""

from lgf.compilation import CACHED

KERNEL = {"cache": CACHED, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}  # called from Python
INNER = KERNEL | {"no_cpython_wrapper": True}  # called by kernels only: a call from Python would crash
FAST = {"contract", "nsz", "arcp"}  # what does not touch NaN, infinity and the order of sums
FASTEST = FAST | {"reassoc"}
