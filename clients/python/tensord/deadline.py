"""The one deadline that the calls of an operation share."""

from time import monotonic

# A call that has less left fails all the same, and says by what.
_LEAST = 0.001


class Deadline:
    """`timeout` seconds from now; None: never."""

    __slots__ = ("_end",)

    def __init__(self, timeout):
        self._end = None if timeout is None else monotonic() + timeout

    def left(self):
        """The timeout of a call that begins now; None for none."""
        return None if self._end is None else max(self._end - monotonic(), _LEAST)

    def half(self):
        """Half of what is left, for what has another way should it take longer."""
        left = self.left()
        return left and left / 2

    def is_before(self, pause):
        """Whether it comes before so many seconds are over."""
        return self._end is not None and monotonic() + pause >= self._end
