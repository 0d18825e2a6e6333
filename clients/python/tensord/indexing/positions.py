"""Arrays of integers as places along an axis."""

import numpy as np

from tensord import dims, dtypes
from tensord.arguments.numpy_arrays import numpy_array
from tensord.array import Array
from tensord.functions.arithmetic import add
from tensord.functions.logic import less, where
from tensord.tracing.lifting import as_array, broadcast_shapes, broadcast_to

MASK = (
    "a traced mask decides the result's shape and cannot be an index: use td.where, or reduce with zeros in place of "
    "what the mask leaves out"
)


def positions(indices, size, axis):
    """Integers as places on an axis of that size, negative ones counted from its end: a NumPy array or an Array.

    Those that are known while tracing are checked, as NumPy does. Others are as they come out: a gather clamps them
    into bounds, a scatter skips what is out of bounds. Raises IndexError, and TypeError for what are no integers.
    """
    if not isinstance(indices, Array):
        known = known_integers(indices)
        if dims.is_static(size):
            outside = known[(known < -size) | (known >= size)]
            if outside.size:
                raise IndexError(f"index {outside.flat[0]} is out of bounds for axis {axis} of size {size}")
            return np.where(known < 0, known + size, known).astype(np.int64)
        if known.size == 0 or known.min() >= 0:
            return known
        indices = as_array(known)
    return _from_the_front(check_integers(indices), size, axis)


def known_integers(values):
    """A NumPy array or what makes one, as int64."""
    known = numpy_array(values)
    if known.size == 0 and known.dtype == np.float64:  # an empty list has no integers to tell it by
        known = known.astype(np.int64)
    if known.dtype.kind not in "iu":
        raise TypeError(f"indices are integers, not {known.dtype}")
    return known.astype(np.int64)


def check_integers(indices):
    """The Array itself, if it has integers."""
    if indices.dtype.is_bool:
        raise TypeError(MASK)
    if not indices.dtype.is_integer:
        raise TypeError(f"indices are integers, not {indices.dtype}")
    return indices


def _from_the_front(indices, size, axis):
    if dims.is_static(size):
        if size == 0 and 0 not in indices.shape:
            raise IndexError(f"axis {axis} has size 0: nothing to index")
        narrow = size <= np.iinfo(np.int32).max
    else:
        narrow = False
    if not narrow:
        indices = as_array(indices, dtypes.int64)
    return where(less(indices, 0), add(indices, as_array(size, indices.dtype)), indices)


def joined(parts):
    """Positions on several axes, broadcast, as one array of index vectors along a new last axis."""
    shape = broadcast_shapes(*(part.shape for part in parts))
    if not any(isinstance(part, Array) for part in parts):
        return as_array(np.stack([np.broadcast_to(part, shape) for part in parts], axis=-1))
    dtype = dtypes.int32
    if any(not isinstance(part, Array) or part.dtype is dtypes.int64 for part in parts):
        dtype = dtypes.int64
    arrays = [broadcast_to(as_array(part, dtype), shape) for part in parts]
    builder = arrays[0].builder
    return builder.concatenate([builder.reshape(array, shape + (1,)) for array in arrays], len(shape))
