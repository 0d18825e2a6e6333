"""Operands and results of the family linalg: the client's matrices are the last two axes, the wire's the first two."""

from tensord import dims, dtypes
from tensord.errors import NotMatrices
from tensord.functions import logic, shaping
from tensord.tracing.lifting import promoted, show


class Matrices:
    """Operands as the wire wants them: the matrix in the first two axes, every further axis batch."""

    def __init__(self, name, *values, square=False):
        self.name = name
        values = promoted(*values, to=_lapack_type)
        for value in values:
            if value.ndim < 2:
                raise NotMatrices(f"{name} needs an array of rank 2 or more, not {value.ndim}")
        first = values[0]
        self.rows, self.columns = first.shape[-2:]
        if square and self.rows != self.columns:
            raise NotMatrices(f"{name} needs square matrices, not {show(first.shape)}")
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


def adjoint(a):
    return logic.conj(shaping.matrix_transpose(a))
