"""Array[...]: what a key means is settled while the function is traced."""

import numpy as np

from tensord import dtypes
from tensord.array import Array
from tensord.functions import shaping
from tensord.functions.arithmetic import add, maximum, subtract
from tensord.functions.logic import less, where
from tensord.indexing import gathering, run_time_sizes
from tensord.indexing.index_keys import is_integer, select
from tensord.indexing.windows import windowed
from tensord.tracing.lifting import as_array


def getitem(x, key):
    """x[key] with NumPy's meaning: integers, slices, None, Ellipsis, and arrays of integers, which broadcast.

    Negative indices count from the end. Indices that are known while tracing are checked; an index that is traced
    selects at run time, and what is out of bounds is clamped into bounds. A mask must be known while tracing, since it
    decides the result's shape. A bound of a slice (of step 1) may be traced: the result's size is then known at run
    time only.
    """
    key = key if isinstance(key, tuple) else (key,)
    x, key = _truncated(x, key)
    selection = select(x.shape, key)
    y = windowed(x, selection.windows)
    if not selection.places:
        return x.builder.reshape(y, selection.shape())
    # Slices and integers select first; then the arrays index the axes that are left to them.
    kept, axes, places = [], [], []
    for axis, window in enumerate(selection.windows):
        if axis in selection.places:
            axes.append(len(kept))
            places.append(selection.places[axis])
            kept.append(x.shape[axis])
        elif axis in selection.layout:
            kept.append(window.length)
    y = x.builder.reshape(y, tuple(kept))
    position = sum(axis is not None for axis in selection.layout[: selection.position])
    return x.builder.reshape(gathering.gathered_points(y, places, axes, position), selection.shape())


def _truncated(x, key):
    """x without what slices with traced bounds leave out, and the key with whole slices in their place."""
    if not any(_is_traced(item) for item in key):
        return x, key
    rest, axis = list(key), 0
    consumed = sum(_axes_of(item) for item in key)
    for place, item in enumerate(key):
        if item is Ellipsis:
            axis += x.ndim - consumed
        elif _is_traced(item) and axis < x.ndim:
            x = _bounded(x, item, axis)
            rest[place] = slice(None)
        axis += _axes_of(item)
    return x, tuple(rest)


def _is_traced(item):
    return isinstance(item, slice) and any(isinstance(part, Array) for part in (item.start, item.stop, item.step))


def _axes_of(item):
    """The number of axes that an item of a key stands for."""
    if item is None or item is Ellipsis:
        return 0
    item = item if isinstance(item, Array) else np.asarray(item)
    return item.ndim if item.dtype == np.bool_ else 1


def _bounded(x, item, axis):
    """x[start:stop] along an axis, bounds past the ends meaning the ends."""
    if item.step is not None and not (is_integer(item.step) and item.step == 1):
        raise TypeError(f"axis {axis}: a slice with traced bounds has step 1")
    size = as_array(x.shape[axis], dtypes.int64)
    start = None if item.start is None else _bound(item.start, size)
    if item.stop is not None:
        stop = _bound(item.stop, size)
        x = run_time_sizes.dynamic_truncate(x, stop, axis)
        size = as_array(x.shape[axis], dtypes.int64)
    if start is not None:
        # Cutting off at the low end is truncating the reversed axis.
        kept = x.builder.once(("kept", start.ref, size.ref), lambda: subtract(size, maximum(start, 0)))
        x = shaping.flip(run_time_sizes.dynamic_truncate(shaping.flip(x, axis), kept, axis), axis)
    return x


def _bound(value, size):
    """A slice's bound counted from the front; it may lie past the ends."""
    value = as_array(value)
    if value.ndim or not value.dtype.is_integer:
        raise TypeError(f"a slice's bound is an integer, not {value!r}")
    value = as_array(value, dtypes.int64)
    # Slices with equal bounds are to have equal sizes.
    return value.builder.once(("bound", value.ref, size.ref), lambda: where(less(value, 0), add(value, size), value))
