#!/usr/bin/env python3
"""Microseconds a matrix of backends/cpu/linalg/lanes/loops.h and of numpy.linalg on batches of 1,024 square matrices, in
turns in one run on one core. Times are the thread's own, the least of many rounds.

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

COUNT = 1024
SIZES = (4, 8, 16, 32)
DTYPES = {"f64": "float64", "f32": "float32", "c128": "complex128"}
TURNS = 3
HERMITIAN = {"cholesky", "eigh", "eigvalsh"}


def numpy_functions():
    """NumPy's functions; its LU is SciPy's."""
    linalg = numpy.linalg
    return {"cholesky": linalg.cholesky, "qr": linalg.qr, "svd": linalg.svd, "svdvals": linalg.svdvals,
            "eigh": linalg.eigh, "eigvalsh": linalg.eigvalsh, "solve": lambda a: linalg.solve(a, a[:, :, :1])}


def numpy_time(function, dtype, n, is_hermitian):
    random = numpy.random.default_rng(1)
    a = random.uniform(-1, 1, (COUNT, n, n)).astype(dtype)
    if dtype.startswith("complex"):
        a = a + 1j * random.uniform(-1, 1, a.shape)
    if is_hermitian:
        a = (a + a.conj().swapaxes(1, 2)) / 2 + 2 * n * numpy.eye(n, dtype=dtype)
    least = float("inf")
    for _ in range(3):
        start = time.thread_time_ns()
        function(a)
        least = min(least, time.thread_time_ns() - start)
    return least / COUNT


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the built programs")
    parser.add_argument("--filter", default="", help="beginning of a workload's name")
    parser.add_argument("--json", default="", metavar="FILE")
    options = parser.parse_args()

    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    ours = subprocess.Popen([os.path.join(options.bin, "bench_small_matrices")], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True, bufsize=1)

    def ask(line):
        ours.stdin.write(line + "\n")
        ours.stdin.flush()
        return json.loads(ours.stdout.readline())

    peers = numpy_functions() if numpy else {}
    print("%-20s %9s %9s %7s" % ("us a matrix", "ours", "numpy " + numpy.__version__ if numpy else "", ""))
    rows = []
    for operation in ask("list"):
        for dtype, numpy_dtype in DTYPES.items():
            for n in SIZES:
                name = "small_matrices_%s_%s_%d" % (operation, dtype, n)
                if not name.startswith(options.filter):
                    continue
                peer = peers.get(operation)
                mine, theirs = [], []
                for _ in range(TURNS):
                    mine.append(ask("run %s %s %d %d" % (operation, dtype, n, COUNT)))
                    if peer:
                        theirs.append(numpy_time(peer, numpy_dtype, n, operation in HERMITIAN))
                row = {"workload": name, "threads": 1, "ours_ms": min(mine) * COUNT / 1e6,
                       "us_per_matrix": min(mine) / 1e3,
                       "peers": {"numpy": min(theirs) * COUNT / 1e6} if peer else {}}
                rows.append(row)
                beside = ("%.3f" % (min(theirs) / 1e3), "%.1f x" % (min(theirs) / min(mine))) if peer else ("", "")
                print("%-20s %9.3f %9s %7s" % (name[len("small_matrices_"):], min(mine) / 1e3, *beside), flush=True)
    ours.stdin.close()
    ours.wait()
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"workloads": rows}, f, indent=1)


if __name__ == "__main__":
    main()
