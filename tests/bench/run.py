#!/usr/bin/env python3
"""Runs the benchmark programs and merges what they measured: ./dev bench [--filter=S1] [--threads=1,2] [--json=FILE].

A program prints its table and, with --json=FILE, writes {"workloads": [{"workload", "threads", "ours_ms", "peers", …}]}.
Peers are measured where they are: NumPy, and what the Python named by TENSORD_PEER_PYTHON can import of torch and jax.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

# Program and the workloads that it runs, by the beginning of their names.
PROGRAMS = [
    ("bench_in_process", ["in_process"]),
    ("bench_s1", ["S1"]),
    ("bench_compile", ["S2_compile"]),
    ("fused.py", ["G01", "G03", "G04", "G05"]),
    ("vector_math.py", ["vector_math"]),
]
# Those that take --filter.
FILTERING = {"bench_in_process", "bench_compile", "fused.py", "vector_math.py"}
HERE = os.path.dirname(os.path.abspath(__file__))


def wanted(prefixes, wish):
    return not wish or any(p.startswith(wish) or wish.startswith(p) for p in prefixes)


def run(program, options, wish):
    """Whether one program was content, and the workloads that it measured."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.json")
        if program.endswith(".py"):
            command = [sys.executable, os.path.join(HERE, program[:-3], program), "--bin=" + options.bin]
            command += ["--threads=" + options.threads] if options.threads and program == "fused.py" else []
        else:
            command = [os.path.join(options.bin, program)]
        command.append("--json=" + out)
        if program in FILTERING and wish:
            command.append("--filter=" + wish)
        print("== " + program, flush=True)
        content = subprocess.run(command, check=False).returncode == 0
        if not os.path.exists(out):
            return False, []
        with open(out) as f:
            return content, json.load(f)["workloads"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the built programs")
    parser.add_argument("--filter", default="", help="beginning of a workload's name")
    parser.add_argument("--threads", default="", help="thread counts of the workloads that have several, as 1,2")
    parser.add_argument("--json", default="", metavar="FILE", help="write the figures here")
    options = parser.parse_args()
    counts = {int(n) for n in options.threads.split(",") if n}

    chosen = [(p, names) for p, names in PROGRAMS if wanted(names, options.filter)]
    if not chosen:
        sys.exit("no workload's name begins with %r; there are %s" %
                 (options.filter, ", ".join(n for _, names in PROGRAMS for n in names)))
    workloads, failed = [], []
    for program, _ in chosen:
        content, measured = run(program, options, options.filter)
        if not content:
            failed.append(program)
        workloads += [w for w in measured if not counts or w["threads"] in counts]
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"workloads": workloads}, f, indent=1)
            f.write("\n")
    if failed:
        sys.exit("failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
