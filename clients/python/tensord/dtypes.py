"""Element types: the wire's, NumPy's, and how two of them combine.

Types combine as NumPy 2 combines them. A Python bool, int, float or complex is weak: it takes the type of the array
that it meets as far as its kind allows.
"""

import numpy as np

from tensord import contract

try:
    import ml_dtypes

    _bfloat16_numpy = np.dtype(ml_dtypes.bfloat16)
except ImportError:
    ml_dtypes = None
    _bfloat16_numpy = None


class DType:
    """An element type of the wire. `numpy` is the type of NumPy arrays that hold it.

    bfloat16 arrays have the type of the package ml_dtypes where that is installed, and are otherwise uint16 arrays of
    the same bits. Compares equal to everything that names it: td.float32 == "float32" == np.float32.
    """

    __slots__ = ("name", "wire", "numpy", "kind", "bits")

    def __init__(self, name, wire, numpy, kind, bits):
        self.name, self.wire, self.numpy, self.kind, self.bits = (
            name,
            contract.DTYPES[wire],
            np.dtype(numpy),
            kind,
            bits,
        )

    def __repr__(self):
        return self.name

    def __eq__(self, other):
        if isinstance(other, DType):
            return self is other
        try:
            return as_dtype(other) is self
        except TypeError:
            return False

    def __hash__(self):
        return hash(self.name)

    def __reduce__(self):
        return as_dtype, (self.name,)  # there is one DType of each kind: copies and what is unpickled are that one

    @property
    def dtype(self):
        """The type for NumPy's own functions."""
        return self.numpy

    @property
    def itemsize(self):
        return self.numpy.itemsize

    @property
    def is_float(self):
        return self.kind == "f"

    @property
    def is_complex(self):
        return self.kind == "c"

    @property
    def is_integer(self):
        return self.kind == "i"

    @property
    def is_bool(self):
        return self.kind == "b"

    @property
    def is_inexact(self):
        return self.kind in "fc"


bool_ = DType("bool", "DTYPE_BOOL", "?", "b", 1)
int32 = DType("int32", "DTYPE_I32", "<i4", "i", 32)
int64 = DType("int64", "DTYPE_I64", "<i8", "i", 64)
float16 = DType("float16", "DTYPE_F16", "<f2", "f", 16)
bfloat16 = DType("bfloat16", "DTYPE_BF16", _bfloat16_numpy or "<u2", "f", 16)
float32 = DType("float32", "DTYPE_F32", "<f4", "f", 32)
float64 = DType("float64", "DTYPE_F64", "<f8", "f", 64)
complex64 = DType("complex64", "DTYPE_C64", "<c8", "c", 64)
complex128 = DType("complex128", "DTYPE_C128", "<c16", "c", 128)

ALL = (bool_, int32, int64, float16, bfloat16, float32, float64, complex64, complex128)
_BY_NAME = {dtype.name: dtype for dtype in ALL}
_BY_WIRE = {dtype.wire: dtype for dtype in ALL}
_BY_NUMPY = {dtype.numpy: dtype for dtype in ALL if dtype is not bfloat16 or _bfloat16_numpy is not None}
_WEAK = {bool: bool_, int: int64, float: float64, complex: complex128}
_REAL_OF = {complex64: float32, complex128: float64}
_COMPLEX_OF = {float16: complex64, bfloat16: complex64, float32: complex64}


def as_dtype(value):
    """The DType that a DType, a NumPy type, a name or one of Python's number types means. Raises TypeError."""
    if isinstance(value, DType):
        return value
    if value in _WEAK:
        return _WEAK[value]
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]
    try:
        found = _BY_NUMPY.get(np.dtype(value).newbyteorder("<"))
    except TypeError:
        found = None
    if found is None or value is None:
        raise TypeError(f"tensord has no element type {value!r}; it has {', '.join(_BY_NAME)}")
    return found


def from_wire(number):
    if number not in _BY_WIRE:
        raise ValueError(f"unknown dtype {number} on the wire")
    return _BY_WIRE[number]


def real_of(dtype):
    return _REAL_OF.get(dtype, dtype)


def complex_of(dtype):
    return dtype if dtype.is_complex else _COMPLEX_OF.get(dtype, complex128)


def inexact_of(dtype):
    """The type in which functions with fractional results are computed: float64 for integers and booleans."""
    return dtype if dtype.is_inexact else float64


def inexact_loop(dtype):
    """The type in which NumPy's ufuncs with fractional results compute: booleans are its smallest integers."""
    return float16 if dtype.is_bool else inexact_of(dtype)


def is_weak(value):
    """Tell whether a value is a plain Python number. NumPy's float64 scalars derive from float and are none."""
    return isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)


def promote_types(left, right):
    """The type of a result of two typed operands, as NumPy's promote_types."""
    if left is right:
        return left
    order = "bifc"
    low, high = sorted((left, right), key=lambda dtype: (order.index(dtype.kind), dtype.bits))
    if low.is_bool:
        return high
    if low.kind == high.kind:
        if {low, high} == {float16, bfloat16}:
            return float32
        return high
    if high.is_float:  # an integer with a float: wide enough for both
        return float64
    if low.is_float:
        return complex128 if low is float64 else high
    return complex128  # an integer with a complex


def fits(value, dtype):
    """Tell whether a Python integer is one of a type's numbers, if those are integers."""
    return not dtype.is_integer or -(1 << (dtype.bits - 1)) <= value < 1 << (dtype.bits - 1)


def check_fits(value, dtype):
    if isinstance(value, int) and not fits(value, dtype):
        raise OverflowError(f"the Python integer {value} does not fit into {dtype}")


def weak_type(value, dtype):
    """The type of a Python number beside an array of `dtype`. Raises OverflowError where an integer does not fit."""
    scalar = _WEAK[next(python for python in (bool, int, float, complex) if isinstance(value, python))]
    if scalar.is_bool:
        return bool_
    if scalar.is_integer:
        result = int64 if dtype.is_bool else dtype
        check_fits(value, result)
        return result
    if scalar.is_float:
        return dtype if dtype.is_inexact else float64
    return complex_of(dtype)


def default_type(value):
    """The type of a Python number that stands alone."""
    return weak_type(value, bool_)


def to_numpy(values, dtype):
    """A NumPy array of `dtype`; rounds to bfloat16 by hand where NumPy has no such type."""
    with np.errstate(all="ignore"):
        if dtype is bfloat16 and _bfloat16_numpy is None:
            single = np.asarray(values, dtype="<f4", order="C")
            bits = single.reshape(-1).view("<u4").astype(np.int64)
            rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
            bits = np.where(np.isnan(single.reshape(-1)), (bits >> 16) | 0x40, rounded)
            return bits.astype("<u2").reshape(single.shape)
        return np.asarray(values, dtype=dtype.numpy)
