"""The work that the wire leaves to the client: constants from numbers and NumPy arrays, promotion of dtypes,
broadcasting."""

import numpy as np

from tensord import dtypes
from tensord.arguments.integers import as_sequence, is_integer
from tensord.arguments.numpy_arrays import numpy_array
from tensord.array import Array
from tensord.dims import Dim
from tensord.tracing.graph_builder import current_builder


_AxisError = getattr(np, "exceptions", np).AxisError  # a ValueError and an IndexError


def as_array(value, dtype=None):
    """`value` as a traced Array: itself, or a constant; a symbolic size becomes the number that it is at run time."""
    if isinstance(value, Array):
        return value if dtype is None else converted(value, dtypes.as_dtype(dtype))
    builder = current_builder()
    if isinstance(value, Dim):
        counted = _size_value(builder, value)
        return counted if dtype is None else converted(counted, dtypes.as_dtype(dtype))
    if dtypes.is_weak(value):
        dtype = dtypes.default_type(value) if dtype is None else dtypes.as_dtype(dtype)
        dtypes.check_fits(value, dtype)
        return builder.constant(value, dtype)
    if isinstance(value, (list, tuple)) and any(isinstance(leaf, (Array, Dim)) for leaf in _leaves(value)):
        return _stacked(builder, value, dtype)
    array = numpy_array(value)
    return builder.constant(array, dtypes.as_dtype(array.dtype if dtype is None else dtype))


def converted(x, dtype):
    """x in another type, as NumPy converts: a complex number is true where it is not zero."""
    if x.dtype.is_complex and dtype.is_bool:
        return x.builder.compare("NE", x, broadcast_to(x.builder.constant(0, x.dtype), x.shape))
    return x.builder.convert(x, dtype)


def _stacked(builder, values, dtype):
    """A list of Arrays and numbers as one Array, what np.asarray makes of lists."""
    values = [as_array(value) for value in values]
    if dtype is None:
        dtype = result_type(*values)
    values = [as_array(value, dtype) for value in values]
    shapes = {value.shape for value in values}
    if len(shapes) > 1:
        raise ValueError(f"a list of Arrays of shapes {' and '.join(sorted(map(show, shapes)))} is no Array")
    rows = [builder.reshape(value, (1,) + value.shape) for value in values]
    return builder.concatenate(rows, 0)


def _leaves(value):
    for item in value:
        if isinstance(item, (list, tuple)):
            yield from _leaves(item)
        else:
            yield item


def _size_value(builder, size):
    """An int64 of rank 0 that holds a symbolic size, computed from the sizes of arrays."""
    return as_array(size.evaluate({leaf: builder.size_value(leaf) for leaf in size.leaves()}, _SIZE_FUNCTIONS))


def _size_function(kind):
    def apply(left, right):
        left, right = as_array(left, dtypes.int64), as_array(right, dtypes.int64)
        return left.builder.binary(kind, left, right)

    return apply


# Sizes are not negative, so that a division that truncates is one that floors.
_SIZE_FUNCTIONS = {
    "floor_divide": _size_function("DIVIDE"),
    "min": _size_function("MINIMUM"),
    "max": _size_function("MAXIMUM"),
}


def promoted(*values, to=None):
    """The values as Arrays of one dtype: NumPy's promotion, then `to` (a function of dtypes) applied to the result.

    With `to` Python integers beside integers of a type become fractions, and need not fit into that type.
    """
    if to is not None and not all(map(_is_weak, values)):
        if not result_type(*(value for value in values if not _is_weak(value))).is_inexact:
            values = [float(value) if isinstance(value, int) and not isinstance(value, bool) else value for value in values]
    dtype = result_type(*values)
    if to is not None:
        dtype = to(dtype)
    return tuple(as_array(value, dtype) for value in values)


def result_type(*values):
    typed = [_type_of(value) for value in values if not _is_weak(value)]
    # Fractions first: an integer beside one becomes one, and need not fit into an integer's type.
    weak = sorted(filter(_is_weak, values), key=lambda value: isinstance(value, (int, Dim)))
    if typed:
        result = typed[0]
        for dtype in typed[1:]:
            result = dtypes.promote_types(result, dtype)
    else:
        result = dtypes.bool_
    for value in weak:
        # A weak number never widens what another weak number made of the arrays' type.
        result = dtypes.promote_types(result, dtypes.weak_type(0 if isinstance(value, Dim) else value, result))
    return result


def _is_weak(value):
    """Whether a value takes the type of the other operand: Python's numbers, and sizes, which are numbers if they are
    known."""
    return dtypes.is_weak(value) or isinstance(value, Dim)


def _type_of(value):
    if isinstance(value, Array):
        return value.dtype
    if isinstance(value, (list, tuple)) and any(isinstance(leaf, (Array, Dim)) for leaf in _leaves(value)):
        return result_type(*map(as_array, _leaves(value)))
    return dtypes.as_dtype(numpy_array(value).dtype)


def broadcast_shapes(*shapes):
    """The shape that NumPy's broadcasting gives. Raises ValueError where sizes differ, or may differ at run time."""
    rank = max((len(shape) for shape in shapes), default=0)
    result = []
    for axis in range(-rank, 0):
        size = 1
        for shape in shapes:
            if len(shape) < -axis or shape[axis] == 1:
                continue
            if size == 1:
                size = shape[axis]
            elif size != shape[axis]:
                raise ValueError(
                    f"shapes {', '.join(show(s) for s in shapes)} do not broadcast: "
                    f"axis {axis} has sizes {size} and {shape[axis]}"
                )
        result.append(size)
    return tuple(result)


def show(shape):
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def broadcast_to(x, shape):
    """`x` repeated along its axes of size 1 and along new leading axes, up to `shape`."""
    if x.shape == shape:
        return x
    offset = len(shape) - x.ndim
    if offset < 0 or any(size not in (1, shape[offset + axis]) for axis, size in enumerate(x.shape)):
        raise ValueError(f"an array of shape {show(x.shape)} does not broadcast to {show(shape)}")
    return x.builder.broadcast_in_dim(x, shape, range(offset, len(shape)))


def broadcast(*arrays):
    shape = broadcast_shapes(*(array.shape for array in arrays))
    return tuple(broadcast_to(array, shape) for array in arrays)


def normalized_axis(axis, rank):
    """An axis as an index from the front. Raises ValueError where there is no such axis."""
    if isinstance(axis, (bool, np.bool_)) or not is_integer(axis):
        raise TypeError(f"an axis is an integer, not {axis!r}")
    index = axis.__index__()
    if not -rank <= index < rank:
        raise _AxisError(f"axis {index} is out of bounds for an array of rank {rank}")
    return index % rank


def normalized_axes(axes, rank):
    """Axes (None: all, an int, or a sequence) as indices from the front, in the order given; no axis twice."""
    if axes is None:
        return tuple(range(rank))
    axes = as_sequence(axes)
    result = tuple(normalized_axis(axis, rank) for axis in axes)
    if len(set(result)) != len(result):
        raise ValueError(f"axes {axes} name an axis twice")
    return result
