"""x.at[key]: arrays that differ from x at some places."""

from tensord.array import Array
from tensord.functions import arithmetic
from tensord.indexing.index_keys import select
from tensord.indexing.scattering import assigned, fitted, scattered, window_updated
from tensord.tracing.lifting import as_array, result_type


class At:
    """x.at: x.at[key].set(values) and its like are new arrays, what x[key] op= values would make of x."""

    __slots__ = ("_x",)

    def __init__(self, x):
        self._x = x

    def __getitem__(self, key):
        return Place(self._x, key)


class Place:
    """x.at[key]: what a key selects of x, to be read or replaced. x itself does not change.

    The key is one of x[key], without traced bounds of slices. Values broadcast to what it selects. Where arrays of
    integers name a place several times, `set` leaves the last value in row-major order of the arrays, and the others
    apply each value, as NumPy's ufunc.at. Indices that are known while tracing are checked; an update at a traced index
    that is out of bounds, after negative ones were counted from the end, is skipped (whereas reading clamps the index
    into bounds).
    """

    __slots__ = ("_x", "_key")

    def __init__(self, x, key):
        self._x, self._key = x, key

    def get(self):
        """x[key]"""
        return self._x[self._key]

    def set(self, values):
        """x with the values in place of what it had. They take x's type, as in an assignment."""
        return self._updated("SET", assigned(self._x, values))

    def add(self, values):
        """x with each value added at its place."""
        return self._updated("ADD", _operand("add", self._x, values))

    def subtract(self, values):
        """x with each value subtracted at its place."""
        values = _operand("subtract", self._x, values)
        return self._updated("ADD", arithmetic.negative(values))

    def multiply(self, values):
        """x with each value multiplied in at its place."""
        return self._updated("MULTIPLY", _operand("multiply", self._x, values))

    def min(self, values):
        """x with the lesser of what it had and each value at its place. NaN wins, as in td.minimum."""
        return self._updated("MINIMUM", _operand("min", self._x, values))

    def max(self, values):
        """x with the greater of what it had and each value at its place. NaN wins, as in td.maximum."""
        return self._updated("MAXIMUM", _operand("max", self._x, values))

    def _updated(self, combiner, values):
        key = self._key if isinstance(self._key, tuple) else (self._key,)
        if any(isinstance(item, slice) and _has_traced_bound(item) for item in key):
            raise TypeError(
                "x.at[…]: a slice's bounds are known while tracing: use td.dynamic_update_slice or td.where"
            )
        selection = select(self._x.shape, key)
        values = fitted(values, selection.shape())
        if 0 in values.shape:
            return self._x
        if selection.places or any(window.step != 1 for window in selection.windows):
            return scattered(self._x, selection, values, combiner)
        return window_updated(self._x, selection.windows, values, combiner)


def _has_traced_bound(item):
    return any(isinstance(part, Array) for part in (item.start, item.stop, item.step))


def _operand(name, x, values):
    """Values of x's type, where NumPy would cast the operation's result back to it."""
    common = result_type(x, values)
    kinds = "bifc"
    if kinds.index(common.kind) > kinds.index(x.dtype.kind):
        raise TypeError(
            f"at[…].{name}: the result's type {common} does not fit into {x.dtype}: convert the array first"
        )
    if name == "subtract" and x.dtype.is_bool:
        raise TypeError("at[…].subtract is not defined for bool: use td.logical_xor")
    return as_array(values, x.dtype)
