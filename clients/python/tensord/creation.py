"""New arrays, with NumPy's names and defaults. They belong to the trace under way."""

import math

from tensord import arithmetic, dims, dtypes, logic
from tensord.array import Array
from tensord.dims import Dim
from tensord.graph_builder import current_builder
from tensord.lifting import as_array, broadcast_to


def asarray(value, dtype=None):
    """An Array of a number, a NumPy array (a constant of the graph) or an Array."""
    return as_array(value, dtype)


def full(shape, fill_value, dtype=None):
    return broadcast_to(as_array(fill_value, dtype), dims.as_shape(shape))


def zeros(shape, dtype=float):
    return full(shape, 0, dtype)


def ones(shape, dtype=float):
    return full(shape, 1, dtype)


empty = zeros


def full_like(x, fill_value, dtype=None, shape=None):
    x = as_array(x)
    return full(x.shape if shape is None else shape, fill_value, x.dtype if dtype is None else dtype)


def zeros_like(x, dtype=None, shape=None):
    return full_like(x, 0, dtype, shape)


def ones_like(x, dtype=None, shape=None):
    return full_like(x, 1, dtype, shape)


empty_like = zeros_like


def iota(shape, axis=0, dtype=int):
    """0, 1, 2, … along one axis, the same along the others."""
    shape = dims.as_shape(shape)
    return current_builder().iota(dtypes.as_dtype(dtype), shape, range(len(shape))[axis])


def arange(start, stop=None, step=1, dtype=None):
    """start, start + step, … before stop. Bounds are Python numbers; `stop` may be a symbolic size, with step 1."""
    if stop is None:
        start, stop = 0, start
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
            dtype = dtypes.float64 if any(isinstance(bound, float) for bound in (start, stop, step)) else dtypes.int64
        dtype = dtypes.as_dtype(dtype)
    counted = current_builder().iota(dtype, (length,), 0)
    if step != 1:
        counted = arithmetic.multiply(counted, as_array(step, dtype))
    return counted if start == 0 else arithmetic.add(counted, as_array(start, dtype))


def linspace(start, stop, num=50, endpoint=True, dtype=None):
    """`num` numbers evenly spaced from start to stop."""
    dtype = dtypes.float64 if dtype is None else dtypes.as_dtype(dtype)
    working = dtypes.inexact_of(dtype)
    intervals = num - 1 if endpoint else num
    counted = current_builder().iota(working, (num,), 0)
    if intervals <= 0:
        return logic.astype(arithmetic.add(arithmetic.multiply(counted, 0), start), dtype)
    result = arithmetic.add(arithmetic.multiply(counted, (stop - start) / intervals), start)
    if endpoint:  # the last one is exact
        result = logic.where(logic.equal(counted, intervals), stop, result)
    return logic.astype(result, dtype)


def eye(n, m=None, k=0, dtype=float):
    """Ones on the k-th diagonal, zeros elsewhere."""
    shape = dims.as_shape((n, n if m is None else m))
    builder = current_builder()
    rows, columns = builder.iota(dtypes.int64, shape, 0), builder.iota(dtypes.int64, shape, 1)
    return logic.astype(logic.equal(arithmetic.add(rows, k) if k else rows, columns), dtype)


def identity(n, dtype=float):
    return eye(n, dtype=dtype)


def tri(n, m=None, k=0, dtype=float):
    """Ones on and below the k-th diagonal, zeros above."""
    shape = dims.as_shape((n, n if m is None else m))
    builder = current_builder()
    rows, columns = builder.iota(dtypes.int64, shape, 0), builder.iota(dtypes.int64, shape, 1)
    return logic.astype(logic.greater_equal(arithmetic.add(rows, k), columns), dtype)
