"""Compiled numerical kernels: arrays in, arrays out.

Every user waits once for the compilation, so a kernel has one signature (numba specialises on literal arguments: pass
np.int64(1), not 1) and no unused wrappers.
"""

from lgf.compilation import CACHED

KERNEL = {"cache": CACHED, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}  # called from Python
LINKED = KERNEL | {"no_cfunc_wrapper": False}  # called from Python, and by kernels through its address
INNER_ONLY = {"no_cpython_wrapper": True}  # called by kernels only: a call from Python would crash
INNER = KERNEL | INNER_ONLY
INLINED = INNER | {"inline": "always"}  # so small that a call takes as long as the function
BORROWED = {"_nrt": False}  # allocates nothing, so references to arrays need not be counted: half the time of a step
FAST = {"contract", "nsz", "arcp"}  # safe for NaN, infinity and the order of sums
FASTEST = FAST | {"reassoc"}
