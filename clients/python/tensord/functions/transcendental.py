"""Exponentials, trigonometric and special functions of each element, with NumPy's names and meaning."""

import math

from tensord import dtypes
from tensord.functions.arithmetic import abs, add, divide, multiply, square, subtract
from tensord.functions.logic import equal, greater_equal, imag, isinf, logical_and, logical_or, real, where
from tensord.tracing import pointwise
from tensord.tracing.lifting import as_array, broadcast, promoted, result_type
from tensord.tracing.ufuncs import ufunc

# ---- Exponentials, logarithms, powers ----


@ufunc
def exp(x):
    return pointwise.inexact("EXP", x)


@ufunc
def exp2(x):
    """2**x, exact of whole numbers."""
    return pointwise.inexact("EXP2", x)


@ufunc
def expm1(x):
    """exp(x) - 1, accurate near zero."""
    return pointwise.inexact("EXPM1", x)


@ufunc
def log(x):
    return pointwise.inexact("LOG", x)


@ufunc
def log2(x):
    """The logarithm to the base 2, exact of powers of two."""
    return pointwise.inexact("LOG2", x)


@ufunc
def log10(x):
    """The logarithm to the base 10, exact of powers of ten."""
    return pointwise.inexact("LOG10", x)


@ufunc
def log1p(x):
    """log(1 + x), accurate near zero."""
    return pointwise.inexact("LOG1P", x)


@ufunc
def logaddexp(x, y):
    x, y = broadcast(*promoted(x, y, to=dtypes.inexact_loop))
    pointwise.refuse("logaddexp", x.dtype.is_complex, x, y)
    return pointwise.rounded_once(_log_of_sum, x, y)


def _log_of_sum(x, y):
    # Chosen by a comparison, which has no slope, so that derivatives of any order are right where x = y: the slopes of
    # maximum and abs jump there.
    is_ordered = greater_equal(x, y)
    larger, lesser = where(is_ordered, x, y), where(is_ordered, y, x)
    # Equal infinities have no difference.
    are_infinite = logical_and(equal(x, y), isinf(x))
    difference = where(are_infinite, pointwise.like(x, 0), subtract(lesser, larger))
    return add(larger, log1p(exp(difference)))


@ufunc
def sqrt(x):
    return pointwise.inexact("SQRT", x)


def rsqrt(x):
    """1 / sqrt(x)."""
    return pointwise.inexact("RSQRT", x)


@ufunc
def cbrt(x):
    return pointwise.real_inexact("cbrt", "CBRT", x)


@ufunc
def hypot(x, y):
    """sqrt(x*x + y*y), scaled so that the squares do not overflow."""
    x, y = broadcast(*promoted(x, y, to=dtypes.inexact_loop))
    pointwise.refuse("hypot", x.dtype.is_complex, x, y)
    return pointwise.rounded_once(_hypotenuse, x, y)


def _hypotenuse(x, y):
    # Chosen by a comparison, and the smaller one with its sign: as in _log_of_sum.
    is_ordered = greater_equal(abs(x), abs(y))
    large, small = where(is_ordered, x, y), where(is_ordered, y, x)
    ratio = divide(small, where(equal(large, 0), pointwise.like(x, 1), large))
    scaled = multiply(abs(large), sqrt(add(1, square(ratio))))
    infinite = logical_or(isinf(x), isinf(y))
    return where(infinite, pointwise.like(x, math.inf), scaled)


# ---- Trigonometric and hyperbolic ----


@ufunc
def sin(x):
    return pointwise.inexact("SIN", x)


@ufunc
def cos(x):
    return pointwise.inexact("COS", x)


@ufunc
def tan(x):
    return pointwise.inexact("TAN", x)


@ufunc
def tanh(x):
    return pointwise.inexact("TANH", x)


@ufunc
def sinh(x):
    return pointwise.inexact("SINH", x)


@ufunc
def cosh(x):
    return pointwise.inexact("COSH", x)


@ufunc
def arctan2(y, x):
    """The angle of the point (x, y), from -pi to pi."""
    y, x = broadcast(*promoted(y, x, to=dtypes.inexact_loop))
    pointwise.refuse("arctan2", x.dtype.is_complex, y, x)
    return x.builder.binary("ATAN2", y, x)


@ufunc
def arctan(x):
    return pointwise.inexact("ATAN", x)


@ufunc
def arcsin(x):
    return pointwise.inexact("ASIN", x)


@ufunc
def arccos(x):
    return pointwise.inexact("ACOS", x)


@ufunc
def arcsinh(x):
    return pointwise.inexact("ASINH", x)


@ufunc
def arccosh(x):
    return pointwise.inexact("ACOSH", x)


@ufunc
def arctanh(x):
    return pointwise.inexact("ATANH", x)


@ufunc
def deg2rad(x):
    return _turned("deg2rad", x, math.pi / 180.0)


radians = deg2rad


@ufunc
def rad2deg(x):
    return _turned("rad2deg", x, 180.0 / math.pi)


degrees = rad2deg


def _turned(name, x, factor):
    dtype = dtypes.inexact_loop(result_type(x))
    pointwise.refuse(name, dtype.is_complex, as_array(x))
    return pointwise.rounded_once(lambda angle: multiply(angle, factor), as_array(x, dtype))


def angle(z, deg=False):
    """The angle of complex numbers, from -pi to pi, or in degrees."""
    z = as_array(z)
    turned = arctan2(imag(z), real(z)) if z.dtype.is_inexact else arctan2(0.0, as_array(z, dtypes.float64))
    return rad2deg(turned) if deg else turned


# ---- Special functions ----
def logistic(x):
    """1 / (1 + exp(-x))."""
    return pointwise.inexact("LOGISTIC", x)


sigmoid = logistic


def erf(x):
    return pointwise.real_inexact("erf", "ERF", x)
