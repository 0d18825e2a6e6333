"""The one deadline that the calls of an operation share."""

import math
import numbers
from time import monotonic

# A call that has less left fails all the same, and says by what.
_LEAST = 0.001
# gRPC takes no greater numbers of seconds; in 30 years nobody waits any more.
_LONGEST = 1e9


def timeout_of_call(timeout):
    """Seconds as gRPC takes them: None where there is no end. Raises ValueError for what is no time."""
    if timeout is None:
        return None
    if not isinstance(timeout, numbers.Real) or not timeout >= 0:  # NaN neither
        kind = ValueError if isinstance(timeout, numbers.Real) else TypeError
        raise kind(f"a timeout is a number of seconds from 0 on, not {timeout!r}")
    return timeout if timeout < _LONGEST else None


class Deadline:
    """`timeout` seconds from now; None and infinity: never, where infinity is no one else's timeout either."""

    __slots__ = ("_end", "_endless")

    def __init__(self, timeout):
        seconds = timeout_of_call(timeout)
        self._end = math.inf if seconds is None else monotonic() + seconds
        self._endless = None if timeout is None else math.inf

    def left(self):
        """The timeout of a call that begins now; as it was given where there is none."""
        return self._endless if self._end == math.inf else max(self._end - monotonic(), _LEAST)

    def wait(self, event):
        """Waits for a threading.Event until then; tells whether it has come."""
        return event.wait(timeout_of_call(self.left()))

    def half(self):
        """Half of what is left, for what has another way should it take longer."""
        left = self.left()
        return left and left / 2

    def is_before(self, pause):
        """Tell whether it comes before so many seconds are over."""
        return monotonic() + pause >= self._end
