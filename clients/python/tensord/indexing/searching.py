"""Places in sorted arrays, with NumPy's name and meaning."""

from tensord import dims, dtypes
from tensord.functions.arithmetic import add
from tensord.functions.logic import isnan, less, less_equal, logical_and, logical_not, logical_or, where
from tensord.indexing import gathering
from tensord.tracing.lifting import as_array, broadcast_to, promoted, show


def searchsorted(a, v, side="left", sorter=None):
    """The places of the values v in the sorted vector a, as int64: before ("left") or after ("right") equal elements.

    NaN counts as the greatest number. `sorter` are integers that sort a. A binary search that is written out in the
    graph, one step for each bit of the vector's size, which must be known while tracing.
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side is 'left' or 'right', not {side!r}")
    x, values = promoted(a, v)
    if x.ndim != 1:
        raise ValueError(f"searchsorted: searches a vector, not an array of shape {show(x.shape)}")
    size = x.shape[0]
    if not dims.is_static(size):
        raise TypeError(f"searchsorted: the vector has the symbolic size {size}, and the search is written out")
    if x.dtype.is_complex:
        raise TypeError("searchsorted is not defined for complex numbers")
    if sorter is not None:
        x = gathering.take(x, sorter)
    place = broadcast_to(as_array(0, dtypes.int64), values.shape)
    step = 1 << size.bit_length() >> 1
    while step:
        # All before `place` comes before the value. The same for `step` more, if there are as many?
        further = add(place, step)
        element = gathering.take(x, add(further, -1), mode="clip")
        before = _before(element, values) if side == "left" else logical_not(_before(values, element))
        place = where(logical_and(less_equal(further, size), before), further, place)
        step >>= 1
    return place


def _before(left, right):
    """left < right in NumPy's order of sorting."""
    if not left.dtype.is_float:
        return less(left, right)
    return logical_or(less(left, right), logical_and(isnan(right), logical_not(isnan(left))))
