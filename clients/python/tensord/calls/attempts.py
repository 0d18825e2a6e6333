"""The number of attempts, and the pauses between them, for a call that the transport broke."""

import random
import re
import time

from tensord import errors

MOST_ATTEMPTS = 6  # in a row that brought nothing, the first included
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0  # seconds; each is twice the one before, spread by a fifth


class Attempts:
    """The calls of one operation, which have one Deadline."""

    def __init__(self, deadline, most=None):
        self._deadline, self._most = deadline, most or MOST_ATTEMPTS
        self.left = deadline.left
        self.progress()

    def progress(self):
        self._count, self._pause = 0, FIRST_PAUSE

    def pause(self):
        """Waits for the next attempt; False where there is to be none."""
        self._count += 1
        pause = self._pause * random.uniform(0.8, 1.2)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        if self._count >= self._most or self._deadline.is_before(pause):
            return False
        time.sleep(pause)
        return True


# The words of gRPC, and of errors.from_rpc for a proxy, for a call that no server was given.
_NOT_SENT = re.compile(
    "failed to connect|connections to all backends failing|name resolution|resolution failed|empty address|HTTP 503",
    re.IGNORECASE,
)


def may_have_run(unavailable):
    """Tell whether a server may have been at work for the call when it broke off: it may have died of it."""
    return not unavailable.reason and not _NOT_SENT.search(unavailable.message)


def is_broken(failure):
    """Tell whether the connection broke, or there is none at the moment."""
    return isinstance(failure, errors.Unavailable) and not failure.reason  # a server that refuses says why
