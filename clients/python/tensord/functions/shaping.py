"""Functions that move elements, with NumPy's names and meaning: row-major order throughout."""

import builtins
import operator

import numpy as np

from tensord import dims, dtypes
from tensord.arguments.integers import as_sequence, is_integer
from tensord.arguments.options import check_casting, is_fortran, refuse_out
from tensord.array import Array
from tensord.dims import Dim
from tensord.tracing.lifting import (
    as_array,
    broadcast_shapes,
    broadcast_to as _broadcast_to,
    normalized_axes,
    normalized_axis,
    promoted,
    show,
)


def reshape(a, shape, order="C", *, copy=None):
    """a with the same elements in another shape, of which one size may be -1; read and laid out in row-major order, or for
    order "F" in column-major order."""
    a = as_array(a)
    if is_fortran("reshape", order):
        backwards = tuple(reversed((shape,) if isinstance(shape, (Dim, str)) else as_sequence(shape)))
        return transpose(reshape(transpose(a), backwards))
    sizes = [
        size if isinstance(size, (Dim, str)) else operator.index(size)
        for size in ((shape,) if isinstance(shape, (Dim, str)) else as_sequence(shape))
    ]
    unknown = [axis for axis, size in enumerate(sizes) if dims.is_static(size) and size == -1]
    if len(unknown) > 1:
        raise ValueError(f"reshape to {show(sizes)}: only one size may be -1")
    known = dims.product(dims.as_size(size) for axis, size in enumerate(sizes) if axis not in unknown)
    if unknown:
        missing = dims.exact_quotient(a.size, known)
        if missing is None:
            raise ValueError(f"cannot reshape from {show(a.shape)} to {show(sizes)}: the sizes do not divide")
        sizes[unknown[0]] = missing
    elif known != a.size:
        raise ValueError(f"cannot reshape from {show(a.shape)} to {show(sizes)}: {a.size} elements are not {known}")
    return a.builder.reshape(a, dims.as_shape(sizes))


def ravel(a, order="C"):
    """a with one axis."""
    a = as_array(a)
    a = transpose(a) if is_fortran("ravel", order) else a
    return a.builder.reshape(a, (a.size,))


def transpose(a, axes=None):
    """a with its axes permuted; without axes, in reverse order."""
    a = as_array(a)
    permutation = tuple(reversed(range(a.ndim))) if axes is None else normalized_axes(axes, a.ndim)
    if len(permutation) != a.ndim:
        raise ValueError(f"transpose: {len(permutation)} axes for an array of rank {a.ndim}")
    return a.builder.transpose(a, permutation)


permute_dims = transpose


def swapaxes(a, axis1, axis2):
    a = as_array(a)
    order = list(range(a.ndim))
    first, second = normalized_axis(axis1, a.ndim), normalized_axis(axis2, a.ndim)
    order[first], order[second] = order[second], order[first]
    return a.builder.transpose(a, order)


def matrix_transpose(x, /):
    """The last two axes exchanged."""
    return swapaxes(x, -1, -2)


def moveaxis(a, source, destination):
    a = as_array(a)
    source, destination = normalized_axes(source, a.ndim), normalized_axes(destination, a.ndim)
    if len(source) != len(destination):
        raise ValueError("moveaxis: source and destination have different lengths")
    order = [axis for axis in range(a.ndim) if axis not in source]
    for place, axis in sorted(zip(destination, source)):
        order.insert(place, axis)
    return a.builder.transpose(a, order)


def expand_dims(a, axis):
    a = as_array(a)
    count = len(as_sequence(axis))
    new = normalized_axes(axis, a.ndim + count)
    sizes = iter(a.shape)
    return a.builder.reshape(a, tuple(1 if position in new else next(sizes) for position in range(a.ndim + count)))


def squeeze(a, axis=None):
    """a without the axes of size 1, or without those of them that `axis` names."""
    a = as_array(a)
    removed = [at for at, size in enumerate(a.shape) if size == 1] if axis is None else normalized_axes(axis, a.ndim)
    for at in removed:
        if a.shape[at] != 1:
            raise ValueError(f"squeeze: axis {at} has size {a.shape[at]}, not 1")
    return a.builder.reshape(a, tuple(size for at, size in enumerate(a.shape) if at not in removed))


def atleast_1d(*arys):
    """Arrays of rank 1 or more; one Array of one, a tuple of several."""
    return _each(arys, lambda array: array if array.ndim else reshape(array, 1))


def atleast_2d(*arys):
    return _each(arys, lambda array: array if array.ndim > 1 else expand_dims(atleast_1d(array), 0))


def _each(arrays, change):
    changed = tuple(change(as_array(array)) for array in arrays)
    return changed[0] if len(changed) == 1 else changed


def broadcast_to(array, shape, subok=False):
    return _broadcast_to(as_array(array), dims.as_shape(shape))


def broadcast_arrays(*args, subok=False):
    arrays = [as_array(array) for array in args]
    shape = broadcast_shapes(*(array.shape for array in arrays))
    return [_broadcast_to(array, shape) for array in arrays]


def concatenate(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """Arrays joined along an existing axis (None: all of them raveled)."""
    arrays = _joined_type("concatenate", arrays, out, dtype, casting)
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


def stack(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """Arrays of one shape joined along a new axis."""
    arrays = _joined_type("stack", arrays, out, dtype, casting)
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise ValueError(f"stack: the arrays have different shapes, {' and '.join(sorted(map(show, shapes)))}")
    axis = normalized_axis(axis, arrays[0].ndim + 1)
    return concatenate([expand_dims(array, axis) for array in arrays], axis)


def vstack(tup, *, dtype=None, casting="same_kind"):
    return concatenate([atleast_2d(array) for array in tup], 0, dtype=dtype, casting=casting)


def hstack(tup, *, dtype=None, casting="same_kind"):
    arrays = [atleast_1d(array) for array in tup]
    return concatenate(arrays, 0 if arrays and arrays[0].ndim == 1 else 1, dtype=dtype, casting=casting)


def _joined_type(name, arrays, out, dtype, casting):
    """The arrays in one type: that of all, or `dtype`, which casting lets them become."""
    refuse_out(name, out)
    arrays = [as_array(array) for array in _sequence(name, arrays)]
    if dtype is None:
        return promoted(*arrays)
    dtype = dtypes.as_dtype(dtype)
    for array in arrays:
        check_casting(name, array.dtype, dtype, casting)
    return promoted(*arrays, to=lambda _: dtype)


def _sequence(name, arrays):
    if isinstance(arrays, Array):
        arrays = list(arrays)
    if len(arrays) == 0:
        raise ValueError(f"{name}: needs at least one array")
    return arrays


def split(ary, indices_or_sections, axis=0):
    """ary cut along an axis into equal parts, or before each of the given indices; a list of Arrays."""
    ary = as_array(ary)
    axis = normalized_axis(axis, ary.ndim)
    size = ary.shape[axis]
    if not dims.is_static(size):
        raise TypeError(f"split: axis {axis} has the symbolic size {size}; parts need sizes that are known")
    if is_integer(indices_or_sections):
        sections = operator.index(indices_or_sections)
        if sections <= 0 or size % sections:
            raise ValueError(f"split: size {size} of axis {axis} does not divide into {sections} equal parts")
        bounds = [size // sections * part for part in range(sections + 1)]
    else:
        bounds = [
            0,
            *(
                builtins.min(index if index >= 0 else builtins.max(index + size, 0), size)
                for index in map(operator.index, indices_or_sections)
            ),
            size,
        ]
    every = (slice(None),) * axis
    return [ary[every + (slice(low, high),)] for low, high in zip(bounds, bounds[1:])]


def flip(m, axis=None):
    """m with the order of elements reversed along some axes, or along all."""
    m = as_array(m)
    return m.builder.reverse(m, normalized_axes(axis, m.ndim))


def roll(a, shift, axis=None):
    """a with its elements shifted along an axis, those that fall off one end coming in at the other."""
    a = as_array(a)
    if axis is None:
        return reshape(roll(ravel(a), shift, 0), a.shape)
    if not is_integer(axis) or not is_integer(shift):
        shifts, axes = as_sequence(shift), as_sequence(axis)
        if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
            raise ValueError(f"roll: {len(shifts)} shifts for {len(axes)} axes")
        count = builtins.max(len(shifts), len(axes)) if shifts and axes else 0
        for place in range(count):
            a = roll(a, shifts[place % len(shifts)], axes[place % len(axes)])
        return a
    axis = normalized_axis(axis, a.ndim)
    size = a.shape[axis]
    # To the right and then to the left: sizes are not negative.
    right, left = (dims.remainder(part, size) for part in dims.signed_parts(shift))
    a = a if right == 0 else _exchanged(a, size - right, axis)
    return a if left == 0 else _exchanged(a, left, axis)


def _exchanged(x, place, axis):
    """x with what stands before a place of an axis behind what stands from there on."""
    every = (slice(None),) * axis
    return concatenate([x[every + (slice(place, None),)], x[every + (slice(None, place),)]], axis)


def tile(A, reps):
    """A repeated whole, reps[i] times along axis i."""
    x = as_array(A)
    reps = as_sequence(reps)
    rank = builtins.max(x.ndim, len(reps))
    reps = (1,) * (rank - len(reps)) + reps
    x = x.builder.reshape(x, (1,) * (rank - x.ndim) + x.shape)
    return _repeated(x, reps, before=True)


def repeat(a, repeats, axis=None):
    """Each element repeated along an axis (None: of a raveled), all as often, or each as often as its number in `repeats`
    says, which are known while tracing."""
    a = as_array(a)
    if isinstance(repeats, Array):
        raise TypeError("repeat: traced counts would decide the result's shape: they are integers known while tracing")
    if axis is None or a.ndim == 0:
        a = ravel(a)
    axis = normalized_axis(0 if axis is None else axis, a.ndim)
    if isinstance(repeats, Dim):
        counts = [repeats]
    else:
        counts = [dims.as_size(count) for count in as_sequence(repeats)]
    if len(counts) == 1:
        return _repeated(a, [counts[0] if at == axis else 1 for at in range(a.ndim)], before=False)
    if a.shape[axis] != len(counts):
        raise ValueError(f"repeat: {len(counts)} counts for the {a.shape[axis]} entries of axis {axis}")
    return a[(slice(None),) * axis + (np.repeat(np.arange(len(counts)), counts),)]


# Tensors of more axes than servers take by default are not made on the way.
_MOST_AXES = 32


def _repeated(x, counts, before):
    """Repeats axes by counts: a new axis before (whole repeats) or after (each element) the axis, then both merged."""
    repeated = [axis for axis, count in enumerate(counts) if count != 1]
    if x.ndim + len(repeated) <= _MOST_AXES:
        return _repeated_together(x, counts, before)
    for axis in repeated:
        wide = (*x.shape[:axis], x.shape[axis] * counts[axis], *x.shape[axis + 1 :])
        blocks = (dims.product(x.shape[:axis]), x.shape[axis], dims.product(x.shape[axis + 1 :]))
        x = _repeated_together(x.builder.reshape(x, blocks), (1, counts[axis], 1), before)
        x = x.builder.reshape(x, wide)
    return x


def _repeated_together(x, counts, before):
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


def pad(array, pad_width, mode="constant", *, constant_values=0):
    """The array with a border of one value. pad_width: n, (before, after) or one pair an axis; negative widths cut."""
    array = as_array(array)
    if mode != "constant":
        raise TypeError(f"pad: mode {mode!r} is not supported, only 'constant'")
    widths = np.asarray(pad_width)
    if widths.dtype.kind not in "iu":
        raise TypeError("pad: pad_width holds integers")
    widths = np.broadcast_to(widths, (array.ndim, 2)).tolist()
    value = as_array(constant_values, array.dtype)
    if value.ndim:
        raise TypeError("pad: constant_values is one number")
    return array.builder.pad(array, value, [low for low, _ in widths], [high for _, high in widths])
