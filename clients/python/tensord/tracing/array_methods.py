"""Methods of Arrays whose parameters are not those of the function of their name."""

from tensord.arguments.options import check_casting, check_order
from tensord.dtypes import as_dtype
from tensord.functions import arithmetic, shaping
from tensord.tracing.lifting import as_array


def astype(x, dtype, order="K", casting="unsafe", subok=True, copy=True):
    """x converted: floats to integers toward zero, complex numbers to their real part, or to whether they are zero."""
    check_order("astype", order)
    check_casting("astype", x.dtype, as_dtype(dtype), casting)
    return as_array(x, dtype)


def clip(x, min=None, max=None, out=None, **options):
    """x limited to [min, max]; a limit that is None does not limit."""
    return arithmetic.clip(x, min, max, out, **options)


def copy(x, order="C"):
    """x itself: Arrays do not change."""
    check_order("copy", order)
    return x


def reshape(x, *shape, order="C", copy=None):
    """x in another shape: x.reshape(2, 3) or x.reshape((2, 3)); one size may be -1."""
    return shaping.reshape(x, shape[0] if len(shape) == 1 else shape, order, copy=copy)


def transpose(x, *axes):
    """x with its axes permuted: x.transpose(1, 0) or x.transpose((1, 0)); without axes, in reverse order."""
    if not axes:
        return shaping.transpose(x)
    return shaping.transpose(x, axes[0] if len(axes) == 1 else axes)
