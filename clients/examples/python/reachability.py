#!/usr/bin/env python3
"""Which functions of a program can call which, over any others: a matrix of BOOL squared in the algebra (or, and)."""

import argparse
import collections

import checkout  # noqa: F401  (finds the package in this repository; with an installed one it does nothing)
import numpy as np
import tensord as td


def reachable(calls):
    """The transitive closure: squared until nothing is new. A function reaches itself."""
    square = td.compile(lambda x: x @ x, td.spec(("n", "n"), bool), algebra="or_and")
    closure = calls | np.eye(len(calls), dtype=bool)
    while True:
        wider = square(closure)
        if (wider == closure).all():
            return closure
        closure = wider


def breadth_first(calls, start):
    found, queue = {start}, collections.deque([start])
    while queue:
        for other in np.flatnonzero(calls[queue.popleft()]):
            if other not in found:
                found.add(other)
                queue.append(other)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--target", default=td.default_target(), help="the server, unix:/path or host:port (%(default)s)"
    )
    arguments = parser.parse_args()
    random = np.random.default_rng(0)
    calls = random.random((400, 400)) < 0.004
    with td.connect(arguments.target):
        closure = reachable(calls)
    print(f"{int(calls.sum())} calls, {int(closure.sum())} pairs of which one reaches the other")
    print("functions that call themselves over others:", int((closure & closure.T).sum() - len(calls)) > 0)
    wanted = [breadth_first(calls, start) for start in range(len(calls))]
    print("as a search finds:", all(set(np.flatnonzero(row)) == found for row, found in zip(closure, wanted)))


if __name__ == "__main__":
    main()
