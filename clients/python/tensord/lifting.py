"""What the wire leaves to the client: constants from numbers and NumPy arrays, promotion of dtypes, broadcasting."""

import numpy as np

from tensord import dtypes
from tensord.array import Array
from tensord.dims import Dim
from tensord.graph_builder import current_builder


def as_array(value, dtype=None):
    """`value` as a traced Array: itself, or a constant; a symbolic size becomes the number that it is at run time."""
    if isinstance(value, Array):
        return value if dtype is None else value.builder.convert(value, dtypes.as_dtype(dtype))
    builder = current_builder()
    if isinstance(value, Dim):
        counted = _size_value(builder, value)
        return counted if dtype is None else builder.convert(counted, dtypes.as_dtype(dtype))
    if dtypes.is_weak(value):
        return builder.constant(value, dtypes.default_type(value) if dtype is None else dtypes.as_dtype(dtype))
    if isinstance(value, (list, tuple)) and any(isinstance(leaf, Array) for leaf in _leaves(value)):
        raise TypeError("a list of traced Arrays is no Array: use td.stack or td.concatenate")
    array = np.asarray(value)
    return builder.constant(array, dtypes.as_dtype(array.dtype if dtype is None else dtype))


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
    """The values as Arrays of one dtype: NumPy's promotion, then `to` (a function of dtypes) applied to the result."""
    dtype = result_type(*values)
    if to is not None:
        dtype = to(dtype)
    return tuple(_as_type(value, dtype) for value in values)


def result_type(*values):
    typed = [_type_of(value) for value in values if not dtypes.is_weak(value)]
    weak = [value for value in values if dtypes.is_weak(value)]
    if typed:
        result = typed[0]
        for dtype in typed[1:]:
            result = dtypes.promote_types(result, dtype)
    else:
        result = dtypes.bool_
    for value in weak:
        # A weak number never widens what another weak number made of the arrays' type.
        result = dtypes.promote_types(result, dtypes.weak_type(value, result))
    return result


def _type_of(value):
    if isinstance(value, Array):
        return value.dtype
    if isinstance(value, Dim):
        return dtypes.int64
    return dtypes.as_dtype(np.asarray(value).dtype)


def _as_type(value, dtype):
    if isinstance(value, Array):
        return value.builder.convert(value, dtype)
    return as_array(value, dtype)


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


def refuse_out(name, out):
    """NumPy fills `out`; an Array that a function fills is its result."""
    if out is not None:
        raise TypeError(f"{name}: out is not supported, Arrays do not change")


def normalized_axis(axis, rank):
    """An axis as an index from the front. Raises ValueError where there is no such axis."""
    if isinstance(axis, (bool, np.bool_)) or not hasattr(axis, "__index__"):
        raise TypeError(f"an axis is an integer, not {axis!r}")
    index = axis.__index__()
    if not -rank <= index < rank:
        raise ValueError(f"axis {index} is out of bounds for an array of rank {rank}")
    return index % rank


def normalized_axes(axes, rank):
    """Axes (None: all, an int, or a sequence) as indices from the front, in the order given; no axis twice."""
    if axes is None:
        return tuple(range(rank))
    if hasattr(axes, "__index__"):
        axes = (axes,)
    result = tuple(normalized_axis(axis, rank) for axis in axes)
    if len(set(result)) != len(result):
        raise ValueError(f"axes {tuple(axes)} name an axis twice")
    return result
