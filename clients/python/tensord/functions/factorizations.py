"""Factorizations of matrices, and their eigenvalues and singular values."""

import collections

from tensord import dtypes
from tensord.functions import shaping
from tensord.functions.matrices import Matrices, adjoint

QRResult = collections.namedtuple("QRResult", "Q R")
SVDResult = collections.namedtuple("SVDResult", "U S Vh")
EigResult = collections.namedtuple("EigResult", "eigenvalues eigenvectors")
EighResult = collections.namedtuple("EighResult", "eigenvalues eigenvectors")
LUResult = collections.namedtuple("LUResult", "P L U")


def cholesky(a, upper=False):
    """The lower triangular L with a = L L^H, read from the lower triangle; with `upper` U with a = U^H U, from the upper."""
    if upper:
        return adjoint(cholesky(adjoint(a)))
    m = Matrices("cholesky", a, square=True)
    (lower,) = m.run("Cholesky", (m.dtype, (m.rows, m.rows)))
    return lower


def lu(a):
    """(P, L, U) with a = P @ L @ U, P a permutation matrix; the order of scipy.linalg.lu."""
    m = Matrices("lu", a)
    permutation, lower, upper, _ = m.run("Lu", (m.dtype, (m.rows, m.rows)), (m.dtype, (m.rows, m.least)),
                                         (m.dtype, (m.least, m.columns)), (m.dtype, ()))  # fmt: skip
    return LUResult(shaping.matrix_transpose(permutation), lower, upper)


def qr(a, mode="reduced"):
    """(Q, R) with a = Q @ R; mode "reduced" or "complete", or "r" for R alone.

    "raw" is what Q is made of, (h, tau): transposed, h has R in its upper triangle and the reflectors' vectors below.
    """
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ValueError(f"qr: mode is 'reduced', 'complete', 'r' or 'raw', not {mode!r}")
    m = Matrices("qr", a)
    if mode == "raw":
        packed, tau = m.run("HouseholderQr", (m.dtype, (m.rows, m.columns)), (m.dtype, (m.least,)))
        return shaping.matrix_transpose(packed), tau
    inner = m.rows if mode == "complete" else m.least
    both = m.run("Qr", (m.dtype, (m.rows, inner)), (m.dtype, (inner, m.columns)), full=mode == "complete")
    return both[1] if mode == "r" else QRResult(*both)


def svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    """(U, S, Vh) with a = U @ diag(S) @ Vh, S descending; S alone without compute_uv. `hermitian` changes nothing."""
    if not compute_uv:
        return svdvals(a)
    m = Matrices("svd", a)
    rows, columns = (m.rows, m.columns) if full_matrices else (m.least, m.least)
    results = m.run("Svd", (m.dtype, (m.rows, rows)), (dtypes.real_of(m.dtype), (m.least,)),
                    (m.dtype, (columns, m.columns)), full=full_matrices)  # fmt: skip
    return SVDResult(*results)


def svdvals(a):
    """The singular values, descending."""
    m = Matrices("svdvals", a)
    (values,) = m.run("SvdValues", (dtypes.real_of(m.dtype), (m.least,)))
    return values


def _lower_of(name, a, UPLO):
    """Hermitian matrices whose lower triangle is the one that UPLO names."""
    if UPLO not in ("L", "U", "l", "u"):
        raise ValueError(f"{name}: UPLO is 'L' or 'U', not {UPLO!r}")
    return adjoint(a) if UPLO in "Uu" else a


def eigh(a, UPLO="L"):
    """(eigenvalues ascending, eigenvectors in columns) of Hermitian matrices, of which one triangle is read."""
    m = Matrices("eigh", _lower_of("eigh", a, UPLO), square=True)
    return EighResult(*m.run("Eigh", (dtypes.real_of(m.dtype), (m.rows,)), (m.dtype, (m.rows, m.rows))))


def eigvalsh(a, UPLO="L"):
    m = Matrices("eigvalsh", _lower_of("eigvalsh", a, UPLO), square=True)
    (values,) = m.run("EighValues", (dtypes.real_of(m.dtype), (m.rows,)))
    return values


def eig(a):
    """(eigenvalues, right eigenvectors in columns), both complex."""
    m = Matrices("eig", a, square=True)
    complex_type = dtypes.complex_of(m.dtype)
    return EigResult(*m.run("Eig", (complex_type, (m.rows,)), (complex_type, (m.rows, m.rows))))


def eigvals(a):
    """The eigenvalues, complex."""
    m = Matrices("eigvals", a, square=True)
    (values,) = m.run("EigValues", (dtypes.complex_of(m.dtype), (m.rows,)))
    return values
