"""Sums and other reductions, with NumPy's names and meaning."""

import builtins

from tensord import dims, dtypes
from tensord.arguments.integers import is_integer
from tensord.arguments.options import is_given, refuse_out
from tensord.functions.arithmetic import add, divide, maximum, minimum, multiply, subtract
from tensord.functions.logic import conj, equal, isfinite, logical_or, not_equal, real, truth, where as _chosen
from tensord.functions.transcendental import exp, log, sqrt
from tensord.tracing import pointwise
from tensord.tracing.lifting import as_array, broadcast_to, normalized_axes, normalized_axis, result_type, show


def _axes(axis, x):
    """The axes of a reduction; a number has the axis 0 too, as in NumPy."""
    return () if x.ndim == 0 and is_integer(axis) and axis in (0, -1) else normalized_axes(axis, x.ndim)


def _reduced(kind, x, axis, keepdims, requires_elements=False):
    axes = _axes(axis, x)
    result = x.builder.reduce(kind, x, axes, requires_elements)
    return _restored(x, result, axes) if is_given(keepdims) and keepdims else result


def _restored(x, result, axes):
    return x.builder.reshape(result, tuple(1 if a in axes else size for a, size in enumerate(x.shape)))


def _accumulated(x, dtype):
    """x in the type that NumPy adds up in: small integers and booleans in int64. In an algebra in its own: no sum has more
    bits than its elements there, and none has a conversion."""
    x = as_array(x)
    if dtype is not None:
        return as_array(x, dtype)
    return x if x.dtype.is_inexact or x.builder.graph.algebra else x.builder.convert(x, dtypes.int64)


def _masked(x, where, identity):
    """x with what `where` leaves out replaced by a number that counts nothing."""
    if where is True or not is_given(where):
        return x
    where = as_array(where)
    if not where.dtype.is_bool:
        raise TypeError(f"where is a mask of bool, not of {where.dtype}")
    return _chosen(where, x, as_array(identity, x.dtype))


def _begun(combine, initial, result):
    """The result with the number that the reduction begins with, which becomes the result's type as NumPy casts it."""
    return combine(as_array(initial, result.dtype), result)


def sum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=True):
    refuse_out("sum", out)
    a = _masked(_accumulated(a, dtype), where, 0)
    return _folded("SUM", a, axis, keepdims, initial)


def prod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=True):
    refuse_out("prod", out)
    a = _masked(_accumulated(a, dtype), where, 1)
    return _folded("PRODUCT", a, axis, keepdims, initial)


_COMBINED = {"SUM": add, "PRODUCT": multiply, "MAX": maximum, "MIN": minimum}


def _folded(kind, a, axis, keepdims, initial):
    """The reduction, from `initial` on where it is given: with 16-bit floats rounded after that."""
    if not is_given(initial):
        return _reduced(kind, a, axis, keepdims)
    initial = as_array(initial, a.dtype)
    return pointwise.rounded_once(lambda a: _begun(_COMBINED[kind], initial, _reduced(kind, a, axis, keepdims)), a)


def _extreme(name, kind, a, axis, keepdims, initial=None, where=True):
    a = as_array(a)
    if is_given(initial):
        initial = as_array(initial, a.dtype)
        if where is not True and is_given(where):
            a = _masked(a, where, initial)
        return _begun(_COMBINED[kind], initial, _reduced(kind, a, axis, keepdims))
    if where is not True and is_given(where):
        raise ValueError(f"{name} with where needs initial, which is the value where no element is left")
    axes = _axes(axis, a)
    for place in axes:
        is_empty = dims.is_static(a.shape[place]) and a.shape[place] == 0
        if is_empty and (name.startswith("arg") or not _is_empty(a, axes)):
            raise ValueError(f"{name} over axis {place}, which has size 0, has no value")
    # If only the run knows a size, it fails if there is no element: there is no extreme of no elements.
    symbolic = builtins.any(not dims.is_static(a.shape[place]) for place in axes)
    return _reduced(kind, a, axis, keepdims, requires_elements=symbolic)


def _is_empty(a, axes):
    """Tell whether the result has no elements, so that none of them lacks a value."""
    return builtins.any(dims.is_static(size) and size == 0 for place, size in enumerate(a.shape) if place not in axes)


def max(a, axis=None, out=None, keepdims=False, initial=None, where=True):
    refuse_out("max", out)
    return _extreme("max", "MAX", a, axis, keepdims, initial, where)


def min(a, axis=None, out=None, keepdims=False, initial=None, where=True):
    refuse_out("min", out)
    return _extreme("min", "MIN", a, axis, keepdims, initial, where)


amax, amin = max, min


def ptp(a, axis=None, out=None, keepdims=False):
    """max - min."""
    refuse_out("ptp", out)
    return subtract(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


def any(a, axis=None, out=None, keepdims=False, *, where=True):
    refuse_out("any", out)
    return _reduced("OR", _masked(truth(a), where, False), axis, keepdims)


def all(a, axis=None, out=None, keepdims=False, *, where=True):
    refuse_out("all", out)
    return _reduced("AND", _masked(truth(a), where, True), axis, keepdims)


def count_nonzero(a, axis=None, *, keepdims=False):
    return sum(truth(a), axis, dtypes.int64, keepdims=keepdims)


def _count(x, axes, dtype):
    """The number of elements that the reduction of some axes adds up, as a value of `dtype`."""
    return as_array(dims.product(x.shape[axis] for axis in axes), dtype)


def _counted(x, axis, keepdims, where, dtype):
    """The number of elements of x in each element of the result."""
    if where is True or not is_given(where):
        return _count(x, _axes(axis, x), dtype)
    mask = broadcast_to(as_array(where), x.shape)
    return as_array(sum(mask, axis, keepdims=keepdims), dtype)


def _working(x, dtype):
    """The results' type of a mean, and the type that it is computed in: 16-bit floats are added up in float32."""
    result = dtypes.inexact_of(x.dtype) if dtype is None else dtypes.as_dtype(dtype)
    return result, dtypes.float32 if result.bits == 16 else dtypes.inexact_of(result)


def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=True):
    """The mean; of integers in float64, of 16-bit floats added up in float32."""
    refuse_out("mean", out)
    a = as_array(a)
    result, working = _working(a, dtype)
    a = as_array(a, working)
    total = _reduced("SUM", _masked(a, where, 0), axis, keepdims)
    count = _counted(a, axis, keepdims, where, dtypes.real_of(working))
    return as_array(divide(total, count), result)


def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    """The mean, weighted where there are weights; with `returned` also the sum of the weights."""
    a = as_array(a)
    if weights is None:
        result = mean(a, axis, keepdims=keepdims)
        total = _count(a, _axes(axis, a), result.dtype)
        return (result, broadcast_to(total, result.shape)) if returned else result
    result, working = _working(a, _weighted_type(a, weights))
    a, weights = as_array(a, working), as_array(weights, working)
    if weights.shape != a.shape:
        weights = _along_axes(weights, a, axis)
    weights = broadcast_to(weights, a.shape)
    total = sum(weights, axis, keepdims=keepdims)
    quotient = as_array(divide(sum(multiply(a, weights), axis, keepdims=keepdims), total), result)
    return (quotient, as_array(total, result)) if returned else quotient


def _weighted_type(a, weights):
    return dtypes.inexact_of(result_type(a, as_array(weights)))


def _along_axes(weights, a, axis):
    """Weights of some axes of a, in the order in which `axis` names them, as an array that broadcasts to a."""
    if axis is None:
        raise TypeError("average: axis says of which axes the weights are, whose shape is not that of the array")
    axes = normalized_axes(axis, a.ndim)
    if weights.shape != tuple(a.shape[place] for place in axes):
        raise ValueError(f"average: weights of shape {show(weights.shape)} for axes {axes} of shape {show(a.shape)}")
    weights = weights.builder.transpose(weights, sorted(range(len(axes)), key=lambda place: axes[place]))
    return weights.builder.reshape(weights, tuple(size if place in axes else 1 for place, size in enumerate(a.shape)))


def var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, mean=None, correction=None):
    """The variance: squared distances from the mean, divided by their number less ddof, or correction."""
    refuse_out("var", out)
    variance, result = _variance("var", a, axis, dtype, ddof, keepdims, where, mean, correction)
    return as_array(variance, result)


def _variance(name, a, axis, dtype, ddof, keepdims, where, mean, correction):
    """The variance in the type that it is computed in, and the type that results have."""
    if is_given(correction):
        if ddof != 0:
            raise ValueError(f"{name}: ddof and correction mean the same: give one of them")
        ddof = correction
    a = as_array(a)
    result, working = _working(a, dtype)
    a = as_array(a, working)
    middle = as_array(mean, working) if is_given(mean) else _mean(a, axis, keepdims=True, where=where)
    distance = subtract(a, middle)
    squares = real(multiply(distance, conj(distance)))
    divisor = maximum(subtract(_counted(a, axis, keepdims, where, squares.dtype), ddof), 0)
    total = _reduced("SUM", _masked(squares, where, 0), axis, keepdims)
    return divide(total, divisor), dtypes.real_of(result) if dtype is None else result


_mean = mean  # where a parameter has its name


def std(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, mean=None, correction=None):
    refuse_out("std", out)
    variance, result = _variance("std", a, axis, dtype, ddof, keepdims, where, mean, correction)
    return as_array(sqrt(variance), result)  # a variance may be larger than 16 bits hold


def argmax(a, axis=None, out=None, *, keepdims=False):
    """The index of the first greatest element along an axis (None: in a raveled); the first NaN where there is one."""
    refuse_out("argmax", out)
    return _arg_extreme("argmax", "MAX", a, axis, keepdims)


def argmin(a, axis=None, out=None, *, keepdims=False):
    refuse_out("argmin", out)
    return _arg_extreme("argmin", "MIN", a, axis, keepdims)


def _arg_extreme(name, kind, x, axis, keepdims):
    x = as_array(x)
    rank = x.ndim
    if axis is None or rank == 0 and _axes(axis, x) == ():
        x = x.builder.reshape(x, (x.size,))
        result = _arg_extreme(name, kind, x, 0, False)
        return x.builder.reshape(result, (1,) * rank) if is_given(keepdims) and keepdims else result
    axis = normalized_axis(axis, rank)
    best = _extreme(name, kind, x, axis, True)
    found = logical_or(equal(x, best), not_equal(x, x))
    index = x.builder.iota(dtypes.int64, x.shape, axis)
    past_the_end = as_array(x.shape[axis], dtypes.int64)
    return _reduced("MIN", _chosen(found, index, past_the_end), axis, keepdims)


def logsumexp(x, axis=None, keepdims=False):
    """log(sum(exp(x))), computed so that nothing overflows."""
    x = as_array(x)
    x = x.builder.convert(x, dtypes.inexact_of(x.dtype))
    if x.dtype.is_complex:
        raise TypeError("logsumexp is not defined for complex numbers")
    result = pointwise.rounded_once(lambda x: _log_of_sum(x, axis), x)
    return result if keepdims else _without(result, normalized_axes(axis, x.ndim))


def _log_of_sum(x, axis):
    greatest = _reduced("MAX", x, axis, True)
    shift = _chosen(isfinite(greatest), greatest, 0)
    return add(log(_reduced("SUM", exp(subtract(x, shift)), axis, True)), shift)


def _without(x, axes):
    return x.builder.reshape(x, tuple(size for a, size in enumerate(x.shape) if a not in axes))


def softmax(x, axis=-1):
    """exp(x) / sum(exp(x)) along an axis, computed so that nothing overflows."""
    x = as_array(x)
    return pointwise.rounded_once(lambda x: _softmax(x, axis), x.builder.convert(x, dtypes.inexact_of(x.dtype)))


def _softmax(x, axis):
    grown = exp(subtract(x, _reduced("MAX", x, axis, True)))
    return divide(grown, _reduced("SUM", grown, axis, True))


def log_softmax(x, axis=-1):
    """log(softmax(x)), computed so that nothing overflows."""
    x = as_array(x)
    return pointwise.rounded_once(lambda x: _log_softmax(x, axis), x.builder.convert(x, dtypes.inexact_of(x.dtype)))


def _log_softmax(x, axis):
    shifted = subtract(x, _reduced("MAX", x, axis, True))
    return subtract(shifted, log(_reduced("SUM", exp(shifted), axis, True)))
