"""One user of sessions, for the soak: session_user.py TARGET SECONDS SEED.

Keeps tensors on the server, works on them, and then closes the session, or leaves it to its lease, at random. Vanishes
at the end without a word, with a session open. Prints what it did as JSON.
"""

import json
import os
import pathlib
import random
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "clients" / "python"))
import numpy as np  # noqa: E402
import tensord as td  # noqa: E402

LEASE_SECONDS = 1
SHAPE = (64, 256)


def use(client, step, draw):
    """A session with some steps in it; what became of it."""
    session = client.session(lease=LEASE_SECONDS)
    state = session.put(np.zeros(SHAPE, np.float32))
    count = draw.randrange(1, 8)
    for _ in range(count):
        state = step(state.donate(), keep=True)
    kept = [session.put(np.ones(SHAPE, np.float32)) for _ in range(draw.randrange(3))]
    if kept and draw.random() < 0.5:
        session.delete(kept)
    if not np.array_equal(state.fetch(), np.full(SHAPE, count, np.float32)):
        raise AssertionError("the server computed something else")
    if draw.random() < 0.7:
        session.close()
        return "closed"
    return "left"


def vanish(client):
    client.session(lease=LEASE_SECONDS).put(np.zeros(SHAPE, np.float32))
    return "left"


def attempt(action):
    """The outcome of `action` for its session."""
    try:
        return action()
    except td.ResourceExhausted:  # a limit of sessions or tensors; those that were left go with their leases
        time.sleep(0.05)
        return "refused"
    except td.FailedPrecondition as error:
        # A slow machine may take longer than the lease between two steps.
        if error.reason != "SESSION_UNKNOWN":
            raise
        return "expired"


def main(target, seconds, seed):
    draw = random.Random(seed)
    client = td.Client(target, timeout=60)
    client.wait_until_ready(30)
    step = td.compile(lambda x: x + 1, td.spec(SHAPE, "float32"), client=client)
    did = {"closed": 0, "left": 0, "refused": 0, "expired": 0}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        did[attempt(lambda: use(client, step, draw))] += 1
    did[attempt(lambda: vanish(client))] += 1
    print(json.dumps(did), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
