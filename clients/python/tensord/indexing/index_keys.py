"""Keys of x[key] and x.at[key]: which entries of which axes they mean, and where these stand in the result."""

import builtins

import numpy as np

from tensord.arguments.numpy_arrays import numpy_array
from tensord.array import Array
from tensord.dtypes import bool_
from tensord.indexing.positions import MASK, known_integers, positions
from tensord.indexing.windows import Window, integer_window, slice_window
from tensord.tracing.lifting import broadcast_shapes


class Selection:
    """The part of an array that a key selects, with NumPy's rules.

    `windows` has a Window an axis; of the axes in `places`, which maps axes to arrays of integers, it is the whole
    axis. `layout` lists the sources of the result's axes: an axis that a slice selects from, or None for a new one. The
    common axes of the arrays, of shape `block`, stand at `position` among them.
    """

    __slots__ = ("windows", "places", "layout", "position", "block")

    def __init__(self, windows, places, layout, position, block):
        self.windows, self.places, self.layout, self.position, self.block = windows, places, layout, position, block

    def shape(self):
        """The shape of what is selected."""
        sizes = tuple(1 if axis is None else self.windows[axis].length for axis in self.layout)
        return sizes[: self.position] + self.block + sizes[self.position :]


def select(shape, key):
    """The Selection of a key from an array of that shape. Raises IndexError and TypeError for what NumPy or we
    refuse."""
    items = [part for item in _items(key) for part in _without_mask(item)]
    used = builtins.sum(item is not None and item is not Ellipsis for item in items)
    if used > len(shape):
        raise IndexError(f"{used} indices for an array of rank {len(shape)}")
    if builtins.sum(item is Ellipsis for item in items) > 1:
        raise IndexError("an index may hold one Ellipsis")
    if not any(item is Ellipsis for item in items):
        items.append(Ellipsis)
    by_array = any(_rank(item) for item in items)
    windows, places, layout = [], {}, []
    runs = 0  # of neighbouring arrays and integers
    position, in_run = 0, False
    for item in items:
        if isinstance(item, (Array, np.ndarray, _MaskPart)) or by_array and is_integer(item):
            runs += not in_run
            position = len(layout) if runs == 1 and not in_run else position
            in_run = True
        else:
            in_run = False
        if item is None:
            layout.append(None)
        elif item is Ellipsis:
            for _ in range(len(shape) - used):
                layout.append(len(windows))
                windows.append(Window(0, shape[len(windows)]))
        elif isinstance(item, slice):
            layout.append(len(windows))
            windows.append(slice_window(item, shape[len(windows)], len(windows)))
        else:
            _add_position(item, shape, windows, places)
    block = broadcast_shapes(*(place.shape for place in places.values()))
    return Selection(windows, places, layout, 0 if runs > 1 else position, block)


def _add_position(item, shape, windows, places):
    axis = len(windows)
    size = shape[axis]
    if is_integer(item):
        windows.append(integer_window(item.__index__(), size, axis))
        return
    if isinstance(item, _MaskPart):
        if size != item.size:
            raise IndexError(f"a mask's axis of size {item.size} does not fit axis {axis} of size {size}")
        item = item.places
    windows.append(Window(0, size))
    places[axis] = positions(item, size, axis)


class _MaskPart:
    """The part of one axis that a mask known while tracing selects."""

    __slots__ = ("places", "size")

    def __init__(self, places, size):
        self.places, self.size = places, size


def _items(key):
    """The key's parts; sequences become arrays."""
    for item in key if isinstance(key, tuple) else (key,):
        if item is None or item is Ellipsis or isinstance(item, (slice, Array)) or is_integer(item):
            yield item
        elif isinstance(item, (bool, np.bool_)):
            raise TypeError("True and False are no indices: a mask has the shape of the axes that it stands for")
        elif isinstance(item, (np.ndarray, list, tuple, range)):
            if isinstance(item, (list, tuple)) and any(isinstance(part, Array) for part in item):
                raise TypeError("a list of traced values is no index: use td.stack")
            array = numpy_array(item)
            if array.dtype == np.bool_:
                yield array
            else:
                array = known_integers(array)
                yield array if array.ndim else int(array)
        else:
            raise TypeError(f"an index is an integer, a slice, None, Ellipsis or an array of integers, not {item!r}")


def _without_mask(item):
    if isinstance(item, Array) and item.dtype is bool_:
        raise TypeError(MASK)
    if not isinstance(item, np.ndarray) or item.dtype != np.bool_:
        return [item]
    if not item.ndim:
        raise TypeError("True and False are no indices: a mask has the shape of the axes that it stands for")
    return [_MaskPart(places, size) for places, size in zip(np.nonzero(item), item.shape)]


def _rank(item):
    if isinstance(item, _MaskPart):
        return 1
    return item.ndim if isinstance(item, (Array, np.ndarray)) else 0


def is_integer(item):
    return hasattr(type(item), "__index__") and not isinstance(item, (bool, np.bool_, Array, np.ndarray))
