"""Writing at places that arrays of integers name, into a new array. What is out of bounds when the program runs is
skipped."""

import builtins

import numpy as np

from tensord import dims, dtypes
from tensord.array import Array
from tensord.functions import arithmetic, shaping
from tensord.indexing.positions import joined, positions
from tensord.indexing.windows import Window, is_whole, windowed
from tensord.tracing.lifting import as_array, broadcast_to, normalized_axis, show

_COMBINED = {
    "ADD": arithmetic.add,
    "MULTIPLY": arithmetic.multiply,
    "MINIMUM": arithmetic.minimum,
    "MAXIMUM": arithmetic.maximum,
}


def put_along_axis(arr, indices, values, axis):
    """arr with result[…, indices[…, i, …], …] = values[…, i, …] along an axis (None: of arr raveled). arr does not change.

    Indices broadcast to arr beside the axis, values to the indices. With equal indices the last value wins. Negative
    indices count from the end; traced ones that are out of bounds beyond that are skipped.
    """
    x = as_array(arr)
    if axis is None:
        return shaping.reshape(put_along_axis(shaping.ravel(x), indices, values, 0), x.shape)
    axis = normalized_axis(axis, x.ndim)
    indices = as_array(positions(indices, x.shape[axis], axis))
    if indices.ndim != x.ndim:
        raise ValueError(f"put_along_axis: indices of rank {indices.ndim} for an array of rank {x.ndim}")
    indices = broadcast_to(indices, x.shape[:axis] + (indices.shape[axis],) + x.shape[axis + 1 :])
    values = fitted(assigned(x, values), indices.shape)
    if 0 in indices.shape:
        return x
    others = [other for other in range(x.ndim) if other != axis]
    attributes = {
        "inserted_window_dims": [axis],
        "input_batching_dims": others,
        "scatter_indices_batching_dims": others,
        "scatter_dims_to_operand_dims": [axis],
        "index_vector_dim": x.ndim,
    }
    return x.builder.scatter(x, indices, values, attributes, "SET")


def assigned(x, values):
    """Values as what an assignment to x stores: cast, but complex numbers do not become real."""
    if dtypes.is_weak(values):
        if isinstance(values, builtins.complex) and not x.dtype.is_complex:
            raise TypeError(f"a complex number does not fit into {x.dtype}: take its real part")
        return as_array(values, x.dtype)
    values = as_array(values)
    if values.dtype.is_complex and not x.dtype.is_complex:
        raise TypeError(f"{values.dtype} values do not fit into {x.dtype}: take their real part")
    return as_array(values, x.dtype)


def fitted(values, shape):
    """Values broadcast to the shape that is assigned to; leading axes of size 1 too many go."""
    surplus = values.ndim - len(shape)
    if surplus > 0 and all(size == 1 for size in values.shape[:surplus]):
        values = values.builder.reshape(values, values.shape[surplus:])
    if values.ndim > len(shape):
        raise ValueError(f"values of shape {show(values.shape)} do not broadcast to {show(shape)}")
    return broadcast_to(values, shape)


def window_updated(x, windows, values, combiner):
    """An update of one window of known place."""
    reverse = [axis for axis, window in enumerate(windows) if window.reverse]
    values = x.builder.reverse(x.builder.reshape(values, tuple(window.length for window in windows)), reverse)
    windows = [Window(window.start, window.length) for window in windows]
    if combiner != "SET":
        values = _COMBINED[combiner](windowed(x, windows), values)
    if all(is_whole(window, size) for window, size in zip(windows, x.shape)):
        return values
    return _with_window(x, windows, values)


def _with_window(x, windows, values):
    """x with a window replaced. One that does not fit into an axis of symbolic size is an error of the run."""
    for axis, (window, size) in enumerate(zip(windows, x.shape)):
        stop = window.start + window.length
        if dims.is_static(size) and dims.is_static(stop) or window.start == 0 or stop == size:
            continue
        # The wire shifts a window that does not fit. One that touches an end of its axis it can only refuse.
        inner = list(windows)
        if dims.is_static(window.start):
            inner[axis] = Window(0, window.length)
            head, tail = _cut(x, axis, window.start)
            return x.builder.concatenate([head, _with_window(tail, inner, values)], axis)
        head, tail = _cut(x, axis, stop)
        return x.builder.concatenate([_with_window(head, inner, values), tail], axis)
    starts = [as_array(window.start, dtypes.int64) for window in windows]
    return x.builder.dynamic_update_slice(x, values, shaping.stack(starts))


def _cut(x, axis, place):
    whole = [Window(0, size) for size in x.shape]
    parts = [list(whole), list(whole)]
    parts[0][axis], parts[1][axis] = Window(0, place), Window(place, x.shape[axis] - place)
    return [windowed(x, part) for part in parts]


def scattered(x, selection, values, combiner):
    """One Scatter. Its batch axes are those of the arrays, and axes of which every step-th entry is meant."""
    windows, places = selection.windows, selection.places
    values = _without_new_axes(values, selection)
    layout = [axis for axis in selection.layout if axis is not None]
    position = builtins.sum(axis is not None for axis in selection.layout[: selection.position])
    rank = len(selection.block)
    reverse, update_window_dims, batch_shape, stepped, block_at = [], [], [], {}, 0
    for place, axis in enumerate([*layout[:position], *[None] * rank, *layout[position:]]):
        if axis is None:
            block_at = block_at if place > position else len(batch_shape)
            batch_shape.append(values.shape[place])
        elif windows[axis].step != 1:
            stepped[axis] = len(batch_shape)
            batch_shape.append(values.shape[place])
        else:
            update_window_dims.append(place)
            reverse += [place] if windows[axis].reverse else []
    values = x.builder.reverse(values, reverse)

    parts, index_axes, inserted = [], [], []
    for axis, (window, size) in enumerate(zip(windows, x.shape)):
        if axis in places:
            part = _spread(places[axis], rank, block_at, len(batch_shape))
        elif axis in stepped:
            part = _spread(window.positions(), 1, stepped[axis], len(batch_shape))
        elif axis in layout and window.start == 0 and window.length == size:
            continue
        else:
            part = np.int64(window.start) if dims.is_static(window.start) else as_array(window.start, dtypes.int64)
            part = _spread(part, 0, 0, len(batch_shape))
        parts.append(part)
        index_axes.append(axis)
        inserted += [axis] if axis in places or axis in stepped or axis not in layout else []
    indices = joined(parts) if len(parts) > 1 else as_array(parts[0])
    if combiner == "SET" and rank > 1:
        # Equal indices: the last in row-major order wins. The wire's order is column-major.
        order = list(range(len(batch_shape)))
        order[block_at : block_at + rank] = reversed(order[block_at : block_at + rank])
        indices = x.builder.transpose(indices, order + list(range(len(order), indices.ndim)))
        order = list(range(values.ndim))
        order[position : position + rank] = reversed(order[position : position + rank])
        values = x.builder.transpose(values, order)
    attributes = {
        "update_window_dims": update_window_dims,
        "inserted_window_dims": inserted,
        "scatter_dims_to_operand_dims": index_axes,
        "index_vector_dim": len(batch_shape),
    }
    return x.builder.scatter(x, indices, values, attributes, combiner)


def _without_new_axes(values, selection):
    rank, sizes = len(selection.block), list(values.shape)
    for place in reversed(range(len(selection.layout))):
        if selection.layout[place] is None:
            del sizes[place if place < selection.position else place + rank]
    return values.builder.reshape(values, tuple(sizes))


def _spread(part, rank, at, total):
    """An array of (broadcastable to) `rank` axes as one of `total` axes, its own standing from `at`."""
    part = part if isinstance(part, Array) else np.asarray(part)
    shape = (1,) * (at + rank - part.ndim) + tuple(part.shape) + (1,) * (total - at - rank)
    return part.builder.reshape(part, shape) if isinstance(part, Array) else part.reshape(shape)
