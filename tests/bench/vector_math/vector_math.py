#!/usr/bin/env python3
"""Nanoseconds an element of the functions of backends/cpu/math/vector_math.h and of NumPy, in turns in one run on one core:
on arrays that stay in the first cache and on a million elements. Times are the thread's own, the least of many rounds.

Without NumPy only ours are measured. Called by tests/bench/run.py.
"""
import argparse
import json
import os
import subprocess
import sys
import time

try:
    import numpy
except ImportError:
    numpy = None

SIZES = {"cached": 2048, "1M": 1 << 20}
TURNS = 3


def numpy_functions():
    """NumPy's way to the same results, without arrays of its own; nothing where it lacks the function."""
    def logistic(x, out):
        numpy.negative(x, out=out)
        numpy.exp(out, out=out)
        numpy.add(out, 1, out=out)
        numpy.reciprocal(out, out=out)

    def rsqrt(x, out):
        numpy.sqrt(x, out=out)
        numpy.reciprocal(out, out=out)

    functions = {"logistic": logistic, "rsqrt": rsqrt, "remainder": numpy.fmod, "atan2": numpy.arctan2,
                 "pow": numpy.power}
    for name in ("exp", "expm1", "log", "log2", "log10", "log1p", "tanh", "sin", "cos", "tan", "sqrt", "cbrt", "maximum"):
        functions[name] = getattr(numpy, name)
    return functions


def numpy_time(function, about, count):
    dtype = "float%s" % about["dtype"][1:]
    random = numpy.random.default_rng(1)
    operands = [random.uniform(least, most, count).astype(dtype) for least, most in about["operands"]]
    out = numpy.empty(count, dtype)
    runs = max(1, (1 << 16) // count)
    least = float("inf")
    for _ in range(25):
        start = time.thread_time_ns()
        for _ in range(runs):
            function(*operands, out=out)
        least = min(least, time.thread_time_ns() - start)
    return least / (runs * count)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the built programs")
    parser.add_argument("--filter", default="", help="beginning of a workload's name")
    parser.add_argument("--json", default="", metavar="FILE")
    options = parser.parse_args()

    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    ours = subprocess.Popen([os.path.join(options.bin, "bench_vector_math")], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True, bufsize=1)

    def ask(line):
        ours.stdin.write(line + "\n")
        ours.stdin.flush()
        return json.loads(ours.stdout.readline())

    peers = numpy_functions() if numpy else {}
    print("%-24s %9s %9s" % ("ns an element", "ours", "numpy " + numpy.__version__ if numpy else ""))
    rows = []
    for about in ask("list"):
        for size, count in SIZES.items():
            name = "vector_math_%s_%s_%s" % (about["name"], about["dtype"], size)
            if not name.startswith(options.filter):
                continue
            peer = peers.get(about["name"])
            mine, theirs = [], []
            for _ in range(TURNS):
                mine.append(ask("run %s %s %d" % (about["name"], about["dtype"], count)))
                if peer:
                    theirs.append(numpy_time(peer, about, count))
            row = {"workload": name, "threads": 1, "ours_ms": min(mine) * count / 1e6, "ns_per_element": min(mine),
                   "peers": {"numpy": min(theirs) * count / 1e6} if peer else {}}
            rows.append(row)
            print("%-24s %9.3f %9s" % (name[len("vector_math_"):], min(mine), "%.3f" % min(theirs) if peer else ""),
                  flush=True)
    ours.stdin.close()
    ours.wait()
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"workloads": rows}, f, indent=1)


if __name__ == "__main__":
    main()
