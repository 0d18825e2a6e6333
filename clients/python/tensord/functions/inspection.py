"""The properties of an Array while it is traced, and equality of two, with NumPy's names and meaning."""

from tensord import dims, dtypes
from tensord.arguments.options import check_order
from tensord.functions import arithmetic, logic, reductions
from tensord.tracing.lifting import as_array, normalized_axes, result_type


def shape(a):
    """The shape as a tuple of integers and Dims."""
    return as_array(a).shape


def ndim(a):
    return as_array(a).ndim


def size(a, axis=None):
    """The number of an Array's elements, in all or along some axes: an integer or a Dim."""
    a = as_array(a)
    return dims.product(a.shape[place] for place in normalized_axes(axis, a.ndim))


def iscomplexobj(x):
    return result_type(x).is_complex


def isrealobj(x):
    return not iscomplexobj(x)


def copy(a, order="K", subok=False):
    """a as an Array: those do not change."""
    check_order("copy", order)
    return as_array(a)


def array_equal(a1, a2, equal_nan=False):
    """Tell whether two arrays have one shape and equal elements, a bool of rank 0."""
    a1, a2 = as_array(a1), as_array(a2)
    if a1.shape != a2.shape:
        return as_array(False, dtypes.bool_)
    same = logic.equal(a1, a2)
    return reductions.all(logic.logical_or(same, logic.logical_and(logic.isnan(a1), logic.isnan(a2))) if equal_nan else same)


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Tell whether all elements of two arrays are close, a bool of rank 0."""
    return reductions.all(arithmetic.isclose(a, b, rtol, atol, equal_nan))
