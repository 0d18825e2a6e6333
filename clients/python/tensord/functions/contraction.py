"""Products of matrices and tensors, with NumPy's names and meaning."""

import operator

from tensord import dtypes
from tensord.arguments.integers import is_integer
from tensord.arguments.options import is_given, refuse_out
from tensord.functions import shaping
from tensord.functions.arithmetic import multiply
from tensord.functions.logic import conj
from tensord.tracing.lifting import as_array, normalized_axes, promoted, show
from tensord.tracing.ufuncs import check_parameters, computed_in


def _contract(x, x_labels, y, y_labels, result_labels, algebra=None):
    """An einsum of two operands with distinct labels: a DotGeneral, and a Transpose where its result's order differs.

    A label of both operands and of the result is batch, one of both alone is summed, one of one operand is free.
    """
    boolean = x.dtype.is_bool and algebra is None and not x.builder.graph.algebra
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
        algebra,
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


def matmul(x1, x2, /, out=None, *, axes=None, axis=None, keepdims=False, casting="same_kind", order="K", dtype=None,
           subok=True, signature=None, algebra=None):  # fmt: skip
    """The matrix product of the last two axes, the operator @; leading axes broadcast, vectors are rows or columns.

    algebra: "max_plus", "min_plus", "max_times" or "or_and" for other sums and products, such as shortest distances:
    td.matmul(d, d, algebra="min_plus").
    """
    check_parameters("matmul", out, True, order, signature, casting)
    if is_given(axes) or is_given(axis) or keepdims:
        raise TypeError("matmul: axes, axis and keepdims are not supported: use td.moveaxis, or td.einsum")

    def _product(x, y):
        return _matmul(x, y, algebra)

    return _product(x1, x2) if dtype is None else computed_in(dtype, _product, (x1, x2), casting)


def _matmul(x, y, algebra=None):
    x, y = promoted(x, y)
    if not x.ndim or not y.ndim:
        raise ValueError("matmul needs arrays of rank 1 or more: multiply by a number with *")
    if x.ndim == 1 or y.ndim == 1:
        x_batch, y_batch = ["b%d" % axis for axis in range(x.ndim - 2)], ["b%d" % axis for axis in range(y.ndim - 2)]
        x_labels = ["k"] if x.ndim == 1 else x_batch + ["i", "k"]
        y_labels = ["k"] if y.ndim == 1 else y_batch + ["k", "j"]
        result_labels = [label for label in x_labels[:-1]] + [label for label in y_labels if label != "k"]
        return _contract(x, x_labels, y, y_labels, result_labels, algebra)
    return _batched_matmul(x, y, algebra)


def _batched_matmul(x, y, algebra):
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
    return _contract(x, x_labels, y, y_labels, result_labels + ["i", "j"], algebra)


def dot(a, b, out=None):
    """NumPy's dot: sums the last axis of a with the last but one (or only) axis of b, without batch axes."""
    refuse_out("dot", out)
    a, b = _two(a, b)
    if not a.ndim or not b.ndim:
        return multiply(a, b)
    return tensordot(a, b, ([a.ndim - 1], [max(b.ndim - 2, 0)]))


def _two(a, b):
    """Operands as Arrays of one type. A Python number here is an array of its own type, as NumPy has it for products."""
    return promoted(as_array(a), as_array(b))


def vdot(a, b, /):
    """The inner product of a and b raveled, a conjugated."""
    return dot(shaping.ravel(conj(a)), shaping.ravel(b))


def vecdot(x1, x2, /, out=None, *, axes=None, axis=-1, keepdims=False, casting="same_kind", order="K", dtype=None,
           subok=True, signature=None):  # fmt: skip
    """The inner products of vectors along an axis, x1 conjugated; other axes broadcast."""
    check_parameters("vecdot", out, True, order, signature, casting)
    if is_given(axes):
        raise TypeError("vecdot: axes is not supported: axis names that of the vectors")

    def vecdot(x, y):
        x, y = (shaping.moveaxis(operand, axis, -1) for operand in promoted(x, y))
        product = _matmul(shaping.expand_dims(conj(x), -2), shaping.expand_dims(y, -1))
        return shaping.squeeze(product, (-2, -1))

    result = vecdot(x1, x2) if dtype is None else computed_in(dtype, vecdot, (x1, x2), casting)
    return shaping.expand_dims(result, axis) if keepdims else result


def inner(a, b, /):
    """Sums products over the last axes."""
    a, b = _two(a, b)
    if not a.ndim or not b.ndim:
        return multiply(a, b)
    return tensordot(a, b, ([a.ndim - 1], [b.ndim - 1]))


def outer(a, b, out=None):
    """All products of an element of a with one of b."""
    refuse_out("outer", out)
    a, b = shaping.ravel(a), shaping.ravel(b)
    return multiply(shaping.expand_dims(a, 1), shaping.expand_dims(b, 0))


def tensordot(a, b, axes=2):
    """Sums products over pairs of axes: a count (last of a, first of b) or two lists."""
    a, b = _two(a, b)
    if is_integer(axes):
        count = operator.index(axes)
        if count > min(a.ndim, b.ndim):
            raise ValueError(f"tensordot: {count} axes of arrays of ranks {a.ndim} and {b.ndim}")
        axes = (range(a.ndim - count, a.ndim), range(count))
    a_axes, b_axes = normalized_axes(axes[0], a.ndim), normalized_axes(axes[1], b.ndim)
    if len(a_axes) != len(b_axes):
        raise ValueError("tensordot: the two lists of axes have different lengths")
    a_labels, b_labels = ["x%d" % axis for axis in range(a.ndim)], ["y%d" % axis for axis in range(b.ndim)]
    for number, (a_axis, b_axis) in enumerate(zip(a_axes, b_axes)):
        a_labels[a_axis] = b_labels[b_axis] = "s%d" % number
    result_labels = [label for label in a_labels + b_labels if label[0] != "s"]
    return _contract(a, a_labels, b, b_labels, result_labels)
