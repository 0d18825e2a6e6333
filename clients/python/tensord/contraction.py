"""Products of matrices and tensors, with NumPy's names and meaning."""

from tensord import dtypes, shaping
from tensord.arithmetic import multiply
from tensord.lifting import normalized_axes, promoted, show
from tensord.logic import conj


def _contract(x, x_labels, y, y_labels, result_labels):
    """An einsum of two operands with distinct labels: a DotGeneral, and a Transpose where its result's order differs.

    A label of both operands and of the result is batch, one of both alone is summed, one of one operand is free.
    """
    boolean = x.dtype.is_bool
    if boolean:  # or of ands: counted in int32
        x, y = (operand.builder.convert(operand, dtypes.int32) for operand in (x, y))
    shared = [label for label in x_labels if label in y_labels]
    batch = [label for label in shared if label in result_labels]
    summed = [label for label in shared if label not in result_labels]
    for label in shared:
        left, right = x.shape[x_labels.index(label)], y.shape[y_labels.index(label)]
        if left != right:
            raise ValueError(
                f"shapes {show(x.shape)} and {show(y.shape)} do not fit: size {left} of axis {x_labels.index(label)} "
                f"of the first meets size {right} of axis {y_labels.index(label)} of the second"
            )
    product = x.builder.dot_general(
        x,
        y,
        ([x_labels.index(label) for label in summed], [y_labels.index(label) for label in summed]),
        ([x_labels.index(label) for label in batch], [y_labels.index(label) for label in batch]),
    )
    order = (
        [label for label in x_labels if label not in shared]
        + [label for label in y_labels if label not in shared]
        + batch
    )
    result = product.builder.transpose(product, [order.index(label) for label in result_labels])
    return result.builder.compare("NE", result, _zeros(result)) if boolean else result


def _zeros(x):
    return x.builder.broadcast_in_dim(x.builder.constant(0, x.dtype), x.shape, [])


def matmul(x, y):
    """The matrix product of the last two axes, the operator @; leading axes broadcast, vectors are rows or columns."""
    x, y = promoted(x, y)
    if not x.ndim or not y.ndim:
        raise ValueError("matmul needs arrays of rank 1 or more: multiply by a number with *")
    if x.ndim == 1 or y.ndim == 1:
        x_batch, y_batch = ["b%d" % axis for axis in range(x.ndim - 2)], ["b%d" % axis for axis in range(y.ndim - 2)]
        x_labels = ["k"] if x.ndim == 1 else x_batch + ["i", "k"]
        y_labels = ["k"] if y.ndim == 1 else y_batch + ["k", "j"]
        result_labels = [label for label in x_labels[:-1]] + [label for label in y_labels if label != "k"]
        return _contract(x, x_labels, y, y_labels, result_labels)
    return _batched_matmul(x, y)


def _batched_matmul(x, y):
    """A batch axis that only one side has, or that has size 1 on the other, is a free axis: nothing is repeated."""
    batch_rank = max(x.ndim, y.ndim) - 2
    labels = [[], []]
    shapes = [[], []]
    result_labels = []
    for axis in range(-batch_rank - 2, -2):
        sizes = [operand.shape[axis] if operand.ndim >= -axis else None for operand in (x, y)]
        label = "b%d" % -axis
        repeats = sizes[0] != sizes[1] and 1 in sizes
        if None not in sizes and sizes[0] != sizes[1] and not repeats:
            raise ValueError(
                f"matmul: shapes {show(x.shape)} and {show(y.shape)} do not broadcast: "
                f"axis {axis} has sizes {sizes[0]} and {sizes[1]}"
            )
        result_labels.append(label)
        for side in (0, 1):
            if sizes[side] is None or repeats and sizes[side] == 1 and sizes[1 - side] is not None:
                continue
            labels[side].append(label)
            shapes[side].append(sizes[side])
    x_labels, y_labels = labels[0] + ["i", "k"], labels[1] + ["k", "j"]
    x = x.builder.reshape(x, tuple(shapes[0]) + x.shape[-2:])
    y = y.builder.reshape(y, tuple(shapes[1]) + y.shape[-2:])
    return _contract(x, x_labels, y, y_labels, result_labels + ["i", "j"])


def dot(x, y):
    """NumPy's dot: sums the last axis of x with the last but one (or only) axis of y, without batch axes."""
    x, y = promoted(x, y)
    if not x.ndim or not y.ndim:
        return multiply(x, y)
    return tensordot(x, y, ([x.ndim - 1], [max(y.ndim - 2, 0)]))


def vdot(x, y):
    """The inner product of x and y raveled, x conjugated."""
    return dot(shaping.ravel(conj(x)), shaping.ravel(y))


def vecdot(x, y, axis=-1):
    """The inner products of vectors along an axis, x conjugated; other axes broadcast."""
    x, y = (shaping.moveaxis(operand, axis, -1) for operand in promoted(x, y))
    product = matmul(shaping.expand_dims(conj(x), -2), shaping.expand_dims(y, -1))
    return shaping.squeeze(product, (-2, -1))


def inner(x, y):
    """Sums products over the last axes."""
    x, y = promoted(x, y)
    if not x.ndim or not y.ndim:
        return multiply(x, y)
    return tensordot(x, y, ([x.ndim - 1], [y.ndim - 1]))


def outer(x, y):
    """All products of an element of x with one of y."""
    x, y = shaping.ravel(x), shaping.ravel(y)
    return multiply(shaping.expand_dims(x, 1), shaping.expand_dims(y, 0))


def tensordot(x, y, axes=2):
    """Sums products over pairs of axes: a count (last of x, first of y) or two lists."""
    x, y = promoted(x, y)
    if hasattr(axes, "__index__"):
        count = axes.__index__()
        if count > min(x.ndim, y.ndim):
            raise ValueError(f"tensordot: {count} axes of arrays of ranks {x.ndim} and {y.ndim}")
        axes = (range(x.ndim - count, x.ndim), range(count))
    x_axes, y_axes = normalized_axes(axes[0], x.ndim), normalized_axes(axes[1], y.ndim)
    if len(x_axes) != len(y_axes):
        raise ValueError("tensordot: the two lists of axes have different lengths")
    x_labels, y_labels = ["x%d" % axis for axis in range(x.ndim)], ["y%d" % axis for axis in range(y.ndim)]
    for number, (x_axis, y_axis) in enumerate(zip(x_axes, y_axes)):
        x_labels[x_axis] = y_labels[y_axis] = "s%d" % number
    result_labels = [label for label in x_labels + y_labels if label[0] != "s"]
    return _contract(x, x_labels, y, y_labels, result_labels)
