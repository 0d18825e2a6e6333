"""NumPy arrays of what users hand over as numbers."""

import numpy as np


def numpy_array(values):
    """np.asarray, which refuses what would lose its meaning: a mask, or what a matrix's * and ** mean."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError("masked arrays have no counterpart here, and their masked elements no value: "
                        "use .filled(value), or pass .data and .mask and use td.where")  # fmt: skip
    if isinstance(values, np.matrix):
        raise TypeError("np.matrix has rules of its own for * and **, which Arrays do not have: use np.asarray(matrix) and @")
    return np.asarray(values)
