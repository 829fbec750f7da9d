"""Compiled numerical kernels: arrays in, arrays out.

Every user waits once for the compilation, so a kernel has one signature (numba specialises on literal arguments: pass
np.int64(1), not 1) and no unused wrappers.
"""

from lgf.compilation import CACHED

KERNEL = {"cache": CACHED, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}  # called from Python
INNER_ONLY = {"no_cpython_wrapper": True}  # called by kernels only: a call from Python would crash
# Allocates nothing and returns no arrays, so references to arrays need not be counted, which took half of the time of
# the integrator.
BORROWS = {"_nrt": False}
LINKED = KERNEL | BORROWS | {"no_cfunc_wrapper": False}  # called from Python, and by kernels through its address
ALLOCATES = KERNEL | INNER_ONLY
INNER = ALLOCATES | BORROWS
INLINED = INNER | {"inline": "always"}  # so small that a call takes as long as the function
FAST = {"contract", "nsz", "arcp"}  # safe for NaN, infinity and the order of sums
FASTEST = FAST | {"reassoc"}
