"""Solutions of linear systems, exact or of least squares, and inverses."""

import numpy as np

from tensord import dims, dtypes
from tensord.array import Array
from tensord.errors import NotMatrices
from tensord.functions import arithmetic, creation, logic, reductions, shaping
from tensord.functions.contraction import matmul
from tensord.functions.factorizations import svd, svdvals
from tensord.functions.matrices import Matrices, adjoint
from tensord.tracing.lifting import as_array, broadcast_shapes, normalized_axes, show


def solve(a, b):
    """x with a @ x = b; b is a vector, or matrices with a's batch axes."""
    a, b = as_array(a), as_array(b)
    if b.ndim == 1:
        return shaping.squeeze(solve(a, shaping.expand_dims(b, 1)), -1)
    a, b = _one_batch(a, b)
    m = Matrices("solve", a, b, square=True)
    _check_rows("solve", a, b)
    (x,) = m.run("Solve", (m.dtype, (m.rows, b.shape[-1])))
    return x


def solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False):
    """x with op(a) @ x = b for a triangular a; op by `trans`: 0 "N" a, 1 "T" its transpose, 2 "C" its adjoint."""
    a, b = as_array(a), as_array(b)
    if b.ndim == 1:
        return shaping.squeeze(solve_triangular(a, shaping.expand_dims(b, 1), trans, lower, unit_diagonal), -1)
    a, b = _one_batch(a, b)
    m = Matrices("solve_triangular", a, b, square=True)
    _check_rows("solve_triangular", a, b)
    operation = {"N": 0, "T": 1, "C": 2}.get(trans, trans)
    if operation not in (0, 1, 2):
        raise ValueError(f"solve_triangular: trans is 0, 1, 2, 'N', 'T' or 'C', not {trans!r}")
    (x,) = m.run("TriangularSolve", (m.dtype, (m.rows, b.shape[-1])), left_side=True, lower=bool(lower),
                 unit_diagonal=bool(unit_diagonal), transpose_a=operation)  # fmt: skip
    return x


def _one_batch(a, b):
    """Both with the batch axes that NumPy's broadcasting gives: the wire's operation has no broadcasting."""
    if a.ndim < 2 or b.ndim < 2:
        return a, b
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return shaping.broadcast_to(a, batch + a.shape[-2:]), shaping.broadcast_to(b, batch + b.shape[-2:])


def _check_rows(name, a, b, rows_of=-1, kind=ValueError):
    if a.shape[rows_of] != b.shape[-2]:
        raise kind(f"{name}: shapes {show(a.shape)} and {show(b.shape)} do not fit")


def inv(a):
    m = Matrices("inv", a, square=True)
    (inverse,) = m.run("Inverse", (m.dtype, (m.rows, m.rows)))
    return inverse


def pinv(a, rcond=None, hermitian=False, *, rtol=None):
    """The pseudo-inverse; singular values up to rcond (or rtol) times the largest count as zero, by default eps * max(m, n).

    rcond may be an array, which has one number for each matrix of a stack. `hermitian` changes nothing."""
    if rcond is not None and rtol is not None:
        raise ValueError("pinv takes rcond or rtol, which mean the same, and not both")
    cutoff = _number_or_array(rcond if rtol is None else rtol)
    if isinstance(cutoff, Array):
        u, values, vh = svd(a, full_matrices=False)
        inverses = _inverses(values, _above(values, cutoff))
        return matmul(adjoint(vh), arithmetic.multiply(shaping.expand_dims(inverses, -1), adjoint(u)))
    m = Matrices("pinv", a)
    (inverse,) = m.run("PseudoInverse", (m.dtype, (m.columns, m.rows)), **_attribute(cutoff))
    return inverse


def lstsq(a, b, rcond=None):
    """(x, residuals, rank, singular values), x of least norm among those that minimize |b - a @ x|.

    Singular values up to rcond times the largest count as zero: None is eps * max(m, n), -1 is eps. Residuals are the
    squared lengths of b - a @ x; there are none, which is shape (0,), where a has no more rows than columns. (NumPy leaves
    them out as well where the rank turns out to be smaller than the columns; here a shape depends on no values.)
    """
    a, b = as_array(a), as_array(b)
    vector = b.ndim == 1
    a, b = _one_batch(a, shaping.expand_dims(b, 1) if vector else b)
    m = Matrices("lstsq", a, b)
    _check_rows("lstsq", a, b, rows_of=-2, kind=NotMatrices)
    if isinstance(rcond, Array):
        raise TypeError("lstsq: the cutoff is a Python number, it becomes part of the program")
    a, b = (array.builder.convert(array, m.dtype) for array in (a, b))
    # Solution, rank and singular values are those of one decomposition.
    u, values, vh = svd(a, full_matrices=False)
    above = _above(values, _relative_cutoff(rcond, m))
    projected = arithmetic.multiply(shaping.expand_dims(_inverses(values, above), -1), matmul(adjoint(u), b))
    x = matmul(adjoint(vh), projected)
    rank = reductions.count_nonzero(above, axis=-1)
    if dims.is_static(m.rows) and dims.is_static(m.columns) and m.rows <= m.columns:
        residuals = creation.zeros(m.batch + (0,), dtypes.real_of(m.dtype))
    else:
        residuals = reductions.sum(arithmetic.square(arithmetic.abs(arithmetic.subtract(b, matmul(a, x)))), -2)
    return (shaping.squeeze(x, -1) if vector else x), residuals, rank, values


def _relative_cutoff(rcond, m):
    """The meaning of lstsq's rcond for matrices of a size and dtype."""
    epsilon = float(np.finfo(m.dtype.numpy).eps)
    if rcond is not None:
        return float(rcond) if rcond >= 0 else epsilon
    larger = dims.maximum(m.rows, m.columns)
    if dims.is_static(larger):
        return epsilon * larger
    return arithmetic.multiply(as_array(larger, dtypes.real_of(m.dtype)), epsilon)


def matrix_rank(A, tol=None, hermitian=False, *, rtol=None):
    """The number of singular values that exceed tol, or rtol times the largest one, by default eps * max(m, n) times
    that.

    tol and rtol may be arrays, which have one number for each matrix of a stack. `hermitian` changes nothing."""
    if tol is not None and rtol is not None:
        raise ValueError("matrix_rank takes tol or rtol and not both")
    a = as_array(A)
    if a.ndim < 2:
        return reductions.any(a).astype(dtypes.int64)
    cutoff = _number_or_array(rtol)
    if tol is not None or isinstance(cutoff, Array):
        values = svdvals(a)
        above = _above(values, cutoff) if tol is None else logic.greater(values, _for_each_matrix(tol))
        return reductions.count_nonzero(above, axis=-1)
    m = Matrices("matrix_rank", a)
    (rank,) = m.run("MatrixRank", (dtypes.int64, ()), **_attribute(cutoff))
    return rank


def _number_or_array(cutoff):
    """None, a float, or an Array where the cutoff is traced or has axes."""
    if cutoff is None or isinstance(cutoff, Array):
        return cutoff
    return as_array(cutoff) if np.ndim(cutoff) else float(cutoff)


def _attribute(cutoff):
    return {} if cutoff is None else {"relative_cutoff": cutoff}


def _for_each_matrix(numbers):
    """Numbers for the matrices of a stack, with an axis for their singular values."""
    return shaping.expand_dims(numbers, -1) if isinstance(numbers, Array) or np.ndim(numbers) else numbers


def _above(values, cutoff):
    """The singular values that exceed cutoff, a number or an Array of one for each matrix, times the largest one, as
    booleans."""
    if values.shape[-1] == 0:
        return logic.greater(values, 0)
    return logic.greater(values, arithmetic.multiply(_for_each_matrix(cutoff), reductions.max(values, -1, keepdims=True)))


def _inverses(values, above):
    """The inverses of the singular values above the cutoff; 0 for the others."""
    return logic.where(above, arithmetic.reciprocal(values), as_array(0, values.dtype))


def tensorsolve(a, b, axes=None):
    """x with tensordot(a, x, x.ndim) = b; `axes` of a are moved to its end first."""
    a, b = as_array(a), as_array(b)
    if axes is not None:
        moved = normalized_axes(axes, a.ndim)
        a = shaping.transpose(a, [axis for axis in range(a.ndim) if axis not in moved] + list(moved))
    shape = a.shape[b.ndim :]
    if a.shape[: b.ndim] != b.shape or dims.product(shape) != b.size:
        raise NotMatrices(f"tensorsolve: shapes {show(a.shape)} and {show(b.shape)} do not fit")
    x = solve(shaping.reshape(a, (b.size, b.size)), shaping.ravel(b))
    return shaping.reshape(x, shape)


def tensorinv(a, ind=2):
    """The inverse of a as a map from its axes from `ind` on to those before."""
    a = as_array(a)
    if not 0 < ind <= a.ndim:
        raise ValueError(f"tensorinv: ind is from 1 to {a.ndim}, not {ind}")
    rows, columns = a.shape[:ind], a.shape[ind:]
    if dims.product(rows) != dims.product(columns):
        raise NotMatrices(f"tensorinv: {show(rows)} and {show(columns)} have different sizes")
    return shaping.reshape(inv(shaping.reshape(a, (dims.product(rows), dims.product(columns)))), columns + rows)
