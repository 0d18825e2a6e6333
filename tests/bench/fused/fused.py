#!/usr/bin/env python3
"""Runs bench_fused and the peers that this machine has in turns, on the same cores, and compares them.

Checks the results against NumPy first, and that each graph came to one fused kernel. Peers are NumPy and what the Python
of --peer-python can import of torch and jax. Called by tests/bench/run.py.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = os.path.join(os.path.dirname(HERE), "peers")
sys.path.insert(0, PEERS)
import fused_graphs  # noqa: E402
import fused_peer  # noqa: E402

TOLERANCE = {"f64": 1e-10, "f32": 1e-4}


class Process:
    """One contestant's process, which answers a line with a line."""

    def __init__(self, command, cores, environment=None, errors=None):
        pinned = ["taskset", "-c", ",".join(map(str, cores))] + command
        self.process = subprocess.Popen(pinned, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                                        bufsize=1, env=environment)

    def hear(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "the process ended"}

    def ask(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"error": "the process ended"}
        return self.hear()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def failed(answer):
    return isinstance(answer, dict) and "error" in answer


def importable(python, module):
    return subprocess.run([python, "-c", "import " + module], stderr=subprocess.DEVNULL, check=False).returncode == 0


def peers_of(python):
    """Name and Python of each peer that is there."""
    peers = [("numpy", sys.executable)]
    for module, names in (("torch", ["torch", "torch_compile"]), ("jax", ["jax"])):
        peers += [(name, python) for name in names if importable(python, module)]
    return peers


def start_peers(peers, cores):
    threads = str(len(cores))
    environment = dict(os.environ, OMP_NUM_THREADS=threads, OPENBLAS_NUM_THREADS=threads, MKL_NUM_THREADS=threads)
    started = {}
    for name, python in peers:
        process = Process([python, os.path.join(PEERS, "fused_peer.py"), name, "--threads=" + threads], cores, environment,
                          subprocess.DEVNULL)  # libraries chat there; what fails is answered
        if process.hear() == "ready":
            started[name] = process
    return started


def check_results(workload, folder, about):
    """Why the results are not those of NumPy in 64 bits, or None."""
    inputs = {name: array.astype(numpy.float64) for name, array in fused_peer.read_inputs(folder, about["inputs"]).items()}
    with numpy.errstate(all="ignore"):
        wanted = fused_graphs.graph_of(workload)(numpy, **inputs)
    for tensor in about["outputs"]:
        got = numpy.fromfile(os.path.join(folder, "result_%s.bin" % tensor["name"]),
                             dtype=tensor["dtype"].replace("f", "float")).reshape(tensor["shape"][::-1])
        tolerance = TOLERANCE[tensor["dtype"]]
        if not numpy.allclose(got, wanted[tensor["name"]], rtol=tolerance, atol=tolerance, equal_nan=True):
            return "the result %s of %s is not NumPy's" % (tensor["name"], workload)
    return None


def measure(workload, contestants, rounds):
    """Median milliseconds by contestant, which take turns."""
    times = {name: [] for name in contestants}
    for round_ in range(-1, rounds):  # the first one warms up
        for name, (process, command) in contestants.items():
            answer = process.ask(command)
            if failed(answer):
                sys.exit("%s, %s: %s" % (workload, name, answer["error"]))
            if round_ >= 0:
                times[name] += answer
    return {name: statistics.median(t) for name, t in times.items()}


def run_workload(workload, ours, peers, threads, rounds):
    """The row of ./dev bench, and what is wrong with it or None."""
    with tempfile.TemporaryDirectory() as folder:
        about = ours.ask("open %s %s" % (workload, folder))
        if failed(about):
            return None, about["error"]
        with open(os.path.join(folder, "about.json"), "w") as f:
            json.dump(about, f)
        wrong = check_results(workload, folder, about)
        if wrong:
            return None, wrong
        count = 20 if workload.startswith("G01b") else 3
        contestants = {"ours": (ours, "run %s fused %d" % (workload, count)),
                       "unfused": (ours, "run %s unfused %d" % (workload, count))}
        for name, process in peers.items():
            answer = process.ask("open %s %s" % (workload, folder))
            if failed(answer):
                print("  %s cannot run %s: %s" % (name, workload, answer["error"]))
            else:
                contestants[name] = (process, "run %d" % count)
        medians = measure(workload, contestants, rounds)
    floors = ours.ask("floor " + workload)
    limit = max(floors, key=floors.get)
    moved = about["read_bytes"] + about["written_bytes"]
    row = {"workload": workload, "threads": threads, "ours_ms": medians.pop("ours"), "unfused_ms": medians.pop("unfused"),
           "limit_ms": floors[limit], "limit": limit, "bytes": moved, "segments": about["segments"], "peers": medians}
    row["gb_per_s"] = moved / row["ours_ms"] / 1e6
    row["ns_per_element"] = row["ours_ms"] * 1e6 / about["elements"]
    print("%-20s %d %9.3f ms, unfused %9.3f ms (%d kernels), limit %8.3f ms (%s), %6.1f GB/s, %.2f ns an element%s" %
          (workload, threads, row["ours_ms"], row["unfused_ms"], about["unfused_segments"], row["limit_ms"], limit,
           row["gb_per_s"], row["ns_per_element"],
           "".join("; %s %.3f" % item for item in sorted(medians.items()))), flush=True)
    for line in about["explain"][:1]:
        print("    " + line)
    if about["segments"] != 1:
        return row, "%s has %d segments, and is to be one fused kernel" % (workload, about["segments"])
    return row, None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the built programs")
    parser.add_argument("--filter", default="", help="beginning of a workload's name")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--peer-python", default=os.environ.get("TENSORD_PEER_PYTHON", sys.executable),
                        help="the Python that has the peers (default: $TENSORD_PEER_PYTHON, or this one)")
    parser.add_argument("--json", default="", metavar="FILE")
    options = parser.parse_args()

    available = sorted(os.sched_getaffinity(0))
    peers = peers_of(options.peer_python)
    rows, problems = [], []
    for threads in [int(n) for n in options.threads.split(",")]:
        cores = available[:threads]
        if len(cores) < threads:
            print("%d threads: there are %d cores" % (threads, len(available)))
            continue
        ours = Process([os.path.join(options.bin, "bench_fused"), "--threads=%d" % threads], cores)
        started = start_peers(peers, cores)
        for workload in ours.ask("list"):
            if not workload.startswith(options.filter):
                continue
            row, problem = run_workload(workload, ours, started, threads, options.rounds)
            if row:
                rows.append(row)
            if problem:
                problems.append(problem)
        for process in [ours] + list(started.values()):
            process.close()
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"workloads": rows}, f, indent=1)
    if problems:
        sys.exit("\n".join(sorted(set(problems))))


if __name__ == "__main__":
    main()
