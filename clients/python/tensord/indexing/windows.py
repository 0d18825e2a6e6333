"""Basic indexing: what integers and slices take from the axes of an array."""

import operator

import numpy as np

from tensord import dims, dtypes
from tensord.functions import shaping
from tensord.indexing import gathering
from tensord.tracing.lifting import as_array


class Window:
    """The entries that an index takes from one axis: `length` entries from `start`, every `step`-th, then perhaps
    reversed."""

    __slots__ = ("start", "length", "step", "reverse")

    def __init__(self, start, length, step=1, reverse=False):
        self.start, self.length, self.step, self.reverse = start, length, step, reverse

    def positions(self):
        """The entries' places on the axis, in the order of the result. Needs a static length and start."""
        places = np.arange(self.length) * self.step + self.start
        return places[::-1] if self.reverse else places


def is_whole(window, size):
    """Tell whether the window is the axis as it stands."""
    return window.start == 0 and window.length == size and window.step == 1 and not window.reverse


def integer_window(index, size, axis):
    if dims.is_static(size) and not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for axis {axis} of size {size}")
    return Window(index if index >= 0 else index + size, 1)


def slice_window(item, size, axis):
    if dims.is_static(size) and dims.is_static(item.start) and dims.is_static(item.stop):
        indices = range(*item.indices(size))
        if not indices:
            return Window(0, 0)
        if len(indices) == 1:
            return Window(indices[0], 1)
        reverse = indices.step < 0
        return Window(indices[-1] if reverse else indices[0], len(indices), abs(indices.step), reverse)
    step = 1 if item.step is None else item.step
    if item.start is None and item.stop is None and step in (1, -1):
        return Window(0, size, 1, step == -1)
    if step != 1:
        raise TypeError(f"axis {axis}: a slice of or up to a symbolic size has step 1, or is [::-1]")
    # A slice that reaches past a size that turns out small is an error of the run, not a shorter result.
    start = _bound(0 if item.start is None else item.start, size)
    stop = _bound(size if item.stop is None else item.stop, size)
    return Window(start, stop - start)


def _bound(value, size):
    if not dims.is_static(value):
        return value
    value = operator.index(value)
    return value + size if value < 0 else value


def windowed(x, windows):
    """The part of x within one window an axis."""
    if any(
        not dims.is_static(window.start) or not dims.is_static(window.length) or not dims.is_static(size)
        for window, size in zip(windows, x.shape)
    ):
        return _symbolic_windowed(x, windows)
    starts = [window.start for window in windows]
    limits = [
        window.start + (window.length - 1) * window.step + 1 if window.length else window.start for window in windows
    ]
    result = x.builder.slice(x, starts, limits, [window.step if window.length else 1 for window in windows])
    return x.builder.reverse(result, [axis for axis, window in enumerate(windows) if window.reverse])


def _symbolic_windowed(x, windows):
    """The wire's slices have static bounds. Bounds that count from the ends are a cropping pad, others a gather.

    A gather shifts a window that does not fit. Here each window touches an end of its axis by then, so that one that
    does not fit is larger than the axis, which is an error of the run.
    """
    for axis, window in enumerate(windows):
        if window.step != 1:
            x = gathering.gathered(x, as_array(np.arange(window.length) * window.step + window.start), axis)
    windows = [window if window.step == 1 else Window(0, window.length, 1, window.reverse) for window in windows]
    stops = [window.start + window.length for window in windows]
    neither = [
        not dims.is_static(window.start) and not dims.is_static(stop - size)
        for window, stop, size in zip(windows, stops, x.shape)
    ]
    if any(neither):
        lengths = tuple(stop if cut else size for cut, stop, size in zip(neither, stops, x.shape))
        x = gathering.gathered_window(x, as_array(np.zeros(x.ndim, np.int64)), lengths)
    high = [stop - size if dims.is_static(stop - size) else 0 for stop, size in zip(stops, x.shape)]
    low = [0 - window.start if dims.is_static(window.start) else 0 for window in windows]
    x = x.builder.pad(x, x.builder.constant(0, x.dtype), low, high)
    lengths = tuple(window.length for window in windows)
    if x.shape != lengths:
        starts = [0 if dims.is_static(window.start) else window.start for window in windows]
        starts = shaping.stack([as_array(start, dtypes.int64) for start in starts])
        x = gathering.gathered_window(x, starts, lengths)
    return x.builder.reverse(x, [axis for axis, window in enumerate(windows) if window.reverse])
