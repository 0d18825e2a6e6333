"""Functions of each element as NumPy's ufuncs: what all of those take beside their operands."""

from tensord import dtypes
from tensord.arguments.options import check_casting, check_casting_name, check_order, is_given, refuse_out
from tensord.array import Array
from tensord.tracing.lifting import as_array, result_type


def ufunc(function):
    """The function, whose parameters are its one or two operands, with the parameters of NumPy's ufuncs behind them.

    `dtype` is the type to compute in, `casting` how operands may become it. out, where and signature have NumPy's defaults.
    """
    call = (_of_one if function.__code__.co_argcount == 1 else _of_two)(function)
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(call, attribute, getattr(function, attribute))
    return call


def _of_one(function):
    def call(x, /, out=None, *, where=True, casting="same_kind", order="K", dtype=None, subok=True, signature=None):
        check_parameters(function.__name__, out, where, order, signature, casting)
        return function(x) if dtype is None else computed_in(dtype, function, (x,), casting)

    return call


def _of_two(function):
    def call(x1, x2, /, out=None, *, where=True, casting="same_kind", order="K", dtype=None, subok=True, signature=None):
        check_parameters(function.__name__, out, where, order, signature, casting)
        return function(x1, x2) if dtype is None else computed_in(dtype, function, (x1, x2), casting)

    return call


def check_parameters(name, out, where, order, signature, casting):
    refuse_out(name, out)
    check_casting_name(name, casting)
    if where is not True and is_given(where):
        raise TypeError(f"{name}: where is not supported, every element of an Array has a value: use td.where on the result")
    if is_given(signature):
        raise TypeError(f"{name}: signature is not supported, dtype says in which type it is computed")
    check_order(name, order)


def computed_in(dtype, function, operands, casting):
    """The function of operands that become `dtype` first; of them as they are where only its result has that type."""
    dtype, found = dtypes.as_dtype(dtype), result_type(*operands)
    if dtype.is_bool or found.is_complex and dtype.is_float:  # comparisons, and magnitudes of complex numbers
        result = function(*operands)
        if _dtype_of(result) is dtype:
            return result
    for operand in operands:
        check_casting(function.__name__, found if dtypes.is_weak(operand) else result_type(operand), dtype, casting)
    result = function(*(as_array(operand, dtype) for operand in operands))
    if _dtype_of(result) is not dtype:
        raise TypeError(f"{function.__name__} of {found} is not computed in {dtype}")
    return result


def _dtype_of(result):
    return (result if isinstance(result, Array) else result[0]).dtype
