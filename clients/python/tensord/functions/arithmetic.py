"""Arithmetic and rounding of each element, with NumPy's names and meaning."""

import builtins
import operator

import numpy as np

from tensord import dtypes
from tensord.arguments.options import check_casting, is_given, refuse_out
from tensord.array import Array
from tensord.dims import Dim
from tensord.functions.logic import (
    complex,
    equal,
    imag,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_or,
    not_equal,
    real,
    where,
)
from tensord.tracing import pointwise
from tensord.tracing.lifting import as_array, broadcast, promoted, result_type
from tensord.tracing.ufuncs import check_parameters, ufunc

# ---- Arithmetic ----


@ufunc
def add(x, y):
    return pointwise.binary("ADD", x, y)


@ufunc
def subtract(x, y):
    pointwise.refuse("subtract", result_type(x, y).is_bool, x, y)
    return pointwise.binary("SUBTRACT", x, y)


@ufunc
def multiply(x, y):
    return pointwise.binary("MULTIPLY", x, y)


@ufunc
def divide(x, y):
    """True division: integers are divided in float64."""
    return pointwise.binary("DIVIDE", x, y, to=dtypes.inexact_of)


true_divide = divide


@ufunc
def floor_divide(x, y):
    """floor(x / y), which of a small negative number is -1; an integer divided by zero is 0."""
    divisor, is_safe = y, _is_known_divisor(y)
    x, y = broadcast(*promoted(x, y))
    pointwise.refuse("floor_divide", x.dtype.is_complex or x.dtype.is_bool, x, y)
    builder = x.builder
    if x.dtype.is_integer and is_safe:
        quotient = builder.binary("DIVIDE", x, y)
        rest = subtract(x, multiply(quotient, y))  # one multiplication, not a second division
        return builder.select(_is_beyond(rest, divisor), subtract(quotient, 1), quotient)
    if x.dtype.is_integer:
        rest, quotient = builder.binary("REMAINDER", x, y), builder.binary("DIVIDE", x, y)
        quotient = builder.select(_signs_differ(rest, y), subtract(quotient, 1), quotient)
        return _unless_divided_by_zero(quotient, y)
    return pointwise.rounded_once(lambda x, y: _whole_ratio(x, y, is_safe), x, y)


def _whole_ratio(x, y, is_safe):
    """floor(x / y) of real numbers; `is_safe` where y is not 0."""
    builder = x.builder
    rest = builder.binary("REMAINDER", x, y)
    # (x - rest) / y is whole up to rounding, so that rounding it is exact where flooring x / y is not.
    quotient = builder.binary("DIVIDE", subtract(x, rest), y)
    quotient = rint(builder.select(_signs_differ(rest, y), subtract(quotient, 1.0), quotient))
    ratio = builder.binary("DIVIDE", x, y)
    quotient = builder.select(equal(quotient, 0.0), multiply(ratio, 0.0), quotient)  # a zero has the ratio's sign
    return quotient if is_safe else builder.select(equal(y, 0.0), ratio, quotient)


_LEAST_KNOWN_DIVISOR = 2.0**-14


def _is_known_divisor(y):
    """Tell whether a divisor is a number that no dtype rounds to 0, for which nothing needs to be asked at run time."""
    return (dtypes.is_weak(y) or isinstance(y, np.number)) and builtins.abs(y) >= _LEAST_KNOWN_DIVISOR


def _is_beyond(rest, divisor):
    """Tell whether the remainder of a known divisor has the other sign."""
    return less(rest, 0) if divisor > 0 else less(0, rest)


def _signs_differ(rest, divisor):
    return logical_and(not_equal(rest, 0), not_equal(less(rest, 0), less(divisor, 0)))


def _unless_divided_by_zero(result, divisor):
    return divisor.builder.select(equal(divisor, 0), pointwise.full_like(result, 0), result)


@ufunc
def remainder(x, y):
    """x - floor(x / y) * y, with the sign of the divisor, zeros too; the operator %. 0 for integers mod 0."""
    divisor, is_safe = y, _is_known_divisor(y)
    x, y = broadcast(*promoted(x, y))
    pointwise.refuse("remainder", x.dtype.is_complex or x.dtype.is_bool, x, y)
    rest = x.builder.binary("REMAINDER", x, y)
    if x.dtype.is_integer and is_safe:
        return x.builder.select(_is_beyond(rest, divisor), add(rest, y), rest)
    result = x.builder.select(_signs_differ(rest, y), add(rest, y), rest)
    if x.dtype.is_integer:
        return _unless_divided_by_zero(result, y)
    # The divisor's sign on a zero, by arithmetic that leaves all other numbers and the slope as they are.
    is_below = less(y, 0)
    unsigned = add(where(is_below, negative(result), result), 0.0)
    return where(is_below, negative(unsigned), unsigned)


mod = remainder


@ufunc
def fmod(x, y):
    """The remainder with the sign of the dividend; 0 for integers mod 0."""
    is_safe = _is_known_divisor(y)
    x, y = broadcast(*promoted(x, y))
    pointwise.refuse("fmod", x.dtype.is_complex or x.dtype.is_bool, x, y)
    rest = x.builder.binary("REMAINDER", x, y)
    return _unless_divided_by_zero(rest, y) if x.dtype.is_integer and not is_safe else rest


@ufunc
def divmod(x, y):
    return floor_divide(x, y), remainder(x, y)


@ufunc
def power(x, y):
    """x to the power y. A small whole Python exponent of an inexact array becomes multiplications."""
    dtype = result_type(x, y)
    pointwise.refuse("power", dtype.is_bool, x, y)
    if dtype.is_integer and _is_known_negative(y):
        raise ValueError("integers to negative integer powers are not allowed: convert the base to a float")
    if isinstance(x, Array) and dtypes.is_weak(y) and dtype.is_inexact and x.dtype is dtype:
        if y == 0.5:
            return x.builder.unary("SQRT", x)
        if y == -1:
            return reciprocal(x)
        # More would be less exact than POW is; so is 16 bits' second rounding.
        if y in ((1, 2) if dtype.itemsize == 2 else (1, 2, 3, 4)):
            return _by_multiplication(x, int(y.real))
    return pointwise.binary("POW", x, y)


def _is_known_negative(y):
    return not isinstance(y, (Array, Dim)) and np.any(np.less(y, 0))


def _by_multiplication(x, exponent):
    result, square_ = None, x
    while exponent:
        if exponent & 1:
            result = square_ if result is None else multiply(result, square_)
        exponent >>= 1
        if exponent:
            square_ = multiply(square_, square_)
    return result


@ufunc
def float_power(x, y):
    """power computed in float64 or complex128."""
    to = dtypes.complex128 if result_type(x, y).is_complex else dtypes.float64
    return pointwise.binary("POW", x, y, to=lambda _: to)


@ufunc
def negative(x):
    x = as_array(x)
    pointwise.refuse("negative", x.dtype.is_bool, x)
    return x.builder.unary("NEGATE", x)


@ufunc
def positive(x):
    x = as_array(x)
    pointwise.refuse("positive", x.dtype.is_bool, x)
    return x


@ufunc
def abs(x):
    x = as_array(x)
    return x if x.dtype.is_bool else x.builder.unary("ABS", x)


absolute = abs


@ufunc
def sign(x):
    """-1, 0 or 1, the zero without a sign; z / |z| for complex numbers."""
    x = as_array(x)
    pointwise.refuse("sign", x.dtype.is_bool, x)
    signs = x.builder.unary("SIGN", x)
    if x.dtype.is_complex:
        signs = _of_infinite_parts(x, signs)
    return x.builder.select(equal(x, 0), pointwise.full_like(x, 0), signs) if x.dtype.is_inexact else signs


def _of_infinite_parts(x, signs):
    """The signs with those of complex numbers of which a part is infinite, on that part's axis; of two there is none."""
    parts = real(x), imag(x)
    infinite = [isinf(part) for part in parts]
    on_axis = [where(one, sign(part), 0) for part, one in zip(parts, infinite)]
    undefined = logical_and(*infinite)
    axis = complex(*(where(undefined, np.nan, part) for part in on_axis))
    return where(logical_or(*infinite), axis, signs)


@ufunc
def square(x):
    x = as_array(x)
    pointwise.refuse("square", x.dtype.is_bool, x)
    return x.builder.binary("MULTIPLY", x, x)


@ufunc
def reciprocal(x):
    """1 / x; integers are divided as the server divides them, toward zero."""
    x = as_array(x)
    pointwise.refuse("reciprocal", x.dtype.is_bool, x)
    return x.builder.binary("DIVIDE", pointwise.full_like(x, 1), x)


@ufunc
def maximum(x, y):
    """The greater of the two; NaN where either is NaN."""
    return pointwise.binary("MAXIMUM", x, y)


@ufunc
def minimum(x, y):
    return pointwise.binary("MINIMUM", x, y)


@ufunc
def fmax(x, y):
    """The greater of the two; NaN only where both are NaN."""
    return _of_numbers("MAXIMUM", x, y)


@ufunc
def fmin(x, y):
    return _of_numbers("MINIMUM", x, y)


def _of_numbers(kind, x, y):
    """One of two where the other is NaN, else what the operation makes of both."""
    x, y = broadcast(*promoted(x, y))
    both = x.builder.binary(kind, x, y)
    return where(isnan(x), y, where(isnan(y), x, both)) if x.dtype.is_inexact else both


def clip(a, a_min=None, a_max=None, out=None, *, min=None, max=None, where=True, casting="same_kind", order="K", dtype=None,
         subok=True, signature=None):  # fmt: skip
    """a limited to [a_min, a_max], or [min, max]; a limit that is None, or an integer beyond all of a's, does not limit."""
    if is_given(min) and is_given(a_min) or is_given(max) and is_given(a_max):
        raise ValueError("clip: a_min and min, as a_max and max, mean the same: give one of them")
    low, high = (first if is_given(first) else second if is_given(second) else None
                 for first, second in ((a_min, min), (a_max, max)))  # fmt: skip
    check_parameters("clip", out, where, order, signature, casting)
    if dtype is not None:
        limits = [limit for limit in (low, high) if limit is not None]
        check_casting("clip", result_type(a, *limits), dtypes.as_dtype(dtype), casting)
        a = as_array(a, dtype)
    a = as_array(a)
    return _limited(a, _limit(a, low, above=False), _limit(a, high, above=True))


def _limit(a, limit, above):
    """None for a Python integer that no integer of a's type is beyond."""
    is_beyond = isinstance(limit, int) and not isinstance(limit, bool) and not dtypes.fits(limit, a.dtype)
    return None if is_beyond and (limit > 0) == above else limit


def _limited(x, low, high):
    if low is None and high is None:
        return x
    if low is None:
        return minimum(x, high)
    if high is None:
        return maximum(x, low)
    x, low, high = promoted(x, low, high)
    if low.shape == high.shape == () and not x.dtype.is_complex and not x.dtype.is_bool:
        return x.builder.clamp(low, x, high)
    return minimum(maximum(x, low), high)


# ---- Rounding ----


def _rounded(name, kind, x):
    x = as_array(x)
    pointwise.refuse(name, x.dtype.is_complex, x)
    return x.builder.unary(kind, x) if x.dtype.is_float else x


@ufunc
def floor(x):
    return _rounded("floor", "FLOOR", x)


@ufunc
def ceil(x):
    return _rounded("ceil", "CEIL", x)


@ufunc
def trunc(x):
    """The nearest whole number toward zero."""
    x = as_array(x)
    if not x.dtype.is_float:
        return _rounded("trunc", "FLOOR", x)
    return where(less(x, 0), ceil(x), floor(x))


@ufunc
def rint(x):
    """The nearest whole number, halves to even."""
    x = as_array(x)
    if x.dtype.is_complex:
        return complex(rint(real(x)), rint(imag(x)))
    return pointwise.inexact("ROUND_NEAREST_EVEN", x)


def round(a, decimals=0, out=None):
    """a rounded to `decimals` places after the point, halves to even; those before the point are negative."""
    refuse_out("round", out)
    a, decimals = as_array(a), operator.index(decimals)
    if a.dtype.is_bool:
        return rint(a)
    if a.dtype.is_integer:
        if decimals >= 0:
            return a
        return as_array(round(as_array(a, dtypes.float64), decimals), a.dtype)
    if a.dtype.is_complex:
        return complex(round(real(a), decimals), round(imag(a), decimals))
    if decimals == 0:
        return a.builder.unary("ROUND_NEAREST_EVEN", a)
    scale = 10.0 ** builtins.abs(decimals)
    if decimals > 0:
        return divide(rint(multiply(a, scale)), scale)
    return multiply(rint(divide(a, scale)), scale)


around = round

# ---- Comparison up to rounding ----


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Tell whether |a - b| <= atol + rtol * |b|; equal infinities are close."""
    a, b = broadcast(*promoted(a, b, to=dtypes.inexact_of))
    near = less_equal(abs(subtract(a, b)), add(atol, multiply(rtol, abs(b))))
    close = logical_or(logical_and(near, isfinite(b)), equal(a, b))
    return logical_or(close, logical_and(isnan(a), isnan(b))) if equal_nan else close
