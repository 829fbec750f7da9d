"""Eight numbers at a time, as values of a numba type that LLVM keeps in vector registers.

LLVM unrolls a loop over eight lanes before it looks for vectors, and then finds none: the loop becomes scalar code. So
the kernels that are eight lanes wide say themselves what is a vector. A `Mask` holds a truth value for each lane.
"""

import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

LANES = 8

_BITS = ir.VectorType(ir.IntType(64), LANES)
_VALUES = ir.VectorType(ir.DoubleType(), LANES)
_TRUTHS = ir.VectorType(ir.IntType(1), LANES)
_SHIFT = 1.5 * 2.0**52  # added to a whole number below 2^51, it moves that number to the last bits


class Lanes(types.Type):
    """The type of eight numbers."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


class Mask(types.Type):
    """The type of eight truth values."""

    def __init__(self) -> None:
        super().__init__(name="Mask")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, _VALUES)


@register_model(Mask)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, _TRUTHS)


lanes, mask = Lanes(), Mask()
_PAIRS = [(lanes, lanes), (lanes, types.float64), (types.float64, lanes)]


def _repeated(builder, value, kind=_VALUES):
    """The vector with this number in each lane."""
    first = ir.Constant(ir.IntType(32), 0)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, first)
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _constant(kind, value):
    return ir.Constant(kind, [value] * LANES)


def _operator(function, returned, generate):
    """Teach numba an operator between vectors, or a vector and a number."""

    @infer_global(function)
    class _(ConcreteTemplate):
        cases = [signature(returned, *pair) for pair in _PAIRS]  # noqa: RUF012

    def lower(context, builder, own, args):
        both = [
            value if isinstance(kind, Lanes) else _repeated(builder, value)
            for kind, value in zip(own.args, args, strict=True)
        ]
        return generate(builder, *both)

    for pair in _PAIRS:
        lower_builtin(function, *pair)(lower)


_operator(operator.add, lanes, lambda builder, a, b: builder.fadd(a, b))
_operator(operator.sub, lanes, lambda builder, a, b: builder.fsub(a, b))
_operator(operator.mul, lanes, lambda builder, a, b: builder.fmul(a, b))
_operator(operator.truediv, lanes, lambda builder, a, b: builder.fdiv(a, b))
_operator(operator.lt, mask, lambda builder, a, b: builder.fcmp_ordered("<", a, b))
_operator(operator.gt, mask, lambda builder, a, b: builder.fcmp_ordered(">", a, b))
_operator(operator.ge, mask, lambda builder, a, b: builder.fcmp_ordered(">=", a, b))


@infer_global(operator.neg)
class _Negative(ConcreteTemplate):
    cases = [signature(lanes, lanes)]  # noqa: RUF012


@lower_builtin(operator.neg, lanes)
def _negative(context, builder, own, args):
    return builder.fneg(args[0])


def _place(context, builder, own, args):
    """The address of the first of eight numbers in an array; args are the array and the indices of that number."""
    array_type, indices = own.args[0], cgutils.unpack_tuple(builder, args[-1])
    array = context.make_array(array_type)(context, builder, args[0])
    kinds = own.args[-1].types
    whole = [context.cast(builder, i, k, types.intp) for i, k in zip(indices, kinds, strict=True)]
    pointer = cgutils.get_item_pointer(context, builder, array_type, array, whole, wraparound=False)
    return builder.bitcast(pointer, _VALUES.as_pointer())


@intrinsic
def load(typing_context, array, *place):
    """The eight numbers of an array from this place on, along its last axis."""
    if array.layout != "C" or array.ndim != len(place):
        return None

    def generate(context, builder, own, args):
        return builder.load(_place(context, builder, own, args), align=8)

    return lanes(array, types.StarArgTuple(place)), generate


@intrinsic
def store(typing_context, array, values, *place):
    """Write eight numbers to an array from this place on, along its last axis."""
    if array.layout != "C" or array.ndim != len(place) or values != lanes:
        return None

    def generate(context, builder, own, args):
        builder.store(args[1], _place(context, builder, own, args), align=8)
        return context.get_dummy_value()

    return types.void(array, values, types.StarArgTuple(place)), generate


@intrinsic
def repeated(typing_context, value):
    """The number in each lane."""

    def generate(context, builder, own, args):
        return _repeated(builder, args[0])

    return lanes(types.float64), generate


@intrinsic
def where(typing_context, condition, yes, no):
    """In each lane one or the other, by the truth value there."""

    def generate(context, builder, own, args):
        return builder.select(*args)

    return lanes(mask, lanes, lanes), generate


@intrinsic
def anywhere(typing_context, condition):
    """Whether it is true in a lane."""

    def generate(context, builder, own, args):
        together = builder.bitcast(args[0], ir.IntType(LANES))
        return builder.icmp_unsigned("!=", together, ir.Constant(ir.IntType(LANES), 0))

    return types.boolean(mask), generate


def _by_llvm(name, description):
    @intrinsic
    def function(typing_context, values):
        def generate(context, builder, own, args):
            kind = ir.FunctionType(_VALUES, [_VALUES])
            return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v8f64"), args)

        return lanes(lanes), generate

    function.__doc__ = description
    return function


absolute = _by_llvm("fabs", "The absolute values.")
root = _by_llvm("sqrt", "The square roots; NaN for negatives.")
rounded = _by_llvm("rint", "The nearest whole numbers.")


@intrinsic
def has_bit(typing_context, whole, bit):
    """Whether whole numbers, as integers in two's complement, have this bit (1, 2, 4, ...)."""

    def generate(context, builder, own, args):
        bits = builder.bitcast(builder.fadd(args[0], _constant(_VALUES, _SHIFT)), _BITS)
        wanted = _repeated(builder, args[1], _BITS)
        return builder.icmp_signed("!=", builder.and_(bits, wanted), _constant(_BITS, 0))

    return mask(lanes, types.int64), generate


@intrinsic
def power_of_two(typing_context, whole):
    """2^k of whole numbers from -1022 to 1023."""

    def generate(context, builder, own, args):
        bits = builder.bitcast(builder.fadd(args[0], _constant(_VALUES, _SHIFT)), _BITS)
        exponent = builder.shl(builder.add(bits, _constant(_BITS, 1023)), _constant(_BITS, 52))
        return builder.bitcast(exponent, _VALUES)

    return lanes(lanes), generate


@intrinsic
def exponent(typing_context, values):
    """The exponents k of positive normal numbers m * 2^k with m from 0.5 to 1."""

    def generate(context, builder, own, args):
        bits = builder.lshr(builder.bitcast(args[0], _BITS), _constant(_BITS, 52))
        bits = builder.or_(builder.and_(bits, _constant(_BITS, 0x7FF)), _constant(_BITS, 0x4330000000000000))
        return builder.fsub(builder.bitcast(bits, _VALUES), _constant(_VALUES, 2.0**52 + 1022.0))

    return lanes(lanes), generate


@intrinsic
def mantissa(typing_context, values):
    """The numbers m from 0.5 to 1 of positive normal numbers m * 2^k."""

    def generate(context, builder, own, args):
        bits = builder.and_(builder.bitcast(args[0], _BITS), _constant(_BITS, 0xFFFFFFFFFFFFF))
        return builder.bitcast(builder.or_(bits, _constant(_BITS, 0x3FE0000000000000)), _VALUES)

    return lanes(lanes), generate
