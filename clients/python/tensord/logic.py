"""Comparisons, logic, choice and the parts of complex numbers, with NumPy's names and meaning."""

import math

from tensord import dtypes, pointwise
from tensord.lifting import as_array, broadcast, broadcast_shapes, broadcast_to, promoted, result_type

# ---- Comparisons ----


def _compare(direction, x, y):
    x, y = broadcast(*promoted(x, y))
    if direction not in ("EQ", "NE"):
        pointwise.refuse("an ordering", x.dtype.is_complex, x, y)
    return x.builder.compare(direction, x, y)


def equal(x, y):
    return _compare("EQ", x, y)


def not_equal(x, y):
    return _compare("NE", x, y)


def less(x, y):
    return _compare("LT", x, y)


def less_equal(x, y):
    return _compare("LE", x, y)


def greater(x, y):
    return _compare("GT", x, y)


def greater_equal(x, y):
    return _compare("GE", x, y)


def isfinite(x):
    x = as_array(x)
    if not x.dtype.is_inexact:
        return broadcast_to(x.builder.constant(True, dtypes.bool_), x.shape)
    if x.dtype.is_complex:
        return logical_and(isfinite(real(x)), isfinite(imag(x)))
    return x.builder.unary("IS_FINITE", x)


def isnan(x):
    x = as_array(x)
    return not_equal(x, x)


def isinf(x):
    x = as_array(x)
    if x.dtype.is_complex:
        return logical_or(isinf(real(x)), isinf(imag(x)))
    if not x.dtype.is_float:
        return broadcast_to(x.builder.constant(False, dtypes.bool_), x.shape)
    return equal(abs(x), pointwise.like(x, math.inf))


# ---- Logic and bits ----


def truth(x):
    """x != 0 as bool."""
    x = as_array(x)
    return x if x.dtype.is_bool else not_equal(x, 0)


def logical_not(x):
    return pointwise.unary("NOT", truth(x))


def logical_and(x, y):
    return pointwise.binary("AND", truth(x), truth(y))


def logical_or(x, y):
    return pointwise.binary("OR", truth(x), truth(y))


def logical_xor(x, y):
    return pointwise.binary("XOR", truth(x), truth(y))


def _bitwise(name, kind, x, y):
    pointwise.refuse(name, result_type(x, y).is_inexact, x, y)
    return pointwise.binary(kind, x, y)


def bitwise_and(x, y):
    return _bitwise("bitwise_and", "AND", x, y)


def bitwise_or(x, y):
    return _bitwise("bitwise_or", "OR", x, y)


def bitwise_xor(x, y):
    return _bitwise("bitwise_xor", "XOR", x, y)


def bitwise_not(x):
    x = as_array(x)
    pointwise.refuse("bitwise_not", x.dtype.is_inexact, x)
    return x.builder.unary("NOT", x)


invert = bitwise_invert = bitwise_not


# ---- Choice, conversion, complex numbers ----
def where(condition, x, y):
    """x where the condition holds, else y."""
    condition = truth(condition)
    x, y = promoted(x, y)
    shape = broadcast_shapes(condition.shape, x.shape, y.shape)
    if condition.ndim:
        condition = broadcast_to(condition, shape)
    return condition.builder.select(condition, broadcast_to(x, shape), broadcast_to(y, shape))


def astype(x, dtype):
    """x converted: floats to integers toward zero, complex numbers to their real part."""
    x = as_array(x)
    return x.builder.convert(x, dtypes.as_dtype(dtype))


def conj(x):
    x = as_array(x)
    return x.builder.unary("CONJ", x) if x.dtype.is_complex else x


conjugate = conj


def real(x):
    x = as_array(x)
    return x.builder.unary("REAL", x) if x.dtype.is_complex else x


def imag(x):
    x = as_array(x)
    return x.builder.unary("IMAG", x) if x.dtype.is_complex else pointwise.full_like(x, 0)


def complex(real, imag):
    """real + 1j * imag."""
    real, imag = broadcast(*promoted(real, imag, to=dtypes.inexact_of))
    pointwise.refuse("complex", real.dtype.is_complex, real, imag)
    if real.dtype.bits == 16:
        real, imag = (part.builder.convert(part, dtypes.float32) for part in (real, imag))
    return real.builder.binary("COMPLEX", real, imag)
