"""Linear algebra on the last two axes, with numpy.linalg's names and meaning; needs a server with the family linalg.

Computed in float32, float64, complex64 or complex128: integers in float64, 16-bit floats in float32. Signs and phases
of vectors are the server's LAPACK's. What has no solution (a singular matrix) fails the run with LinAlgError, which names
the matrix.
"""

import collections

from tensord import dtypes
from tensord.arguments.options import refuse_out
from tensord.errors import LinAlgError, NotMatrices  # noqa: F401
from tensord.functions import arithmetic, contraction, creation, diagonals, shaping
from tensord.functions.contraction import matmul, tensordot, vecdot  # noqa: F401
from tensord.functions.einstein_sum import einsum
from tensord.functions.factorizations import (  # noqa: F401
    EighResult,
    EigResult,
    LUResult,
    QRResult,
    SVDResult,
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    lu,
    qr,
    svd,
    svdvals,
)
from tensord.functions.linear_systems import (  # noqa: F401
    inv,
    lstsq,
    matrix_rank,
    pinv,
    solve,
    solve_triangular,
    tensorinv,
    tensorsolve,
)
from tensord.functions.matrices import Matrices
from tensord.functions.norms import cond, matrix_norm, norm, vector_norm  # noqa: F401
from tensord.functions.shaping import matrix_transpose  # noqa: F401
from tensord.tracing.lifting import as_array, show

SlogdetResult = collections.namedtuple("SlogdetResult", "sign logabsdet")

# Users pickle results, so these name a module that stays.
for _result in (EighResult, EigResult, LUResult, QRResult, SVDResult):
    _result.__module__ = __name__


def det(a):
    m = Matrices("det", a, square=True)
    (determinant,) = m.run("Determinant", (m.dtype, ()))
    return determinant


def slogdet(a):
    """(sign, log|det|); (0, -inf) for singular matrices."""
    m = Matrices("slogdet", a, square=True)
    return SlogdetResult(*m.run("SignLogDeterminant", (m.dtype, ()), (dtypes.real_of(m.dtype), ())))


def diagonal(x, /, *, offset=0):
    """The diagonals of the matrices in the last two axes."""
    return diagonals.diagonal(_stack("diagonal", x), offset, -2, -1)


def trace(x, /, *, offset=0, dtype=None):
    """The sums of the diagonals of the matrices in the last two axes."""
    return diagonals.trace(_stack("trace", x), offset, -2, -1, dtype)


def _stack(name, x):
    x = as_array(x)
    if x.ndim < 2:
        raise ValueError(f"{name} needs an array of rank 2 or more, not {x.ndim}")
    return x


def cross(x1, x2, /, *, axis=-1):
    """The cross products of vectors of three numbers, which stand along an axis."""
    a, b = (shaping.moveaxis(x, axis, -1) for x in (x1, x2))
    if (a.shape[-1], b.shape[-1]) != (3, 3):
        raise ValueError(f"cross: vectors have 3 numbers, and these {a.shape[-1]} and {b.shape[-1]}")
    parts = []
    for i, j in ((1, 2), (2, 0), (0, 1)):
        first, second = arithmetic.multiply(a[..., i], b[..., j]), arithmetic.multiply(a[..., j], b[..., i])
        parts.append(arithmetic.subtract(first, second))
    return shaping.moveaxis(shaping.stack(parts, -1), -1, axis)


def outer(x1, x2, /):
    """All products of an element of a vector with one of another."""
    x1, x2 = as_array(x1), as_array(x2)
    if (x1.ndim, x2.ndim) != (1, 1):
        raise ValueError(f"outer needs two vectors, not arrays of ranks {x1.ndim} and {x2.ndim}: np.outer ravels those")
    return contraction.outer(x1, x2)


def matrix_power(a, n):
    """a @ a @ … n times; the identity for 0, powers of the inverse for negative n."""
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"matrix_power: the exponent is an integer, not {n!r}")
    a, n = as_array(a), n.__index__()
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise NotMatrices(f"matrix_power needs square matrices, not {show(a.shape)}")
    if n == 0:
        return shaping.broadcast_to(creation.eye(a.shape[-1], dtype=a.dtype), a.shape)
    power, result = (inv(a) if n < 0 else a), None
    n = abs(n)
    while n:  # by the binary digits of n
        if n & 1:
            result = power if result is None else matmul(result, power)
        n >>= 1
        power = matmul(power, power) if n else power
    return result


def multi_dot(arrays, *, out=None):
    """The product of two or more matrices in the cheapest order; the first and the last may be vectors."""
    refuse_out("multi_dot", out)
    arrays = [as_array(array) for array in arrays]
    if len(arrays) < 2:
        raise ValueError("multi_dot needs two arrays or more")
    operands = []
    for place, array in enumerate(arrays):
        ends = place in (0, len(arrays) - 1)
        if array.ndim != 2 and not (ends and array.ndim == 1):
            raise NotMatrices(f"multi_dot: array {place} has rank {array.ndim}, not 2")
        operands += [array, [place, place + 1][place == 0 and array.ndim == 1 :][: array.ndim]]
    output = [0] * (arrays[0].ndim == 2) + [len(arrays)] * (arrays[-1].ndim == 2)
    return einsum(*operands, output, optimize="optimal")
