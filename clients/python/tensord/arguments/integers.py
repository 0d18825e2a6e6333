"""Integers and sequences of them, as NumPy takes them for shapes, axes and counts: its own arrays are both."""

import numpy as np


def is_integer(value):
    """Whether a value is one integer: Python's, NumPy's, or a NumPy array of rank 0. An array of rank 1 is a sequence."""
    return hasattr(value, "__index__") and not (isinstance(value, np.ndarray) and value.ndim)


def as_sequence(value):
    """A tuple of what may be one integer or a sequence."""
    if not is_integer(value) and not hasattr(value, "__iter__"):
        raise TypeError(f"an integer, or a sequence of integers are wanted, not {value!r}")
    return (value,) if is_integer(value) else tuple(value)
