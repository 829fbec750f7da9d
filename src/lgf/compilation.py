"""Compiled kernels: where numba caches them on disk, and how one calls another without being compiled with it.

numba optimises a callee anew inside every caller, so a chain of kernels is compiled several times over. A kernel that
is `linked` is compiled once; others call it through its address, which is looked up when they first need it.
"""

import _thread
import ctypes
import time
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from llvmlite import binding, ir

from lgf.errors import LgfError

try:
    import numba
except ValueError as error:
    raise LgfError(f"numba does not start ({error}) Unset its variables, such as NUMBA_NUM_THREADS.") from error

from numba import types
from numba.core import cgutils, config, event
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

if vars(config)["DISABLE_JIT"]:
    raise LgfError("numba compiles nothing as NUMBA_DISABLE_JIT is set; unset it: a search would take days.")


class _Compilations(event.Listener):
    """Adds up the seconds of all compilations in this process; those inside others are part of them."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth, self._began = 0, 0.0

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._began = time.monotonic()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.monotonic() - self._began


_COMPILATIONS = _Compilations()
event.register("numba:compile", _COMPILATIONS)


def search_clock() -> float:
    """Seconds by which a search is limited: those of the clock without compilations, which happen once on a machine."""
    return time.monotonic() - _COMPILATIONS.seconds


class _CompiledCode(FunctionCache):
    """The cache of a kernel, whose code is loaded without the parts of numba that only a compilation needs.

    numba imports all of them first, which takes longer than loading all kernels.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def njit(**options: Any) -> Callable[[Any], Any]:
    """The decorator `numba.njit`; see `_CompiledCode` for what differs."""

    def compiled(function: Any) -> Any:
        kernel: Any = numba.njit(**options)(function)
        if options.get("cache"):
            kernel._cache = _CompiledCode(function)
        return kernel

    return compiled


def _probe() -> None:
    """Never called; numba looks for a cache folder for it as for every kernel."""


def _cache_available() -> bool:
    try:
        njit(cache=True)(_probe)
    except RuntimeError:  # numba raises at import if it has no folder for a cached function
        return False
    return True


_ADDRESSED: list[Any] = []  # memory whose address compiled code knows; it lives as long as the process

CACHED: bool = _cache_available()
"""True if a cache folder is writable: NUMBA_CACHE_DIR, one beside the code, or the user's cache folder."""


def is_cached(kernel: Any) -> bool:
    """Whether the cache on disk holds this numba function, compiled from its source as it is now."""
    return CACHED and bool(kernel._cache._cache_file._load_index())  # numba has no public way to ask


def _may_be_passed(given: types.Type, declared: types.Type) -> bool:
    """Whether the types are equal, or differ only in that the kernel reads an array that its caller may write."""
    if isinstance(declared, types.Array) and isinstance(given, types.Array) and not declared.mutable:
        given = given.copy(readonly=True)
    return given == declared


def linked(kernel: Any, signature: Signature) -> Any:
    """A function for use inside other kernels that calls `kernel`, compiled for this signature only.

    `kernel` is a numba function with a C wrapper. Its address stands in a cell of memory that callers read; the first
    call finds the cell empty and has the kernel compiled or loaded from the cache.
    """
    function = kernel.py_func
    unique = sha256(str(signature).encode()).hexdigest()[:12]  # a caller cached with other types must not link to it
    symbol = f"lgf.{function.__module__}.{function.__qualname__}.{unique}"
    cell = ctypes.c_void_p()

    def load() -> None:
        compiled = kernel.get_compile_result(signature)
        cell.value = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_cfunc_wrapper_name)

    @ctypes.CFUNCTYPE(None)
    def load_from_kernel() -> None:
        try:
            load()
        except KeyboardInterrupt:  # the calling kernel cannot go on without it, and the user still wants to interrupt
            load()
            _thread.interrupt_main()

    _ADDRESSED.append((cell, load_from_kernel))
    binding.add_symbol(f"{symbol}.cell", ctypes.addressof(cell))
    binding.add_symbol(f"{symbol}.load", ctypes.cast(load_from_kernel, ctypes.c_void_p).value)

    @intrinsic
    def call(typing_context, *args):
        if len(args) != len(signature.args) or not all(map(_may_be_passed, map(types.unliteral, args), signature.args)):
            return None

        def generate(context, builder, _, values):
            arguments = cgutils.unpack_tuple(builder, values[0])
            returned = context.get_value_type(signature.return_type)
            kind = ir.FunctionType(returned, [context.get_value_type(t) for t in signature.args])
            place = context.get_c_value(builder, kind.as_pointer(), f"{symbol}.cell")
            with builder.if_then(cgutils.is_null(builder, builder.load(place)), likely=False):
                nothing = ir.FunctionType(ir.VoidType(), [])
                builder.call(cgutils.get_or_insert_function(builder.module, nothing, f"{symbol}.load"), [])
            return builder.call(builder.load(place), arguments)

        return signature.return_type(types.StarArgTuple(args)), generate

    return call
