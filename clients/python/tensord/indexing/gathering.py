"""Reading at places that arrays of integers name. What is out of bounds when the program runs is clamped into
bounds."""

import numpy as np

from tensord import dims
from tensord.arguments.options import refuse_out
from tensord.array import Array
from tensord.functions import shaping
from tensord.functions.arithmetic import remainder
from tensord.indexing.positions import check_integers, joined, known_integers, positions
from tensord.tracing.lifting import as_array, broadcast_shapes, broadcast_to, normalized_axis, show


def take(a, indices, axis=None, out=None, mode=None):
    """The entries of a at `indices` along an axis (None: of a raveled); the axis becomes the axes of `indices`.

    mode "clip" takes the first entry for negative indices and the last for too large ones, "wrap" counts on from the
    other end, both as in NumPy. Without a mode negative indices count from the end; what is out of bounds beyond that
    is an IndexError where the indices are known while tracing, and is clamped into bounds where they are traced.
    NumPy's default, mode "raise", is thus possible for known indices only.
    """
    refuse_out("take", out)
    x = as_array(a)
    if mode not in (None, "raise", "clip", "wrap"):
        raise ValueError(f"take: mode is 'clip', 'wrap' or 'raise', not {mode!r}")
    if mode == "raise" and isinstance(indices, Array):
        raise TypeError("take: traced indices cannot raise while the program runs: use mode 'clip' or 'wrap'")
    if axis is None or x.ndim == 0:
        x = shaping.ravel(x)
    axis = normalized_axis(0 if axis is None else axis, x.ndim)
    size = x.shape[axis]
    if mode in ("clip", "wrap"):
        indices = check_integers(as_array(indices if isinstance(indices, Array) else known_integers(indices)))
        if dims.is_static(size) and size == 0 and 0 not in indices.shape:
            raise IndexError(f"take: axis {axis} has size 0")
        if mode == "wrap" and 0 not in (size, *indices.shape):
            indices = remainder(as_array(indices, np.int64), as_array(size, np.int64))
        return gathered(x, indices, axis)
    return gathered(x, as_array(positions(indices, size, axis)), axis)


def take_along_axis(arr, indices, axis=-1):
    """result[…, i, …] = arr[…, indices[…, i, …], …] along an axis (None: of arr raveled); other axes broadcast.

    Negative indices count from the end; traced ones that are out of bounds beyond that are clamped into bounds.
    """
    x = as_array(arr)
    if axis is None:
        x, axis = shaping.ravel(x), 0
    axis = normalized_axis(axis, x.ndim)
    indices = as_array(positions(indices, x.shape[axis], axis))
    x, indices = _along("take_along_axis", x, indices, axis)
    if 0 in indices.shape:
        return _empty(x, indices.shape)
    others = [other for other in range(x.ndim) if other != axis]
    attributes = {
        "collapsed_slice_dims": [axis],
        "operand_batching_dims": others,
        "start_indices_batching_dims": others,
        "start_index_map": [axis],
        "index_vector_dim": x.ndim,
    }
    return x.builder.gather(x, indices, attributes, (1,) * x.ndim, indices.shape)


def _along(name, x, indices, axis):
    """Both with the same sizes on all axes but one."""
    if indices.ndim != x.ndim:
        raise ValueError(f"{name}: indices of rank {indices.ndim} for an array of rank {x.ndim}")
    try:
        others = broadcast_shapes(_without(x.shape, axis), _without(indices.shape, axis))
    except ValueError:
        raise ValueError(
            f"{name}: indices of shape {show(indices.shape)} do not broadcast with {show(x.shape)} beside axis {axis}"
        ) from None
    return tuple(
        broadcast_to(operand, others[:axis] + (operand.shape[axis],) + others[axis:]) for operand in (x, indices)
    )


def _without(shape, axis):
    return shape[:axis] + shape[axis + 1 :]


def gathered(x, indices, axis):
    """The entries at places along an axis, which becomes the axes of `indices`."""
    return gathered_points(x, [indices], [axis], axis)


def gathered_points(x, places, axes, position):
    """The entries at places along several axes. The places' common axes stand at `position` among the other axes."""
    indices = as_array(places[0]) if len(places) == 1 else joined(places)
    block = indices.shape if len(places) == 1 else indices.shape[:-1]
    rest = [axis for axis in range(x.ndim) if axis not in axes]
    kept = tuple(x.shape[axis] for axis in rest)
    shape = kept[:position] + block + kept[position:]
    if any(dims.is_static(x.shape[axis]) and x.shape[axis] == 0 for axis in axes):
        return _empty(x, shape)
    attributes = {
        "offset_dims": [place if place < position else place + len(block) for place in range(len(rest))],
        "collapsed_slice_dims": sorted(axes),
        "start_index_map": axes,
        "index_vector_dim": len(block),
    }
    sizes = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
    return x.builder.gather(x, indices, attributes, sizes, shape)


def gathered_window(x, starts, lengths):
    """The window of these sizes that starts at a vector of one index an axis, clamped so that it fits."""
    attributes = {"offset_dims": range(x.ndim), "start_index_map": range(x.ndim), "index_vector_dim": 0}
    return x.builder.gather(x, starts, attributes, lengths, lengths)


def _empty(x, shape):
    """An array without entries: the wire's gather cannot read from an axis of size 0, not even nothing."""
    return broadcast_to(x.builder.constant(0, x.dtype), shape)
