"""Sums and other reductions, with NumPy's names and meaning."""

from tensord import dims, dtypes
from tensord.arithmetic import abs, add, divide, maximum, multiply, square, subtract
from tensord.lifting import as_array, broadcast_to, normalized_axes, normalized_axis
from tensord.logic import conj, equal, isfinite, logical_or, not_equal, real, truth, where
from tensord.transcendental import exp, log, sqrt


def _reduced(kind, x, axis, keepdims):
    axes = normalized_axes(axis, x.ndim)
    result = x.builder.reduce(kind, x, axes)
    return _restored(x, result, axes) if keepdims else result


def _restored(x, result, axes):
    return x.builder.reshape(result, tuple(1 if a in axes else size for a, size in enumerate(x.shape)))


def _accumulated(x, dtype):
    """x in the type that NumPy adds up in: small integers and booleans in int64."""
    x = as_array(x)
    if dtype is not None:
        return x.builder.convert(x, dtypes.as_dtype(dtype))
    return x if x.dtype.is_inexact else x.builder.convert(x, dtypes.int64)


def sum(x, axis=None, dtype=None, keepdims=False):
    return _reduced("SUM", _accumulated(x, dtype), axis, keepdims)


def prod(x, axis=None, dtype=None, keepdims=False):
    return _reduced("PRODUCT", _accumulated(x, dtype), axis, keepdims)


def _extreme(name, kind, x, axis, keepdims):
    x = as_array(x)
    for a in normalized_axes(axis, x.ndim):
        if dims.is_static(x.shape[a]) and x.shape[a] == 0:
            raise ValueError(f"{name} over axis {a}, which has size 0, has no value")
    return _reduced(kind, x, axis, keepdims)


def max(x, axis=None, keepdims=False):
    return _extreme("max", "MAX", x, axis, keepdims)


def min(x, axis=None, keepdims=False):
    return _extreme("min", "MIN", x, axis, keepdims)


amax, amin = max, min


def ptp(x, axis=None, keepdims=False):
    """max - min."""
    return subtract(max(x, axis, keepdims), min(x, axis, keepdims))


def any(x, axis=None, keepdims=False):
    return _reduced("OR", truth(x), axis, keepdims)


def all(x, axis=None, keepdims=False):
    return _reduced("AND", truth(x), axis, keepdims)


def count_nonzero(x, axis=None, keepdims=False):
    return sum(truth(x), axis, keepdims=keepdims)


def _count(x, axes, dtype):
    """How many elements the reduction of some axes adds up, as a value of `dtype`."""
    return as_array(dims.product(x.shape[axis] for axis in axes), dtype)


def mean(x, axis=None, dtype=None, keepdims=False):
    """The mean; of integers in float64, of 16-bit floats added up in float32."""
    x = as_array(x)
    result_type = dtypes.inexact_of(x.dtype) if dtype is None else dtypes.as_dtype(dtype)
    working = dtypes.float32 if result_type.bits == 16 else result_type
    total = _reduced("SUM", x.builder.convert(x, working), axis, keepdims)
    average = divide(total, _count(x, normalized_axes(axis, x.ndim), dtypes.real_of(working)))
    return x.builder.convert(average, result_type)


def average(x, axis=None, weights=None, keepdims=False):
    if weights is None:
        return mean(x, axis, keepdims=keepdims)
    x, weights = as_array(x), as_array(weights)
    if weights.shape != x.shape and weights.ndim == 1 and axis is not None:
        place = normalized_axis(axis, x.ndim)
        weights = x.builder.reshape(weights, tuple(weights.shape[0] if a == place else 1 for a in range(x.ndim)))
    weights = broadcast_to(weights, x.shape)
    return divide(sum(multiply(x, weights), axis, keepdims=keepdims), sum(weights, axis, keepdims=keepdims))


def var(x, axis=None, dtype=None, ddof=0, keepdims=False):
    """The variance: squared distances from the mean, divided by their number less ddof."""
    x = as_array(x)
    result_type = dtypes.inexact_of(x.dtype) if dtype is None else dtypes.as_dtype(dtype)
    working = dtypes.float32 if result_type.bits == 16 else result_type
    x = x.builder.convert(x, working)
    distance = subtract(x, mean(x, axis, keepdims=True))
    squares = real(multiply(distance, conj(distance)))
    axes = normalized_axes(axis, x.ndim)
    divisor = maximum(subtract(_count(x, axes, squares.dtype), ddof), 0)
    result = divide(_reduced("SUM", squares, axis, keepdims), divisor)
    return x.builder.convert(result, dtypes.real_of(result_type))


def std(x, axis=None, dtype=None, ddof=0, keepdims=False):
    return sqrt(var(x, axis, dtype, ddof, keepdims))


def argmax(x, axis=None, keepdims=False):
    """The index of the first greatest element along an axis (None: in x raveled); the first NaN where there is one."""
    return _arg_extreme("argmax", "MAX", x, axis, keepdims)


def argmin(x, axis=None, keepdims=False):
    return _arg_extreme("argmin", "MIN", x, axis, keepdims)


def _arg_extreme(name, kind, x, axis, keepdims):
    x = as_array(x)
    rank = x.ndim
    if axis is None:
        x = x.builder.reshape(x, (x.size,))
        result = _arg_extreme(name, kind, x, 0, False)
        return x.builder.reshape(result, (1,) * rank) if keepdims else result
    axis = normalized_axis(axis, rank)
    best = _extreme(name, kind, x, axis, True)
    found = logical_or(equal(x, best), not_equal(x, x))
    index = x.builder.iota(dtypes.int64, x.shape, axis)
    past_the_end = as_array(x.shape[axis], dtypes.int64)
    return _reduced("MIN", where(found, index, past_the_end), axis, keepdims)


def logsumexp(x, axis=None, keepdims=False):
    """log(sum(exp(x))), computed so that nothing overflows."""
    x = as_array(x)
    x = x.builder.convert(x, dtypes.inexact_of(x.dtype))
    if x.dtype.is_complex:
        raise TypeError("logsumexp is not defined for complex numbers")
    greatest = _reduced("MAX", x, axis, True)
    shift = where(isfinite(greatest), greatest, 0)
    result = add(log(_reduced("SUM", exp(subtract(x, shift)), axis, True)), shift)
    return result if keepdims else _without(result, normalized_axes(axis, x.ndim))


def _without(x, axes):
    return x.builder.reshape(x, tuple(size for a, size in enumerate(x.shape) if a not in axes))


def softmax(x, axis=-1):
    """exp(x) / sum(exp(x)) along an axis, computed so that nothing overflows."""
    x = as_array(x)
    x = x.builder.convert(x, dtypes.inexact_of(x.dtype))
    grown = exp(subtract(x, _reduced("MAX", x, axis, True)))
    return divide(grown, _reduced("SUM", grown, axis, True))


def log_softmax(x, axis=-1):
    """log(softmax(x)), computed so that nothing overflows."""
    x = as_array(x)
    x = x.builder.convert(x, dtypes.inexact_of(x.dtype))
    shifted = subtract(x, _reduced("MAX", x, axis, True))
    return subtract(shifted, log(_reduced("SUM", exp(shifted), axis, True)))
