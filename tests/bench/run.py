#!/usr/bin/env python3
"""Runs the benchmark programs and merges what they measured: ./dev bench [--filter=G07] [--threads=1,2] [--json=FILE].

A program prints its table and, with --json=FILE, writes {"workloads": [{"workload", "threads", "ours_ms", "peers", …}]}.
The graphs run beside other libraries, those that the Python named by --peer-python has.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "report"))
import report  # noqa: E402

# Program and the workloads that it runs, by the beginning of their names.
PROGRAMS = [
    ("bench_in_process", ["in_process"]),
    ("bench_s1", ["S1"]),
    ("bench_s4", ["S4"]),
    ("bench_compile", ["S2_compile"]),
    ("bench_warm_compile", ["S2_warm"]),
    ("bench_gradient_compile", ["S2_gradient"]),
    ("suite.py", ["G", "D"]),
    ("vector_math.py", ["vector_math"]),
    ("small_matrices.py", ["small_matrices"]),
    ("bench_einsum_paths", ["einsum_paths"]),
    ("bench_fusion", ["fusion"]),
    ("load.py", ["load"]),
]
# The programs that take --filter.
FILTERING = {"bench_in_process", "bench_compile", "suite.py", "vector_math.py", "small_matrices.py", "load.py"}
CHECKOUT = os.path.dirname(os.path.dirname(HERE))
# Beside the checkout; none of it is part of the project.
NETWORKS = os.path.join(os.path.dirname(CHECKOUT), "shared", "data", "einsum")
REPORT = os.path.join(CHECKOUT, "docs", "use", "benchmarks")


def wanted(prefixes, wish):
    return not wish or any(p.startswith(w) or w.startswith(p) for p in prefixes for w in wish.split(","))


def command_of(program, options):
    if not program.endswith(".py"):
        networks = [options.networks] if program == "bench_einsum_paths" and options.networks else []
        return [os.path.join(options.bin, program)] + networks
    python = peer_python(options) if program == "small_matrices.py" else sys.executable
    command = [python, os.path.join(HERE, program[:-3], program), "--bin=" + options.bin]
    return command + suite_options(options) if program == "suite.py" else command


def peer_python(options):
    return options.peer_python if os.path.exists(options.peer_python) else sys.executable


def suite_options(options):
    chosen = ["--peer-python=" + peer_python(options), "--networks=" + options.networks]
    chosen += ["--threads=" + options.threads] if options.threads else []
    chosen += ["--peers=" + options.peers] if options.peers else []
    return chosen + (["--rounds=%d" % options.rounds] if options.rounds else [])


def filter_of(program, names, wish):
    """Only the suite takes several beginnings of names."""
    fitting = [w for w in wish.split(",") if wanted(names, w)] if program in FILTERING else []
    if program == "suite.py":
        return ",".join(fitting)
    return fitting[0] if len(fitting) == 1 else ""


def run(program, names, options):
    """Run one program: whether it was content, and its measurements."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.json")
        command = command_of(program, options) + ["--json=" + out]
        wish = filter_of(program, names, options.filter)
        if wish:
            command.append("--filter=" + wish)
        print("== " + program, flush=True)
        content = subprocess.run(command, check=False).returncode == 0
        if not os.path.exists(out):
            return False, {"workloads": []}
        with open(out) as f:
            return content, json.load(f)


def measure(options):
    """Everything that was measured, and the programs that failed."""
    counts = {int(n) for n in options.threads.split(",") if n}
    chosen = [(p, names) for p, names in PROGRAMS if wanted(names, options.filter)]
    if not chosen:
        sys.exit("no workload's name begins with %r; there are %s" %
                 (options.filter, ", ".join(n for _, names in PROGRAMS for n in names)))
    merged, failures = {"workloads": []}, []
    for program, names in chosen:
        content, measured = run(program, names, options)
        if not content:
            failures.append(program)
        merged["workloads"] += [w for w in measured.pop("workloads") if not counts or w["threads"] in counts]
        merged.update(measured)
    return merged, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the built programs")
    parser.add_argument("--filter", default="", help="beginnings of workloads' names, as G07,S1")
    parser.add_argument("--threads", default="", help="thread counts of the workloads that have several, as 1,2")
    parser.add_argument("--rounds", type=int, default=0, help="turns of each contestant")
    parser.add_argument("--peers", default="", help="the libraries to compare with, as jax,numpy, or none; default: all")
    parser.add_argument("--peer-python", default="", help="the Python that has them")
    parser.add_argument("--networks", default=NETWORKS if os.path.isdir(NETWORKS) else "", metavar="FOLDER",
                        help="files of tensor networks, for G24 and einsum_paths")
    parser.add_argument("--json", default="", metavar="FILE", help="write the figures here")
    parser.add_argument("--report", nargs="?", const="", metavar="FILE",
                        help="write docs/use/benchmarks: from the figures of FILE, or from this run's")
    options = parser.parse_args()
    if options.report:
        with open(options.report) as f:
            report.write(json.load(f), REPORT)
        return
    merged, failures = measure(options)
    if options.json:
        with open(options.json, "w") as f:
            json.dump(merged, f, indent=1)
            f.write("\n")
    if options.report is not None:
        report.write(merged, REPORT)
    if failures:
        sys.exit("failed: " + ", ".join(failures))


if __name__ == "__main__":
    main()
