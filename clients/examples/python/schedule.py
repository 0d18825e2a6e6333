#!/usr/bin/env python3
"""The critical path of a project: earliest starts and longest rests are products of integers in (max, +)."""

import argparse

import checkout  # noqa: F401  (finds the package in this repository; with an installed one it does nothing)
import numpy as np
import tensord as td

NEVER = np.iinfo(np.int64).min  # the zero of the algebra: no dependency


def random_project(random, tasks):
    """Days of each task, and (before, after) for tasks that wait for others."""
    days = random.integers(1, 20, tasks)
    waits = [(before, after) for after in range(tasks) for before in range(after) if random.random() < 3 / tasks]
    return days, waits


def longest_paths(steps):
    """The greatest sum of steps from each task to each other one, of any number of steps; none is one as well."""

    def closure(steps):
        paths = steps
        for _ in range(int(steps.shape[0]).bit_length()):
            paths = paths @ paths
        return paths

    none = np.where(np.eye(len(steps), dtype=bool), 0, NEVER)
    return td.evaluate(closure, np.maximum(steps, none), algebra="max_plus")


def plan(days, waits):
    """Earliest starts, the length of the project, and the tasks that must not be late."""
    steps = np.full((len(days), len(days)), NEVER)
    for before, after in waits:
        steps[before, after] = days[before]
    paths = longest_paths(steps)
    start = paths.max(axis=0)
    rest = td.evaluate(lambda paths, days: paths @ days, paths, days, algebra="max_plus")  # to the end, from each start
    length = int((start + days).max())
    return start, length, np.flatnonzero(start + rest == length)


def in_order(days, waits):
    """Earliest starts, a task after the other: every task has a higher number than those that it waits for."""
    start = np.zeros(len(days), np.int64)
    for before, after in sorted(waits, key=lambda pair: pair[1]):
        start[after] = max(start[after], start[before] + days[before])
    return start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--target", default=td.default_target(), help="the server, unix:/path or host:port (%(default)s)"
    )
    arguments = parser.parse_args()
    days, waits = random_project(np.random.default_rng(0), 120)
    with td.connect(arguments.target):
        start, length, critical = plan(days, waits)
    print(f"{len(days)} tasks take {length} days; {critical.tolist()} must not be late")
    print("as one after the other:", bool((start == in_order(days, waits)).all()))
    late = days.copy()
    late[critical[0]] += 1
    print("a day more of a critical task is a day more of all:", int((in_order(late, waits) + late).max()) == length + 1)


if __name__ == "__main__":
    main()
