"""Array's operators, methods and NumPy protocols: each is a function of the package."""

import inspect
import operator

import numpy as np

from tensord import fft, linalg
from tensord.arguments.integers import is_integer
from tensord.array import Array
from tensord.dims import Dim
from tensord.functions import (
    activations,
    arithmetic,
    contraction,
    contraction_order,
    creation,
    diagonals,
    einstein_sum,
    inspection,
    logic,
    reductions,
    shaping,
    transcendental,
)
from tensord.indexing import gathering, subscripts, searching, updates
from tensord.session import RemoteArray
from tensord.tracing import array_methods
from tensord.tracing.lifting import as_array

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
_OF_SIZES = ("add", "sub", "mul", "truediv", "pow")  # of symbolic sizes too, beside numbers that are no integers
_SIZE_UFUNCS = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "negative": operator.neg,
    "equal": operator.eq,
    "not_equal": operator.ne,
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
    "astype": array_methods.astype,
    "copy": array_methods.copy,
    "clip": array_methods.clip,
    "conj": logic.conj,
    "conjugate": logic.conj,
    "round": arithmetic.round,
    "reshape": array_methods.reshape,
    "ravel": shaping.ravel,
    "flatten": shaping.ravel,
    "transpose": array_methods.transpose,
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
# A RemoteArray is none, and says so itself.
_OPERAND_TYPES = (Array, Dim, bool, int, float, complex, np.generic, np.ndarray, list, tuple, RemoteArray)

# Functions with another name in NumPy.
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
        inspection,
        searching,
        creation,
        activations,
    ),
    "numpy.linalg": (linalg,),
    "numpy.fft": (fft,),
}
# The names of a ufunc's method `reduce` here.
_REDUCTIONS = {
    "add": reductions.sum,
    "multiply": reductions.prod,
    "maximum": reductions.max,
    "minimum": reductions.min,
    "logical_and": reductions.all,
    "logical_or": reductions.any,
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


def _size_operator(name, function, reflected):
    """A symbolic size's operator: another size, or with what is no integer the Array that a number in its place makes."""
    of_sizes = getattr(Dim, f"__{'r' * reflected}{name}__", None)

    def method(self, other):
        result = NotImplemented if of_sizes is None else of_sizes(self, other)
        if result is NotImplemented and isinstance(other, (Dim, int, float, complex, np.generic, np.ndarray)):
            return function(other, self) if reflected else function(self, other)
        return result

    return method


def _size_ufunc(self, ufunc, method, *inputs, **kwargs):
    """NumPy's ufuncs on a symbolic size: of sizes and NumPy's integers a size, where it is one, else an Array."""
    of_sizes = _SIZE_UFUNCS.get(ufunc.__name__) if method == "__call__" and not kwargs else None
    if of_sizes is not None and all(isinstance(one, Dim) or is_integer(one) for one in inputs):
        return of_sizes(*(one if isinstance(one, Dim) else operator.index(one) for one in inputs))
    return _array_ufunc(self, ufunc, method, *inputs, **kwargs)


def _method(function):
    def method(self, *args, **kwargs):
        return function(self, *args, **kwargs)

    method.__name__, method.__doc__ = function.__name__, function.__doc__
    method.__signature__ = inspect.signature(function)
    return method


def _function_named(name, numpy_module="numpy"):
    """The function of the package that stands for NumPy's of that name, or None."""
    name = _NUMPY_NAMES.get(name, name)
    for module in _SOURCES.get(numpy_module, ()):
        function = module.__dict__.get(name)
        is_its_own = numpy_module != "numpy" or getattr(function, "__module__", None) == module.__name__
        if inspect.isfunction(function) and is_its_own and not name.startswith("_"):
            return function
    return None


def _array_ufunc(self, ufunc, method, *inputs, **kwargs):
    """NumPy's ufuncs on an Array, and NumPy arrays and scalars in operators with one."""
    function = _function_named(ufunc.__name__)
    if method == "reduce" and ufunc.__name__ in _REDUCTIONS:
        return _REDUCTIONS[ufunc.__name__](*inputs, **{"axis": 0, **kwargs})
    if method == "outer" and function is not None:
        x, y = map(as_array, inputs)
        return function(x[(...,) + (None,) * y.ndim], y, **kwargs)
    if function is None or method != "__call__":
        shown = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        raise TypeError(f"np.{shown} cannot be traced: tensord has no such function")
    return function(*inputs, **kwargs)


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
        if name in _OF_SIZES:
            setattr(Dim, f"__{name}__", _size_operator(name, function, reflected=False))
            setattr(Dim, f"__r{name}__", _size_operator(name, function, reflected=True))
    Dim.__array_ufunc__ = _size_ufunc
    for name, function in _COMPARISONS.items():
        setattr(Array, f"__{name}__", _operator(function, reflected=False))
    for name, function in _UNARY.items():
        setattr(Array, f"__{name}__", _method(function))
    for name, function in _METHODS.items():
        setattr(Array, name, _method(function))
    for name, function in _PROPERTIES.items():
        setattr(Array, name, property(_method(function), doc=function.__doc__))
    Array.__getitem__ = subscripts.getitem
    Array.__array_ufunc__ = _array_ufunc
    Array.__array_function__ = _array_function
