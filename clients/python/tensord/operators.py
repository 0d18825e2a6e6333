"""Array's operators, methods and NumPy protocols: each is a function of the package."""

import inspect

import numpy as np

from tensord import (
    activations,
    arithmetic,
    contraction,
    contraction_order,
    creation,
    diagonals,
    einstein_sum,
    fft,
    gathering,
    indexing,
    linalg,
    logic,
    reductions,
    searching,
    shaping,
    transcendental,
    updates,
)
from tensord.array import Array
from tensord.dims import Dim

_OPERATORS = {
    "add": arithmetic.add,
    "sub": arithmetic.subtract,
    "mul": arithmetic.multiply,
    "truediv": arithmetic.divide,
    "floordiv": arithmetic.floor_divide,
    "mod": arithmetic.remainder,
    "divmod": arithmetic.divmod,
    "pow": arithmetic.power,
    "matmul": contraction.matmul,
    "and": logic.bitwise_and,
    "or": logic.bitwise_or,
    "xor": logic.bitwise_xor,
}
_COMPARISONS = {
    "eq": logic.equal,
    "ne": logic.not_equal,
    "lt": logic.less,
    "le": logic.less_equal,
    "gt": logic.greater,
    "ge": logic.greater_equal,
}
_UNARY = {"neg": arithmetic.negative, "pos": arithmetic.positive, "abs": arithmetic.abs, "invert": logic.bitwise_not}
_METHODS = {
    "astype": logic.astype,
    "clip": arithmetic.clip,
    "conj": logic.conj,
    "conjugate": logic.conj,
    "round": arithmetic.round,
    "reshape": shaping.reshape,
    "ravel": shaping.ravel,
    "flatten": shaping.ravel,
    "transpose": shaping.transpose,
    "swapaxes": shaping.swapaxes,
    "squeeze": shaping.squeeze,
    "diagonal": diagonals.diagonal,
    "repeat": shaping.repeat,
    "sum": reductions.sum,
    "prod": reductions.prod,
    "mean": reductions.mean,
    "var": reductions.var,
    "std": reductions.std,
    "max": reductions.max,
    "min": reductions.min,
    "any": reductions.any,
    "all": reductions.all,
    "argmax": reductions.argmax,
    "argmin": reductions.argmin,
    "dot": contraction.dot,
    "trace": diagonals.trace,
    "searchsorted": searching.searchsorted,
    "take": gathering.take,
}
_PROPERTIES = {
    "T": shaping.transpose,
    "mT": shaping.matrix_transpose,
    "real": logic.real,
    "imag": logic.imag,
    "at": updates.At,
}
_OPERAND_TYPES = (Array, Dim, bool, int, float, complex, np.generic, np.ndarray, list)

# Where NumPy calls a function otherwise than the package.
_NUMPY_NAMES = {"round_": "round", "row_stack": "vstack"}
_SOURCES = {
    "numpy": (
        arithmetic,
        logic,
        transcendental,
        shaping,
        diagonals,
        reductions,
        contraction,
        einstein_sum,
        contraction_order,
        gathering,
        searching,
        creation,
        activations,
    ),
    "numpy.linalg": (linalg,),
    "numpy.fft": (fft,),
}
# Functions of NumPy that have no result, and what does instead.
_IN_PLACE = {
    "put_along_axis": "td.put_along_axis",
    "put": "x.at[…].set(values)",
    "place": "td.where",
    "putmask": "td.where",
    "copyto": "td.where",
    "fill_diagonal": "x.at[np.diag_indices_from(x)].set(value)",
}


def _operator(function, reflected):
    def method(self, other):
        if not isinstance(other, _OPERAND_TYPES):
            return NotImplemented
        return function(other, self) if reflected else function(self, other)

    return method


def _method(function):
    def method(self, *args, **kwargs):
        return function(self, *args, **kwargs)

    method.__doc__ = function.__doc__
    return method


def _function_named(name, numpy_module="numpy"):
    """The function of the package that stands for NumPy's of that name, or None."""
    name = _NUMPY_NAMES.get(name, name)
    for module in _SOURCES.get(numpy_module, ()):
        function = module.__dict__.get(name)
        if inspect.isfunction(function) and not name.startswith("_"):
            return function
    return None


def _array_ufunc(self, ufunc, method, *inputs, **kwargs):
    """NumPy's ufuncs on an Array, and NumPy arrays and scalars in operators with one."""
    function = _function_named(ufunc.__name__)
    if function is None or method != "__call__":
        shown = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        raise TypeError(f"np.{shown} cannot be traced: tensord has no such function")
    if kwargs:
        raise TypeError(f"np.{ufunc.__name__} on a traced Array takes no {', '.join(kwargs)}")
    return function(*inputs)


def _array_function(self, func, types, args, kwargs):
    """NumPy's other functions on an Array."""
    if func.__name__ in _IN_PLACE:
        raise TypeError(
            f"np.{func.__name__} changes its argument, and Arrays do not change: use {_IN_PLACE[func.__name__]}"
        )
    module = getattr(func, "__module__", "")
    function = _function_named(func.__name__, module)
    if function is None:
        raise TypeError(
            f"{module.replace('numpy', 'np', 1)}.{func.__name__} cannot be traced: tensord has no such function"
        )
    return function(*args, **kwargs)


def install():
    for name, function in _OPERATORS.items():
        setattr(Array, f"__{name}__", _operator(function, reflected=False))
        setattr(Array, f"__r{name}__", _operator(function, reflected=True))
    for name, function in _COMPARISONS.items():
        setattr(Array, f"__{name}__", _operator(function, reflected=False))
    for name, function in _UNARY.items():
        setattr(Array, f"__{name}__", _method(function))
    for name, function in _METHODS.items():
        setattr(Array, name, _method(function))
    for name, function in _PROPERTIES.items():
        setattr(Array, name, property(_method(function), doc=function.__doc__))
    Array.__getitem__ = indexing.getitem
    Array.__array_ufunc__ = _array_ufunc
    Array.__array_function__ = _array_function
