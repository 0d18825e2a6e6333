"""New arrays, with NumPy's names and defaults. They belong to the trace under way."""

import math
import operator

import numpy as np

from tensord import dims, dtypes
from tensord.arguments.numpy_arrays import numpy_array
from tensord.arguments.options import check_creation, check_device
from tensord.array import Array
from tensord.dims import Dim
from tensord.functions import arithmetic, logic, shaping
from tensord.tracing.graph_builder import current_builder
from tensord.tracing.lifting import as_array, broadcast_shapes, broadcast_to, result_type


def asarray(a, dtype=None, order=None, *, device=None, copy=None, like=None):
    """An Array of a number, a NumPy array (a constant of the graph), an Array, or lists of these."""
    check_creation("asarray", order, device, like)
    return as_array(a, dtype)


def full(shape, fill_value, dtype=None, order="C", *, device=None, like=None):
    check_creation("full", order, device, like)
    return broadcast_to(as_array(fill_value, dtype), dims.as_shape(shape))


def zeros(shape, dtype=None, order="C", *, device=None, like=None):
    return full(shape, 0, dtypes.float64 if dtype is None else dtype, order, device=device, like=like)


def ones(shape, dtype=None, order="C", *, device=None, like=None):
    return full(shape, 1, dtypes.float64 if dtype is None else dtype, order, device=device, like=like)


def empty(shape, dtype=None, order="C", *, device=None, like=None):
    """Zeros: every element of an Array has a value."""
    return zeros(shape, dtype, order, device=device, like=like)


def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None, *, device=None):
    a = as_array(a)
    return full(a.shape if shape is None else shape, fill_value, a.dtype if dtype is None else dtype, order, device=device)


def zeros_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
    return full_like(a, 0, dtype, order, subok, shape, device=device)


def ones_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
    return full_like(a, 1, dtype, order, subok, shape, device=device)


def empty_like(prototype, dtype=None, order="K", subok=True, shape=None, *, device=None):
    return zeros_like(prototype, dtype, order, subok, shape, device=device)


def iota(shape, axis=0, dtype=int):
    """0, 1, 2, … along one axis, the same along the others."""
    shape = dims.as_shape(shape)
    return current_builder().iota(dtypes.as_dtype(dtype), shape, range(len(shape))[axis])


def arange(start=None, stop=None, step=1, dtype=None, *, device=None, like=None):
    """start, start + step, … before stop. Bounds are numbers; `stop` may be a symbolic size, with step 1."""
    check_creation("arange", device=device, like=like)
    if start is None and stop is None:
        raise TypeError("arange needs the number before which it stops")
    step = 1 if step is None else step
    if stop is None:
        start, stop = 0, start
    start = 0 if start is None else start
    if any(isinstance(bound, Array) for bound in (start, stop, step)):
        raise TypeError("arange: its bounds decide the result's shape, so they cannot be traced values")
    if isinstance(stop, (Dim, str)):
        length = dims.as_size(stop) - start
        if step != 1:
            raise TypeError("arange up to a symbolic size has step 1")
        dtype = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)
    else:
        if step == 0:
            raise ValueError("arange: step is 0")
        length = max(0, math.ceil((stop - start) / step))
        if dtype is None:
            dtype = result_type(*map(np.asarray, (start, stop, step)))
            dtype = dtypes.int64 if dtype.is_bool else dtype
        dtype = dtypes.as_dtype(dtype)
        if dtype.is_bool:
            raise TypeError("arange: there are no numbers of bool to count with: compare those of an integer type")
        if dtype.is_float:  # what NumPy adds up is the difference of the first two numbers
            with np.errstate(all="ignore"):
                step = (np.asarray(start + step, dtype.numpy) - np.asarray(start, dtype.numpy))[()]
    counted = current_builder().iota(dtype, (length,), 0)
    if step != 1:
        counted = arithmetic.multiply(counted, as_array(step, dtype))
    return counted if isinstance(start, int) and start == 0 else arithmetic.add(counted, as_array(start, dtype))


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None):
    """`num` numbers evenly spaced from start to stop, along a new axis; integers are rounded down. With `retstep` also
    the distance of two of them."""
    check_device("linspace", device)
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"linspace: the number of samples is not negative: {num}")
    working = dtypes.inexact_of(result_type(start, stop))
    start, stop = _bound(start, working), _bound(stop, working)
    shape = broadcast_shapes(start.shape, stop.shape)
    counted = current_builder().iota(working, (num,) + (1,) * len(shape), 0)
    intervals = num - 1 if endpoint else num
    distance = stop - start
    if intervals > 0:
        step = distance / as_array(intervals, working) if isinstance(distance, Array) else distance / intervals
        result = _steps(counted, distance, step, intervals, working)
    else:
        step = broadcast_to(as_array(math.nan, working), shape)
        result = arithmetic.multiply(counted, as_array(distance, working))
    result = arithmetic.add(result, as_array(start, working))
    if endpoint and num > 1:  # the last one is exact
        result = logic.where(logic.equal(counted, intervals), as_array(stop, working), result)
    result = shaping.moveaxis(broadcast_to(result, (num,) + shape), 0, axis)
    dtype = working if dtype is None else dtypes.as_dtype(dtype)
    if dtype.is_integer and not working.is_complex:
        result = arithmetic.floor(result)
    result = as_array(result, dtype)
    return (result, as_array(step, working)) if retstep else result


def _bound(value, working):
    """A bound of linspace in the type that it is computed in: an Array, or a NumPy array where it is known."""
    return as_array(value, working) if isinstance(value, (Array, Dim)) else numpy_array(value).astype(working.numpy)


def _steps(counted, distance, step, intervals, working):
    """counted * step; where the step is so small that it is zero, counted / intervals * distance."""
    stepped = arithmetic.multiply(counted, as_array(step, working))
    if not isinstance(step, Array) and not (step == 0).any():
        return stepped
    parts = arithmetic.multiply(arithmetic.divide(counted, as_array(intervals, working)), as_array(distance, working))
    if not isinstance(step, Array):
        return parts
    return logic.where(logic.equal(step, 0), parts, stepped)


def eye(N, M=None, k=0, dtype=float, order="C", *, device=None, like=None):
    """Ones on the k-th diagonal, zeros elsewhere."""
    check_creation("eye", order, device, like)
    rows, columns = _places((N, N if M is None else M))
    k = operator.index(k)
    return logic.astype(logic.equal(arithmetic.add(rows, k) if k else rows, columns), dtypes.float64 if dtype is None else dtype)


def _places(shape):
    """The row and the column of each element of a matrix."""
    shape, builder = dims.as_shape(shape), current_builder()
    return builder.iota(dtypes.int64, shape, 0), builder.iota(dtypes.int64, shape, 1)


def identity(n, dtype=None, *, like=None):
    return eye(n, dtype=dtype, like=like)


def tri(N, M=None, k=0, dtype=float, *, like=None):
    """Ones on and below the k-th diagonal, zeros above."""
    check_creation("tri", like=like)
    rows, columns = _places((N, N if M is None else M))
    at_or_below = logic.greater_equal(arithmetic.add(rows, operator.index(k)), columns)
    return logic.astype(at_or_below, dtypes.float64 if dtype is None else dtype)
