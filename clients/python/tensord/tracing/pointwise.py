"""The parts of elementwise functions: promotion, broadcasting, one node."""

from tensord import dtypes
from tensord.array import Array
from tensord.tracing.lifting import as_array, broadcast, broadcast_to, promoted


def binary(kind, x, y, to=None):
    x, y = broadcast(*promoted(x, y, to=to))
    return x.builder.binary(kind, x, y)


def unary(kind, x):
    x = as_array(x)
    return x.builder.unary(kind, x)


def inexact(kind, x):
    """A function with fractional results."""
    x = as_array(x)
    return x.builder.unary(kind, x.builder.convert(x, dtypes.inexact_loop(x.dtype)))


def real_inexact(name, kind, x):
    x = as_array(x)
    refuse(name, x.dtype.is_complex, x)
    return inexact(kind, x)


def rounded_once(function, *operands):
    """The function of operands of one type; of 16-bit floats in float32, so that the result alone is rounded to 16 bits.
    In an algebra, which converts nothing and whose sums round nothing, in their own type."""
    dtype = operands[0].dtype
    if dtype.bits != 16 or operands[0].builder.graph.algebra:
        return function(*operands)
    return as_array(function(*(as_array(operand, dtypes.float32) for operand in operands)), dtype)


def refuse(name, condition, *operands):
    if condition:
        shown = ", ".join(str(operand.dtype) if isinstance(operand, Array) else repr(operand) for operand in operands)
        raise TypeError(f"{name} is not defined for {shown}")


def like(x, number):
    return x.builder.constant(number, x.dtype)


def full_like(x, number):
    return broadcast_to(like(x, number), x.shape)
