"""Linear algebra on the last two axes, with numpy.linalg's names and meaning; needs a server with the family linalg.

Computed in float32, float64, complex64 or complex128: integers in float64, 16-bit floats in float32. Signs and phases
of vectors are the server's LAPACK's. What has no solution (a singular matrix) fails the run and names the matrix.
"""

import collections

from tensord import dims, dtypes, shaping
from tensord.array import Array
from tensord.lifting import as_array, broadcast_shapes, promoted, show
from tensord.reductions import norm  # noqa: F401  (numpy.linalg.norm, of vectors and in the sense of Frobenius)

QRResult = collections.namedtuple("QRResult", "Q R")
SVDResult = collections.namedtuple("SVDResult", "U S Vh")
EigResult = collections.namedtuple("EigResult", "eigenvalues eigenvectors")
EighResult = collections.namedtuple("EighResult", "eigenvalues eigenvectors")
SlogdetResult = collections.namedtuple("SlogdetResult", "sign logabsdet")
LUResult = collections.namedtuple("LUResult", "P L U")


class _Matrices:
    """Operands as the wire wants them: the matrix in the first two axes, every further axis batch."""

    def __init__(self, name, *values, square=False):
        self.name = name
        values = promoted(*values, to=_lapack_type)
        for value in values:
            if value.ndim < 2:
                raise ValueError(f"{name} needs an array of rank 2 or more, not {value.ndim}")
        first = values[0]
        self.rows, self.columns = first.shape[-2:]
        if square and self.rows != self.columns:
            raise ValueError(f"{name} needs square matrices, not {show(first.shape)}")
        self.batch, self.dtype = first.shape[:-2], first.dtype
        self.operands = [shaping.moveaxis(value, (-2, -1), (0, 1)) for value in values]
        self.least = dims.minimum(self.rows, self.columns)

    def run(self, message, *results, **attributes):
        """The operation's results; each of `results` is (dtype, shape) of what it gives for one matrix."""
        types = [(dtype, tuple(leading) + self.batch) for dtype, leading in results]
        arrays = self.operands[0].builder.extension(f"tensord.linalg.v1.{message}", attributes, self.operands, types)
        return [_back(array, len(leading)) for array, (_, leading) in zip(arrays, results)]


def _lapack_type(dtype):
    return dtypes.float32 if dtype.bits == 16 else dtypes.inexact_of(dtype)


def _back(array, leading):
    """Moves the leading axes of a result behind the batch axes, where NumPy has them."""
    return shaping.moveaxis(array, range(leading), range(-leading, 0)) if leading else array


def cholesky(a):
    """The lower triangular L with a = L L^H. Reads the lower triangle."""
    m = _Matrices("cholesky", a, square=True)
    (lower,) = m.run("Cholesky", (m.dtype, (m.rows, m.rows)))
    return lower


def lu(a):
    """(P, L, U) with a = P @ L @ U, P a permutation matrix; the order of scipy.linalg.lu."""
    m = _Matrices("lu", a)
    permutation, lower, upper, _ = m.run("Lu", (m.dtype, (m.rows, m.rows)), (m.dtype, (m.rows, m.least)),
                                         (m.dtype, (m.least, m.columns)), (m.dtype, ()))  # fmt: skip
    return LUResult(shaping.matrix_transpose(permutation), lower, upper)


def qr(a, mode="reduced"):
    """(Q, R) with a = Q @ R; mode "reduced" or "complete"."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode is 'reduced' or 'complete', not {mode!r}")
    m = _Matrices("qr", a)
    inner = m.rows if mode == "complete" else m.least
    return QRResult(*m.run("Qr", (m.dtype, (m.rows, inner)), (m.dtype, (inner, m.columns)), full=mode == "complete"))


def svd(a, full_matrices=True, compute_uv=True):
    """(U, S, Vh) with a = U @ diag(S) @ Vh, S descending; S alone without compute_uv."""
    if not compute_uv:
        return svdvals(a)
    m = _Matrices("svd", a)
    rows, columns = (m.rows, m.columns) if full_matrices else (m.least, m.least)
    results = m.run("Svd", (m.dtype, (m.rows, rows)), (dtypes.real_of(m.dtype), (m.least,)),
                    (m.dtype, (columns, m.columns)), full=full_matrices)  # fmt: skip
    return SVDResult(*results)


def svdvals(a):
    """The singular values, descending."""
    m = _Matrices("svdvals", a)
    (values,) = m.run("SvdValues", (dtypes.real_of(m.dtype), (m.least,)))
    return values


def eigh(a):
    """(eigenvalues ascending, eigenvectors in columns) of Hermitian matrices. Reads the lower triangle."""
    m = _Matrices("eigh", a, square=True)
    return EighResult(*m.run("Eigh", (dtypes.real_of(m.dtype), (m.rows,)), (m.dtype, (m.rows, m.rows))))


def eigvalsh(a):
    m = _Matrices("eigvalsh", a, square=True)
    (values,) = m.run("EighValues", (dtypes.real_of(m.dtype), (m.rows,)))
    return values


def eig(a):
    """(eigenvalues, right eigenvectors in columns), both complex."""
    m = _Matrices("eig", a, square=True)
    complex_type = dtypes.complex_of(m.dtype)
    return EigResult(*m.run("Eig", (complex_type, (m.rows,)), (complex_type, (m.rows, m.rows))))


def eigvals(a):
    """The eigenvalues, complex."""
    m = _Matrices("eigvals", a, square=True)
    (values,) = m.run("EigValues", (dtypes.complex_of(m.dtype), (m.rows,)))
    return values


def solve(a, b):
    """x with a @ x = b; b is a vector, or matrices with a's batch axes."""
    a, b = as_array(a), as_array(b)
    if b.ndim == 1:
        return shaping.squeeze(solve(a, shaping.expand_dims(b, 1)), -1)
    a, b = _one_batch(a, b)
    m = _Matrices("solve", a, b, square=True)
    _check_rows("solve", a, b)
    (x,) = m.run("Solve", (m.dtype, (m.rows, b.shape[-1])))
    return x


def solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False):
    """x with op(a) @ x = b for a triangular a; op by `trans`: 0 "N" a, 1 "T" its transpose, 2 "C" its adjoint."""
    a, b = as_array(a), as_array(b)
    if b.ndim == 1:
        return shaping.squeeze(solve_triangular(a, shaping.expand_dims(b, 1), trans, lower, unit_diagonal), -1)
    a, b = _one_batch(a, b)
    m = _Matrices("solve_triangular", a, b, square=True)
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


def _check_rows(name, a, b):
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"{name}: shapes {show(a.shape)} and {show(b.shape)} do not fit")


def inv(a):
    m = _Matrices("inv", a, square=True)
    (inverse,) = m.run("Inverse", (m.dtype, (m.rows, m.rows)))
    return inverse


def det(a):
    m = _Matrices("det", a, square=True)
    (determinant,) = m.run("Determinant", (m.dtype, ()))
    return determinant


def slogdet(a):
    """(sign, log|det|); (0, -inf) for singular matrices."""
    m = _Matrices("slogdet", a, square=True)
    return SlogdetResult(*m.run("SignLogDeterminant", (m.dtype, ()), (dtypes.real_of(m.dtype), ())))


def pinv(a, rcond=None):
    """The pseudo-inverse; singular values up to rcond times the largest count as zero, by default eps * max(m, n)."""
    m = _Matrices("pinv", a)
    (inverse,) = m.run("PseudoInverse", (m.dtype, (m.columns, m.rows)), **_cutoff("pinv", rcond))
    return inverse


def matrix_rank(a, rtol=None):
    """How many singular values exceed rtol times the largest, by default eps * max(m, n)."""
    m = _Matrices("matrix_rank", a)
    (rank,) = m.run("MatrixRank", (dtypes.int64, ()), **_cutoff("matrix_rank", rtol))
    return rank


def _cutoff(name, value):
    if isinstance(value, Array):
        raise TypeError(f"{name}: the cutoff is a Python number, it becomes part of the program")
    return {} if value is None else {"relative_cutoff": float(value)}
