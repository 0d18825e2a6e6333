"""Array[...]: what a key means is settled while the function is traced."""

import builtins

import numpy as np

from tensord import dims, dtypes, shaping
from tensord.arithmetic import add
from tensord.array import Array
from tensord.lifting import as_array, normalized_axis, show
from tensord.logic import less, where


def getitem(x, key):
    """x[key] for integers, slices, None and Ellipsis, with at most one array of integers among them.

    An integer that is a traced Array selects at run time. Its value is clamped into bounds, as is each element of an
    array of integers; negative ones count from the end. A mask has no place here, since it decides the result's shape:
    use td.where.
    """
    key = _expanded(x, key if isinstance(key, tuple) else (key,))
    arrays = [(position, item) for position, item in enumerate(key) if isinstance(item, (Array, np.ndarray, list))]
    if len(arrays) > 1:
        raise TypeError("an index may hold one array; several are not supported")
    if not arrays:
        return _basic(x, key)
    # First everything but the array, which then indexes the axis that its place has become.
    position, indices = arrays[0]
    rest = key[:position] + (slice(None),) + key[position + 1 :]
    axis = builtins.sum(not _is_integer(item) for item in key[:position])
    return take(_basic(x, rest), indices, axis)


def take(x, indices, axis=None):
    """The entries of x at `indices` along an axis (None: of x raveled); the axis becomes the axes of `indices`.

    Negative indices count from the end. Indices that are traced are clamped into bounds beyond that, others are checked.
    """
    x = as_array(x)
    if axis is None:
        x, axis = shaping.ravel(x), 0
    axis = normalized_axis(axis, x.ndim)
    indices = _from_the_front(indices, x.shape[axis], axis)
    sizes = tuple(1 if a == axis else extent for a, extent in enumerate(x.shape))
    offsets = [a if a < axis else a + indices.ndim - 1 for a in range(x.ndim) if a != axis]
    shape = x.shape[:axis] + indices.shape + x.shape[axis + 1 :]
    return x.builder.gather(
        x,
        indices,
        offset_dims=offsets,
        collapsed_slice_dims=[axis],
        start_index_map=[axis],
        index_vector_dim=indices.ndim,
        slice_sizes=sizes,
        shape=shape,
    )


def _from_the_front(indices, size, axis):
    """Indices with those that count from the end resolved."""
    if not isinstance(indices, Array):
        known = np.asarray(indices)
        if known.size == 0 and known.dtype == np.float64:  # an empty list has no integers to tell it by
            known = known.astype(np.int64)
        if known.dtype.kind in "iu" and dims.is_static(size):
            outside = known[(known < -size) | (known >= size)]
            if outside.size:
                raise IndexError(f"index {outside[0]} is out of bounds for axis {axis} of size {size}")
            return as_array(np.where(known < 0, known + size, known).astype(np.int64))
        indices = known
    indices = as_array(indices)
    if not indices.dtype.is_integer:
        raise TypeError(f"indices are integers, not {indices.dtype}; masks cannot be traced: use td.where")
    return where(less(indices, 0), add(indices, as_array(size, indices.dtype)), indices)


def dynamic_slice(x, start_indices, slice_sizes):
    """A window of x of static sizes, from start indices that are computed; they are clamped so that it fits."""
    x = as_array(x)
    return x.builder.dynamic_slice(x, _start_vector(x, start_indices), tuple(dims.as_shape(slice_sizes)))


def dynamic_update_slice(x, update, start_indices):
    """x with a window replaced by `update`; the start indices are clamped so that it fits."""
    x = as_array(x)
    update = as_array(update, x.dtype)
    if update.ndim != x.ndim:
        raise ValueError(f"dynamic_update_slice: an update of rank {update.ndim} for an array of rank {x.ndim}")
    return x.builder.dynamic_update_slice(x, update, _start_vector(x, start_indices))


def _start_vector(x, starts):
    if isinstance(starts, (list, tuple)):
        starts = (
            shaping.stack([as_array(start, dtypes.int64) for start in starts])
            if starts
            else x.builder.constant(np.zeros(0, np.int64), dtypes.int64)
        )
    starts = as_array(starts)
    if starts.shape != (x.ndim,) or not starts.dtype.is_integer:
        raise ValueError(f"start indices are {x.ndim} integers, one an axis, not {starts.dtype}{show(starts.shape)}")
    return starts


def _is_integer(item):
    return hasattr(type(item), "__index__") and not isinstance(item, (bool, np.bool_, Array, np.ndarray))


def _expanded(x, key):
    """The key with its Ellipsis written out and full slices for the axes that it leaves out."""
    for item in key:
        if isinstance(item, (bool, np.bool_)) or getattr(item, "dtype", None) == dtypes.bool_:
            raise TypeError("a mask decides the result's shape and cannot be traced: use td.where")
    used = builtins.sum(item is not None and item is not Ellipsis for item in key)
    if used > x.ndim:
        raise IndexError(f"{used} indices for an array of rank {x.ndim}")
    dots = [position for position, item in enumerate(key) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index may hold one Ellipsis")
    place = dots[0] if dots else len(key)
    return key[:place] + (slice(None),) * (x.ndim - used) + key[place + 1 :]


def _basic(x, key):
    windows, result_shape, axis = [], [], 0
    for item in key:
        if item is None:
            result_shape.append(1)
            continue
        size = x.shape[axis]
        if _is_integer(item):
            windows.append(_integer_window(item.__index__(), size, axis))
        elif isinstance(item, slice):
            windows.append(_slice_window(item, size, axis))
            result_shape.append(windows[-1].length)
        else:
            raise TypeError(f"an index is an integer, a slice, None, Ellipsis or an array of integers, not {item!r}")
        axis += 1
    return x.builder.reshape(_windowed(x, windows), tuple(result_shape))


class _Window:
    """What an index takes from one axis: `length` entries from `start`, every `step`-th, then perhaps reversed."""

    __slots__ = ("start", "length", "step", "reverse")

    def __init__(self, start, length, step=1, reverse=False):
        self.start, self.length, self.step, self.reverse = start, length, step, reverse


def _integer_window(index, size, axis):
    if dims.is_static(size) and not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for axis {axis} of size {size}")
    return _Window(index if index >= 0 else index + size, 1)


def _slice_window(item, size, axis):
    if dims.is_static(size):
        indices = range(*item.indices(size))
        if not indices:
            return _Window(0, 0)
        reverse = indices.step < 0
        return _Window(indices[-1] if reverse else indices[0], len(indices), abs(indices.step), reverse)
    step = 1 if item.step is None else item.step
    if item.start is None and item.stop is None and step in (1, -1):
        return _Window(0, size, 1, step == -1)
    if step != 1:
        raise TypeError(f"axis {axis} has the symbolic size {size}: a slice of it has step 1, or is [::-1]")
    # A slice that reaches past a size that turns out small is an error of the run, not a shorter result.
    start = _bound(0 if item.start is None else item.start, size)
    stop = _bound(size if item.stop is None else item.stop, size)
    return _Window(start, stop - start)


def _bound(value, size):
    return value + size if dims.is_static(value) and value < 0 else value


def _windowed(x, windows):
    if any(
        not dims.is_static(window.start) or not dims.is_static(window.length) or not dims.is_static(size)
        for window, size in zip(windows, x.shape)
    ):
        return _symbolic_windowed(x, windows)
    starts = [window.start for window in windows]
    limits = [
        window.start + (window.length - 1) * window.step + 1 if window.length else window.start for window in windows
    ]
    result = x.builder.slice(x, starts, limits, [window.step if window.length else 1 for window in windows])
    return x.builder.reverse(result, [axis for axis, window in enumerate(windows) if window.reverse])


def _symbolic_windowed(x, windows):
    """The wire's slices have static bounds. Bounds that count from the ends are a cropping pad, others a gather."""
    for axis, window in enumerate(windows):
        if window.step != 1:
            x = take(x, np.arange(window.length) * window.step + window.start, axis)
    windows = [window if window.step == 1 else _Window(0, window.length, 1, window.reverse) for window in windows]
    low = [0 - window.start for window in windows]
    high = [window.start + window.length - size for window, size in zip(windows, x.shape)]
    if dims.all_static(low) and dims.all_static(high):
        result = x.builder.pad(x, x.builder.constant(0, x.dtype), low, high)
    else:
        result = _gathered_windows(x, windows)
    return x.builder.reverse(result, [axis for axis, window in enumerate(windows) if window.reverse])


def _gathered_windows(x, windows):
    starts = shaping.stack([as_array(window.start, dtypes.int64) for window in windows])
    lengths = tuple(window.length for window in windows)
    return x.builder.gather(
        x,
        starts,
        offset_dims=range(x.ndim),
        collapsed_slice_dims=[],
        start_index_map=range(x.ndim),
        index_vector_dim=0,
        slice_sizes=lengths,
        shape=lengths,
    )
