"""Diagonals and triangles of matrices, with NumPy's names and meaning: the matrices are the last two axes."""

import builtins
import operator

import numpy as np

from tensord import dims
from tensord.functions import reductions, shaping
from tensord.tracing.lifting import as_array, normalized_axis, show


def diagonal(a, offset=0, axis1=0, axis2=1):
    """The diagonal of two axes, as the last axis of the result. `offset` counts to the right of the main diagonal.

    An axis of symbolic size: what an offset leaves of it must not be negative when the program runs.
    """
    x = as_array(a)
    first, second = normalized_axis(axis1, x.ndim), normalized_axis(axis2, x.ndim)
    if first == second:
        raise ValueError("diagonal: axis1 and axis2 are one axis")
    offset = operator.index(offset)
    low = {first: builtins.max(-offset, 0), second: builtins.max(offset, 0)}
    if dims.all_static((x.shape[first], x.shape[second])):
        low = {axis: builtins.min(start, x.shape[axis]) for axis, start in low.items()}
    length = dims.minimum(x.shape[first] - low[first], x.shape[second] - low[second])
    x = x[tuple(slice(low[at], low[at] + length) if at in low else slice(None) for at in range(x.ndim))]
    taken = x.builder.extract_diag(x, first, second)
    return shaping.moveaxis(taken, first - (second < first), -1)


def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """The sum of a diagonal."""
    return reductions.sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype, out=out)


def diag(v, k=0):
    """The k-th diagonal of a matrix, or a matrix with the vector v on its k-th diagonal."""
    v = as_array(v)
    if v.ndim == 2:
        return diagonal(v, k)
    if v.ndim != 1:
        raise ValueError(f"diag takes a vector or a matrix, not rank {v.ndim}")
    k = operator.index(k)
    return shaping.pad(
        v.builder.embed_diag(v, 0, 1),
        ((builtins.max(-k, 0), builtins.max(k, 0)), (builtins.max(k, 0), builtins.max(-k, 0))),
    )


def diagflat(v, k=0):
    """A matrix with the elements of v, raveled, on its k-th diagonal."""
    return diag(shaping.ravel(v), k)


def tril(m, k=0):
    """m with all above the k-th diagonal of its last two axes zero."""
    return _triangle("tril", m, k)


def triu(m, k=0):
    """m with all below the k-th diagonal of its last two axes zero."""
    return _triangle("triu", m, k)


def _triangle(name, x, k):
    x = as_array(x)
    if x.ndim < 2:
        raise ValueError(f"{name} needs an array of rank 2 or more, not {x.ndim}")
    k = builtins.max(builtins.min(operator.index(k), np.iinfo(np.int64).max), np.iinfo(np.int64).min)
    # The wire's matrix is the first two axes. Transpositions around it cost nothing.
    x = shaping.moveaxis(x, (-2, -1), (0, 1))
    return shaping.moveaxis(x.builder.triangle(name, x, k), (0, 1), (-2, -1))


def extract_diag(x, axis_a, axis_b):
    """The wire's ExtractDiag: the diagonal of two axes of one size, in the place of axis_a; axis_b is removed."""
    x = as_array(x)
    axis_a, axis_b = normalized_axis(axis_a, x.ndim), normalized_axis(axis_b, x.ndim)
    if axis_a == axis_b:
        raise ValueError("extract_diag: axis_a and axis_b are one axis")
    if x.shape[axis_a] != x.shape[axis_b]:
        raise ValueError(f"extract_diag: axes {axis_a} and {axis_b} of shape {show(x.shape)} have different sizes")
    return x.builder.extract_diag(x, axis_a, axis_b)


def embed_diag(x, axis_a, axis_b):
    """The wire's EmbedDiag: axis_a of x on the diagonal of it and a new axis, at position axis_b of the result.

    All off the diagonal is zero. The inverse of extract_diag.
    """
    x = as_array(x)
    return x.builder.embed_diag(x, normalized_axis(axis_a, x.ndim), normalized_axis(axis_b, x.ndim + 1))


def diag_indices_from(arr):
    """The indices of the main diagonal of an array whose axes have one size, as NumPy arrays, one an axis."""
    shape = _matrix_shape("diag_indices_from", arr, lowest=2)
    if len(set(shape)) > 1:
        raise ValueError(f"diag_indices_from: the axes of shape {show(shape)} have different sizes")
    return np.diag_indices(shape[0], len(shape))


def tril_indices_from(arr, k=0):
    """The indices of the lower triangle of a matrix, as two NumPy arrays."""
    rows, columns = _matrix_shape("tril_indices_from", arr, lowest=2, highest=2)
    return np.tril_indices(rows, k, columns)


def triu_indices_from(arr, k=0):
    """The indices of the upper triangle of a matrix, as two NumPy arrays."""
    rows, columns = _matrix_shape("triu_indices_from", arr, lowest=2, highest=2)
    return np.triu_indices(rows, k, columns)


def _matrix_shape(name, x, lowest, highest=None):
    shape = x.shape
    if len(shape) < lowest or highest is not None and len(shape) > highest:
        raise ValueError(f"{name}: not for an array of rank {len(shape)}")
    if not dims.all_static(shape):
        raise TypeError(f"{name}: the sizes of {show(shape)} are symbolic, and the indices are made while tracing")
    return shape
