"""Functions that move elements, with NumPy's names and meaning: row-major order throughout."""

import builtins

import numpy as np

from tensord import dims
from tensord.array import Array
from tensord.dims import Dim
from tensord.lifting import (
    as_array,
    broadcast_shapes,
    broadcast_to as _broadcast_to,
    normalized_axes,
    normalized_axis,
    promoted,
    show,
)


def reshape(x, *shape):
    """x with the same elements, read in row-major order, in another shape; one size may be -1."""
    x = as_array(x)
    if len(shape) == 1 and not hasattr(shape[0], "__index__"):
        shape = shape[0]
    sizes = [
        size if isinstance(size, (Dim, str)) else size.__index__()
        for size in ((shape,) if isinstance(shape, str) else shape)
    ]
    unknown = [axis for axis, size in enumerate(sizes) if dims.is_static(size) and size == -1]
    if len(unknown) > 1:
        raise ValueError(f"reshape to {show(sizes)}: only one size may be -1")
    known = dims.product(dims.as_size(size) for axis, size in enumerate(sizes) if axis not in unknown)
    if unknown:
        missing = dims.exact_quotient(x.size, known)
        if missing is None:
            raise ValueError(f"cannot reshape from {show(x.shape)} to {show(sizes)}: the sizes do not divide")
        sizes[unknown[0]] = missing
    elif known != x.size:
        raise ValueError(f"cannot reshape from {show(x.shape)} to {show(sizes)}: {x.size} elements are not {known}")
    return x.builder.reshape(x, dims.as_shape(sizes))


def ravel(x):
    """x with one axis."""
    x = as_array(x)
    return x.builder.reshape(x, (x.size,))


def transpose(x, *axes):
    """x with its axes permuted; without axes, in reverse order."""
    x = as_array(x)
    if len(axes) == 1 and (axes[0] is None or not hasattr(axes[0], "__index__")):
        axes = axes[0]
    permutation = normalized_axes(axes, x.ndim) if axes else tuple(reversed(range(x.ndim)))
    if len(permutation) != x.ndim:
        raise ValueError(f"transpose: {len(permutation)} axes for an array of rank {x.ndim}")
    return x.builder.transpose(x, permutation)


permute_dims = transpose


def swapaxes(x, axis1, axis2):
    x = as_array(x)
    order = list(range(x.ndim))
    first, second = normalized_axis(axis1, x.ndim), normalized_axis(axis2, x.ndim)
    order[first], order[second] = order[second], order[first]
    return x.builder.transpose(x, order)


def matrix_transpose(x):
    """The last two axes exchanged."""
    return swapaxes(x, -1, -2)


def moveaxis(x, source, destination):
    x = as_array(x)
    source, destination = normalized_axes(source, x.ndim), normalized_axes(destination, x.ndim)
    if len(source) != len(destination):
        raise ValueError("moveaxis: source and destination have different lengths")
    order = [axis for axis in range(x.ndim) if axis not in source]
    for place, axis in sorted(zip(destination, source)):
        order.insert(place, axis)
    return x.builder.transpose(x, order)


def expand_dims(x, axis):
    x = as_array(x)
    count = 1 if hasattr(axis, "__index__") else len(axis)
    new = normalized_axes(axis, x.ndim + count)
    sizes = iter(x.shape)
    return x.builder.reshape(x, tuple(1 if position in new else next(sizes) for position in range(x.ndim + count)))


def squeeze(x, axis=None):
    """x without the axes of size 1, or without those of them that `axis` names."""
    x = as_array(x)
    removed = [a for a, size in enumerate(x.shape) if size == 1] if axis is None else normalized_axes(axis, x.ndim)
    for a in removed:
        if x.shape[a] != 1:
            raise ValueError(f"squeeze: axis {a} has size {x.shape[a]}, not 1")
    return x.builder.reshape(x, tuple(size for a, size in enumerate(x.shape) if a not in removed))


def atleast_1d(x):
    x = as_array(x)
    return x if x.ndim else reshape(x, 1)


def atleast_2d(x):
    x = atleast_1d(x)
    return x if x.ndim > 1 else expand_dims(x, 0)


def broadcast_to(x, shape):
    return _broadcast_to(as_array(x), dims.as_shape(shape))


def broadcast_arrays(*arrays):
    arrays = [as_array(array) for array in arrays]
    shape = broadcast_shapes(*(array.shape for array in arrays))
    return [_broadcast_to(array, shape) for array in arrays]


def concatenate(arrays, axis=0):
    """Arrays joined along an existing axis (None: all of them raveled)."""
    arrays = promoted(*_sequence("concatenate", arrays))
    if axis is None:
        arrays, axis = [ravel(array) for array in arrays], 0
    first = arrays[0]
    axis = normalized_axis(axis, first.ndim)
    for array in arrays[1:]:
        if (
            array.ndim != first.ndim
            or array.shape[:axis] + array.shape[axis + 1 :] != first.shape[:axis] + first.shape[axis + 1 :]
        ):
            raise ValueError(
                f"concatenate along axis {axis}: shapes {show(first.shape)} and {show(array.shape)} differ elsewhere"
            )
    return first.builder.concatenate(list(arrays), axis)


concat = concatenate


def stack(arrays, axis=0):
    """Arrays of one shape joined along a new axis."""
    arrays = promoted(*_sequence("stack", arrays))
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise ValueError(f"stack: the arrays have different shapes, {' and '.join(sorted(map(show, shapes)))}")
    axis = normalized_axis(axis, arrays[0].ndim + 1)
    return concatenate([expand_dims(array, axis) for array in arrays], axis)


def vstack(arrays):
    return concatenate([atleast_2d(array) for array in arrays], 0)


def hstack(arrays):
    arrays = [atleast_1d(array) for array in arrays]
    return concatenate(arrays, 0 if arrays[0].ndim == 1 else 1)


def _sequence(name, arrays):
    if isinstance(arrays, Array):
        arrays = list(arrays)
    if len(arrays) == 0:
        raise ValueError(f"{name}: needs at least one array")
    return arrays


def split(x, indices_or_sections, axis=0):
    """x cut along an axis into equal parts, or before each of the given indices; a list of Arrays."""
    x = as_array(x)
    axis = normalized_axis(axis, x.ndim)
    size = x.shape[axis]
    if not dims.is_static(size):
        raise TypeError(f"split: axis {axis} has the symbolic size {size}; parts need sizes that are known")
    if hasattr(indices_or_sections, "__index__"):
        sections = indices_or_sections.__index__()
        if sections <= 0 or size % sections:
            raise ValueError(f"split: size {size} of axis {axis} does not divide into {sections} equal parts")
        bounds = [size // sections * part for part in range(sections + 1)]
    else:
        bounds = [
            0,
            *(
                builtins.min(index if index >= 0 else builtins.max(index + size, 0), size)
                for index in indices_or_sections
            ),
            size,
        ]
    every = (slice(None),) * axis
    return [x[every + (slice(low, high),)] for low, high in zip(bounds, bounds[1:])]


def flip(x, axis=None):
    """x with the order of elements reversed along some axes, or along all."""
    x = as_array(x)
    return x.builder.reverse(x, normalized_axes(axis, x.ndim))


def roll(x, shift, axis=None):
    """x with its elements shifted along an axis, those that fall off one end coming in at the other."""
    x = as_array(x)
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.shape)
    if not hasattr(axis, "__index__") or not hasattr(shift, "__index__"):
        shifts = (shift,) if hasattr(shift, "__index__") else tuple(shift)
        axes = (axis,) if hasattr(axis, "__index__") else tuple(axis)
        if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
            raise ValueError(f"roll: {len(shifts)} shifts for {len(axes)} axes")
        count = builtins.max(len(shifts), len(axes)) if shifts and axes else 0
        for place in range(count):
            x = roll(x, shifts[place % len(shifts)], axes[place % len(axes)])
        return x
    axis = normalized_axis(axis, x.ndim)
    size = x.shape[axis]
    # To the right and then to the left: sizes are not negative.
    right, left = (dims.remainder(part, size) for part in dims.signed_parts(shift))
    x = x if right == 0 else _exchanged(x, size - right, axis)
    return x if left == 0 else _exchanged(x, left, axis)


def _exchanged(x, place, axis):
    """x with what stands before a place of an axis behind what stands from there on."""
    every = (slice(None),) * axis
    return concatenate([x[every + (slice(place, None),)], x[every + (slice(None, place),)]], axis)


def tile(x, reps):
    """x repeated whole, reps[i] times along axis i."""
    x = as_array(x)
    reps = (reps,) if hasattr(reps, "__index__") else tuple(reps)
    rank = builtins.max(x.ndim, len(reps))
    reps = (1,) * (rank - len(reps)) + reps
    x = x.builder.reshape(x, (1,) * (rank - x.ndim) + x.shape)
    return _repeated(x, reps, before=True)


def repeat(x, repeats, axis=None):
    """Each element repeated along an axis (None: of x raveled). `repeats` is one integer."""
    x = as_array(x)
    if not hasattr(repeats, "__index__"):
        raise TypeError("repeat: repeats is one integer for all elements")
    if axis is None:
        x, axis = ravel(x), 0
    axis = normalized_axis(axis, x.ndim)
    return _repeated(x, [repeats if a == axis else 1 for a in range(x.ndim)], before=False)


def _repeated(x, counts, before):
    """Repeats axes by counts: a new axis before (whole repeats) or after (each element) the axis, then both merged."""
    middle, wide, merged = [], [], []
    for size, count in zip(x.shape, counts):
        if count != 1:
            middle += [1, size] if before else [size, 1]
            wide += [count, size] if before else [size, count]
        else:
            middle.append(size)
            wide.append(size)
        merged.append(size * count)
    x = x.builder.reshape(x, tuple(middle))
    x = x.builder.broadcast_in_dim(x, tuple(wide), range(len(wide)))
    return x.builder.reshape(x, tuple(merged))


def pad(x, pad_width, mode="constant", constant_values=0):
    """x with a border of one value. pad_width: n, (before, after) or one pair an axis; negative widths cut."""
    x = as_array(x)
    if mode != "constant":
        raise TypeError(f"pad: mode {mode!r} is not supported, only 'constant'")
    widths = np.asarray(pad_width)
    if widths.dtype.kind not in "iu":
        raise TypeError("pad: pad_width holds integers")
    widths = np.broadcast_to(widths, (x.ndim, 2)).tolist()
    value = as_array(constant_values, x.dtype)
    if value.ndim:
        raise TypeError("pad: constant_values is one number")
    return x.builder.pad(x, value, [low for low, _ in widths], [high for _, high in widths])
