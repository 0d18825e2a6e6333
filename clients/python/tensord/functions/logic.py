"""Comparisons, logic, choice and the parts of complex numbers, with NumPy's names and meaning."""

import math

from tensord import dtypes
from tensord.arguments.options import check_device, is_given
from tensord.tracing import pointwise
from tensord.tracing.lifting import as_array, broadcast, broadcast_shapes, broadcast_to, promoted, result_type
from tensord.tracing.ufuncs import ufunc

# ---- Comparisons ----


def _compare(direction, x, y):
    side = _beyond(x, y) or -_beyond(y, x)
    if side:  # every integer of the one's type is on the same side of the other
        array, sides = as_array(y if dtypes.is_weak(x) else x), {-1: ("NE", "LT", "LE"), 1: ("NE", "GT", "GE")}
        return broadcast_to(array.builder.constant(direction in sides[side], dtypes.bool_), array.shape)
    x, y = broadcast(*promoted(x, y))
    if direction not in ("EQ", "NE"):
        pointwise.refuse("an ordering", x.dtype.is_complex, x, y)
    return x.builder.compare(direction, x, y)


def _beyond(x, y):
    """-1 where y is a Python integer greater than all of x's integer type, 1 where it is less than all, else 0."""
    if not isinstance(y, int) or isinstance(y, bool) or dtypes.is_weak(x):
        return 0
    return 0 if dtypes.fits(y, result_type(x)) else -1 if y > 0 else 1


@ufunc
def equal(x, y):
    return _compare("EQ", x, y)


@ufunc
def not_equal(x, y):
    return _compare("NE", x, y)


@ufunc
def less(x, y):
    return _compare("LT", x, y)


@ufunc
def less_equal(x, y):
    return _compare("LE", x, y)


@ufunc
def greater(x, y):
    return _compare("GT", x, y)


@ufunc
def greater_equal(x, y):
    return _compare("GE", x, y)


@ufunc
def isfinite(x):
    x = as_array(x)
    if not x.dtype.is_inexact:
        return broadcast_to(x.builder.constant(True, dtypes.bool_), x.shape)
    if x.dtype.is_complex:
        return logical_and(isfinite(real(x)), isfinite(imag(x)))
    return x.builder.unary("IS_FINITE", x)


@ufunc
def isnan(x):
    x = as_array(x)
    return not_equal(x, x)


@ufunc
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


@ufunc
def logical_not(x):
    return pointwise.unary("NOT", truth(x))


@ufunc
def logical_and(x, y):
    return pointwise.binary("AND", truth(x), truth(y))


@ufunc
def logical_or(x, y):
    return pointwise.binary("OR", truth(x), truth(y))


@ufunc
def logical_xor(x, y):
    return pointwise.binary("XOR", truth(x), truth(y))


def _bitwise(name, kind, x, y):
    pointwise.refuse(name, result_type(x, y).is_inexact, x, y)
    return pointwise.binary(kind, x, y)


@ufunc
def bitwise_and(x, y):
    return _bitwise("bitwise_and", "AND", x, y)


@ufunc
def bitwise_or(x, y):
    return _bitwise("bitwise_or", "OR", x, y)


@ufunc
def bitwise_xor(x, y):
    return _bitwise("bitwise_xor", "XOR", x, y)


@ufunc
def bitwise_not(x):
    x = as_array(x)
    pointwise.refuse("bitwise_not", x.dtype.is_inexact, x)
    return x.builder.unary("NOT", x)


invert = bitwise_invert = bitwise_not


# ---- Choice, conversion, complex numbers ----
def where(condition, x=None, y=None, /):
    """x where the condition holds, else y."""
    if not is_given(x) or not is_given(y):
        raise TypeError("where takes a condition and two arrays: with the condition alone the number of the true ones "
                        "would decide the result's shape")  # fmt: skip
    condition = truth(condition)
    x, y = promoted(x, y)
    shape = broadcast_shapes(condition.shape, x.shape, y.shape)
    if condition.ndim:
        condition = broadcast_to(condition, shape)
    return condition.builder.select(condition, broadcast_to(x, shape), broadcast_to(y, shape))


def astype(x, dtype, /, *, copy=True, device=None):
    """x converted: floats to integers toward zero, complex numbers to their real part, or to whether they are zero."""
    check_device("astype", device)
    return as_array(x, dtype)


@ufunc
def conj(x):
    x = as_array(x)
    return x.builder.unary("CONJ", x) if x.dtype.is_complex else x


conjugate = conj


def real(val):
    val = as_array(val)
    return val.builder.unary("REAL", val) if val.dtype.is_complex else val


def imag(val):
    val = as_array(val)
    return val.builder.unary("IMAG", val) if val.dtype.is_complex else pointwise.full_like(val, 0)


def complex(real, imag):
    """real + 1j * imag."""
    real, imag = broadcast(*promoted(real, imag, to=dtypes.inexact_of))
    pointwise.refuse("complex", real.dtype.is_complex, real, imag)
    if real.dtype.bits == 16:
        real, imag = (part.builder.convert(part, dtypes.float32) for part in (real, imag))
    return real.builder.binary("COMPLEX", real, imag)
