"""Norms of vectors and matrices, and condition numbers, with numpy.linalg's names and meaning.

Those that need singular values need a server with the family linalg.
"""

import numpy as np

from tensord import dims, dtypes
from tensord.errors import NotMatrices
from tensord.functions import arithmetic, logic, reductions, shaping, transcendental
from tensord.functions.factorizations import svdvals
from tensord.functions.linear_systems import inv
from tensord.tracing import pointwise
from tensord.tracing.lifting import as_array, normalized_axes, show


def norm(x, ord=None, axis=None, keepdims=False):
    """The norm of vectors (one axis) or matrices (two axes) of x; without axis and ord, of all elements as one vector.

    Of vectors: None and 2 Euclid's, inf, -inf, 0 (how many are not zero), or any other power. Of matrices: None and "fro"
    Frobenius's, "nuc", inf, -inf, 1, -1, 2, -2.
    """
    return pointwise.rounded_once(lambda x: _norm(x, ord, axis, keepdims), _inexact(x))


def _norm(x, ord, axis, keepdims):
    if axis is None and (ord is None or ord == "fro" and x.ndim == 2 or ord == 2 and x.ndim == 1):
        return _euclid(x, None, keepdims)
    axes = normalized_axes(axis, x.ndim)
    if len(axes) == 1:
        return _of_vectors(x, ord, axes[0], keepdims)
    if len(axes) == 2:
        return _of_matrices(x, ord, axes, keepdims)
    raise ValueError(f"norm: of one axis or of two, not of {len(axes)}")


def vector_norm(x, axis=None, keepdims=False, ord=2):
    """The norm of vectors along axes that are read as one; None: all of x."""
    return pointwise.rounded_once(lambda x: _vector_norm(x, axis, keepdims, ord), _inexact(x))


def _vector_norm(x, axis, keepdims, ord):
    axes = normalized_axes(axis, x.ndim)
    rest = [place for place in range(x.ndim) if place not in axes]
    flat = shaping.transpose(x, list(rest) + list(axes)) if x.ndim else x
    flat = shaping.reshape(flat, tuple(x.shape[place] for place in rest) + (dims.product(x.shape[a] for a in axes),))
    result = _of_vectors(flat, ord, flat.ndim - 1, False)
    return _restored(result, x, axes) if keepdims else result


def matrix_norm(x, keepdims=False, ord="fro"):
    """The norm of the matrices in the last two axes."""
    x = _inexact(x)
    if x.ndim < 2:
        raise ValueError(f"matrix_norm needs an array of rank 2 or more, not {x.ndim}")
    return pointwise.rounded_once(lambda x: _of_matrices(x, ord, (x.ndim - 2, x.ndim - 1), keepdims), x)


def cond(x, p=None):
    """The condition number norm(x) * norm(inv(x)); for None, 2 and -2 the ratio of singular values. NaN becomes inf as in
    NumPy, unless x has NaN; a singular matrix fails the run where the inverse is needed."""
    x = _inexact(x)
    if 0 in x.shape:
        raise NotMatrices(f"cond: matrices of shape {show(x.shape)} have none, they are empty")
    if p in (None, 2, -2):
        values = svdvals(x)
        largest, least = values[..., 0], values[..., -1]
        ratio = arithmetic.divide(least, largest) if p == -2 else arithmetic.divide(largest, least)
    else:
        axes = (x.ndim - 2, x.ndim - 1)
        inverse = inv(x)
        ratio = arithmetic.multiply(_of_matrices(x, p, axes, False), _of_matrices(inverse, p, axes, False))
    has_nan = reductions.any(logic.isnan(x), axis=(-2, -1))
    return logic.where(logic.logical_and(logic.isnan(ratio), logic.logical_not(has_nan)), np.inf, ratio)


def _inexact(x):
    x = as_array(x)
    return x.builder.convert(x, dtypes.inexact_of(x.dtype))


def _euclid(x, axis, keepdims):
    return transcendental.sqrt(reductions.sum(_squares(x), axis, keepdims=keepdims))


def _squares(x):
    """|x|**2 without abs, whose slope jumps at 0, so that derivatives of any order are right there."""
    if not x.dtype.is_complex:
        return arithmetic.square(x)
    return arithmetic.add(arithmetic.square(logic.real(x)), arithmetic.square(logic.imag(x)))


def _of_vectors(x, ord, axis, keepdims):
    if ord is None or ord == 2:
        return _euclid(x, axis, keepdims)
    size = arithmetic.abs(x)
    if ord == np.inf:
        return reductions.max(size, axis, keepdims=keepdims)
    if ord == -np.inf:
        return reductions.min(size, axis, keepdims=keepdims)
    if ord == 0:
        return reductions.sum(logic.astype(logic.not_equal(x, 0), size.dtype), axis, keepdims=keepdims)
    if ord == 1:
        return reductions.sum(size, axis, keepdims=keepdims)
    if isinstance(ord, str):
        raise ValueError(f"norm: {ord!r} is no norm of vectors")
    total = reductions.sum(arithmetic.power(size, ord), axis, keepdims=keepdims)
    return arithmetic.power(total, 1.0 / ord)


def _of_matrices(x, ord, axes, keepdims):
    if ord in (None, "fro"):
        return _euclid(x, axes, keepdims)
    rows, columns = axes
    if ord in (1, -1, np.inf, -np.inf):
        summed, kept = (rows, columns) if ord in (1, -1) else (columns, rows)
        sums = reductions.sum(arithmetic.abs(x), summed, keepdims=True)
        result = (reductions.max if ord > 0 else reductions.min)(sums, kept, keepdims=True)
    elif ord in (2, -2, "nuc"):
        values = svdvals(shaping.moveaxis(x, axes, (-2, -1)))
        result = _restored(values[..., 0] if ord == 2 else values[..., -1] if ord == -2 else values.sum(-1), x, axes)
    else:
        raise ValueError(f"norm: {ord!r} is no norm of matrices")
    return result if keepdims else shaping.squeeze(result, axes)


def _restored(result, x, axes):
    return shaping.reshape(result, tuple(1 if place in axes else size for place, size in enumerate(x.shape)))
