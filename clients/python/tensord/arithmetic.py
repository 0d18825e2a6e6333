"""Arithmetic and rounding of each element, with NumPy's names and meaning."""

import builtins

from tensord import dtypes, pointwise
from tensord.array import Array
from tensord.lifting import as_array, broadcast, promoted, result_type
from tensord.logic import (
    complex,
    equal,
    imag,
    isfinite,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_or,
    not_equal,
    real,
    where,
)

# ---- Arithmetic ----


def add(x, y):
    return pointwise.binary("ADD", x, y)


def subtract(x, y):
    pointwise.refuse("subtract", result_type(x, y).is_bool, x, y)
    return pointwise.binary("SUBTRACT", x, y)


def multiply(x, y):
    return pointwise.binary("MULTIPLY", x, y)


def divide(x, y):
    """True division: integers are divided in float64."""
    return pointwise.binary("DIVIDE", x, y, to=dtypes.inexact_of)


true_divide = divide


def floor_divide(x, y):
    """floor(x / y). An integer divided by zero is no error: it gives what the server's division gives."""
    x, y = broadcast(*promoted(x, y))
    pointwise.refuse("floor_divide", x.dtype.is_complex or x.dtype.is_bool, x, y)
    builder = x.builder
    remainder_ = builder.binary("REMAINDER", x, y)
    adjust = _signs_differ(remainder_, y)
    if x.dtype.is_integer:
        quotient = builder.binary("DIVIDE", x, y)
        return builder.select(adjust, subtract(quotient, 1), quotient)
    # (x - remainder) / y is whole up to rounding, so that rounding it is exact where flooring x / y is not.
    quotient = builder.binary("DIVIDE", subtract(x, remainder_), y)
    quotient = rint(builder.select(adjust, subtract(quotient, 1.0), quotient))
    return builder.select(equal(y, 0.0), builder.binary("DIVIDE", x, y), quotient)


def _signs_differ(remainder_, divisor):
    return logical_and(not_equal(remainder_, 0), not_equal(less(remainder_, 0), less(divisor, 0)))


def remainder(x, y):
    """x - floor(x / y) * y, with the sign of the divisor; the operator %."""
    x, y = broadcast(*promoted(x, y))
    pointwise.refuse("remainder", x.dtype.is_complex or x.dtype.is_bool, x, y)
    rest = x.builder.binary("REMAINDER", x, y)
    return x.builder.select(_signs_differ(rest, y), add(rest, y), rest)


mod = remainder


def fmod(x, y):
    """The remainder with the sign of the dividend."""
    x, y = broadcast(*promoted(x, y))
    pointwise.refuse("fmod", x.dtype.is_complex or x.dtype.is_bool, x, y)
    return x.builder.binary("REMAINDER", x, y)


def divmod(x, y):
    return floor_divide(x, y), remainder(x, y)


_LARGEST_EXPONENT_BY_MULTIPLICATION = 8


def power(x, y):
    """x to the power y. A small whole Python exponent of an inexact array becomes multiplications."""
    dtype = result_type(x, y)
    pointwise.refuse("power", dtype.is_bool, x, y)
    if dtype.is_integer and dtypes.is_weak(y) and y < 0:
        raise ValueError("integers to negative integer powers are not allowed: convert the base to a float")
    if isinstance(x, Array) and dtypes.is_weak(y) and dtype.is_inexact and x.dtype is dtype:
        if y == 0.5:
            return x.builder.unary("SQRT", x)
        if (
            not isinstance(y, builtins.complex)
            and float(y).is_integer()
            and 1 <= builtins.abs(y) <= _LARGEST_EXPONENT_BY_MULTIPLICATION
        ):
            result = _by_multiplication(x, builtins.abs(int(y)))
            return result if y > 0 else reciprocal(result)
    return pointwise.binary("POW", x, y)


def _by_multiplication(x, exponent):
    result, square_ = None, x
    while exponent:
        if exponent & 1:
            result = square_ if result is None else multiply(result, square_)
        exponent >>= 1
        if exponent:
            square_ = multiply(square_, square_)
    return result


def float_power(x, y):
    """power computed in float64 or complex128."""
    to = dtypes.complex128 if result_type(x, y).is_complex else dtypes.float64
    return pointwise.binary("POW", x, y, to=lambda _: to)


def negative(x):
    x = as_array(x)
    pointwise.refuse("negative", x.dtype.is_bool, x)
    return x.builder.unary("NEGATE", x)


def positive(x):
    x = as_array(x)
    pointwise.refuse("positive", x.dtype.is_bool, x)
    return x


def abs(x):
    x = as_array(x)
    return x if x.dtype.is_bool else x.builder.unary("ABS", x)


absolute = abs


def sign(x):
    """-1, 0 or 1; z / |z| for complex numbers."""
    x = as_array(x)
    pointwise.refuse("sign", x.dtype.is_bool, x)
    return x.builder.unary("SIGN", x)


def square(x):
    x = as_array(x)
    return x.builder.binary("MULTIPLY", x, x)


def reciprocal(x):
    """1 / x; integers are divided as the server divides them, toward zero."""
    x = as_array(x)
    pointwise.refuse("reciprocal", x.dtype.is_bool, x)
    return x.builder.binary("DIVIDE", pointwise.full_like(x, 1), x)


def maximum(x, y):
    """The greater of the two; NaN where either is NaN."""
    return pointwise.binary("MAXIMUM", x, y)


def minimum(x, y):
    return pointwise.binary("MINIMUM", x, y)


def fmax(x, y):
    """The greater of the two; NaN only where both are NaN."""
    x, y = broadcast(*promoted(x, y))
    return where(isnan(x), y, where(isnan(y), x, x.builder.binary("MAXIMUM", x, y)))


def fmin(x, y):
    x, y = broadcast(*promoted(x, y))
    return where(isnan(x), y, where(isnan(y), x, x.builder.binary("MINIMUM", x, y)))


def clip(x, a_min=None, a_max=None):
    """x limited to [a_min, a_max]; a limit that is None does not limit."""
    if a_min is None and a_max is None:
        return as_array(x)
    if a_min is None:
        return minimum(x, a_max)
    if a_max is None:
        return maximum(x, a_min)
    x, low, high = promoted(x, a_min, a_max)
    if low.shape == high.shape == () and not x.dtype.is_complex and not x.dtype.is_bool:
        return x.builder.clamp(low, x, high)
    return minimum(maximum(x, low), high)


# ---- Rounding ----


def _rounded(name, kind, x):
    x = as_array(x)
    pointwise.refuse(name, x.dtype.is_complex, x)
    return x.builder.unary(kind, x) if x.dtype.is_float else x


def floor(x):
    return _rounded("floor", "FLOOR", x)


def ceil(x):
    return _rounded("ceil", "CEIL", x)


def trunc(x):
    """The nearest whole number toward zero."""
    x = as_array(x)
    if not x.dtype.is_float:
        return _rounded("trunc", "FLOOR", x)
    return where(less(x, 0), ceil(x), floor(x))


def rint(x):
    """The nearest whole number, halves to even."""
    x = as_array(x)
    pointwise.refuse("rint", x.dtype.is_complex, x)
    return pointwise.inexact("ROUND_NEAREST_EVEN", x)


def round(x, decimals=0):
    """x rounded to `decimals` places after the point, halves to even."""
    x = as_array(x)
    if not x.dtype.is_inexact:
        if decimals >= 0:
            return x
        raise TypeError("round of integers to tens and up is not supported: convert to float64")
    if x.dtype.is_complex:
        return complex(round(real(x), decimals), round(imag(x), decimals))
    if decimals == 0:
        return x.builder.unary("ROUND_NEAREST_EVEN", x)
    scale = 10.0 ** builtins.abs(decimals)
    if decimals > 0:
        return divide(rint(multiply(x, scale)), scale)
    return multiply(rint(divide(x, scale)), scale)


around = round

# ---- Comparison up to rounding ----


def isclose(x, y, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether |x - y| <= atol + rtol * |y|; equal infinities are close."""
    x, y = broadcast(*promoted(x, y, to=dtypes.inexact_of))
    near = less_equal(abs(subtract(x, y)), add(atol, multiply(rtol, abs(y))))
    close = logical_or(logical_and(near, isfinite(y)), equal(x, y))
    return logical_or(close, logical_and(isnan(x), isnan(y))) if equal_nan else close
