"""Parameters that NumPy's functions have and that say nothing, or little, about Arrays: checked, and refused in words."""

import numpy as np

from tensord import dtypes
from tensord.array import Array

_ORDERS = ("C", "F", "A", "K")
_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe", "same_value")


def is_given(value):
    """Tell whether an optional argument was given: NumPy's own mark of none may come from its callers."""
    return value is not None and value is not np._NoValue


def refuse_out(name, out):
    """NumPy fills `out`; an Array that a function fills is its result."""
    if any(map(is_given, out)) if isinstance(out, tuple) else is_given(out):
        raise TypeError(f"{name}: out is not supported, Arrays do not change")


def check_order(name, order):
    """Check the order of elements in memory: Arrays have no layout, so that every order of NumPy's will do."""
    if order is not None and order not in _ORDERS:
        raise ValueError(f"{name}: order is 'K', 'A', 'C' or 'F', not {order!r}")


def is_fortran(name, order):
    """Whether elements are read in column-major order; Arrays are row-major themselves, which "A" and "K" ask for."""
    check_order(name, order)
    return order == "F"


def check_device(name, device):
    """NumPy's `device` is always "cpu"; where a program runs is said when it is compiled."""
    if device not in (None, "cpu"):
        raise ValueError(f"{name}: a program runs on one device, which td.compile names; device is None, not {device!r}")


def check_creation(name, order="C", device=None, like=None):
    check_order(name, order)
    check_device(name, device)
    if like is not None and not isinstance(like, Array):
        raise TypeError(f"{name}: like is an Array or None, not {type(like).__name__}")


def _in_numpy(dtype):
    return np.dtype(np.float16) if dtype is dtypes.bfloat16 else dtype.numpy


def check_casting_name(name, casting):
    if casting not in _CASTINGS:
        raise ValueError(f"{name}: casting is one of {', '.join(_CASTINGS)}, not {casting!r}")


def check_casting(name, found, dtype, casting):
    """Tell whether NumPy's rule of that name lets a DType become another one."""
    check_casting_name(name, casting)
    rule = "unsafe" if casting == "same_value" else casting
    if found is not dtype and not np.can_cast(_in_numpy(found), _in_numpy(dtype), rule):
        raise TypeError(f"{name}: {found} does not become {dtype} by casting={casting!r}")
