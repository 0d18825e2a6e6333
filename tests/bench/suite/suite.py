#!/usr/bin/env python3
"""Runs the graphs of bench_graphs and of the peers in turns on the same cores, and compares them.

Results, ours and the peers', are checked against NumPy in 64 bits first. Peers are what the Python of --peer-python can
import of numpy, scipy, numexpr, torch, jax, onnxruntime, onednn and opt_einsum. Tensor networks are read from the folder of --networks.
Called by tests/bench/run.py.
"""
import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import time

import numpy

import gradients
from networks import networks_in, step_floor_ms
from process import Process, failed

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = os.path.join(os.path.dirname(HERE), "peers")
sys.path.insert(0, PEERS)
import family_graphs  # noqa: E402
import graphs  # noqa: E402
import losses  # noqa: E402
import peer as peer_program  # noqa: E402
import words  # noqa: E402

PEER_NAMES = ["numpy", "scipy", "numexpr", "torch", "torch_compile", "jax", "onnxruntime", "onednn", "opt_einsum", "opt_einsum_torch", "graphblas"]
# Relative to the value and to the largest one. A peer that sums in its own order, or whose functions are coarser, is
# still that peer.
TOLERANCE = {"f64": 1e-10, "c128": 1e-10, "f32": 1e-4, "f16": 1e-3, "bf16": 8e-3, "i32": 0, "i64": 0, "bool": 0}
PEER_TOLERANCE = {"f64": 1e-9, "c128": 1e-9, "f32": 1e-3, "f16": 4e-3, "bf16": 3e-2, "i32": 0, "i64": 0, "bool": 0}
WIDE = {"f16": numpy.float64, "bf16": numpy.float64, "f32": numpy.float64, "f64": numpy.float64, "c64": numpy.complex128,
        "c128": numpy.complex128, "i32": numpy.int32, "i64": numpy.int64, "bool": numpy.bool_}
# The most that a network's run may plan over the bytes alive at once, and the allowance of a small one.
MOST_OVER_ALIVE = 1.15
LITTLE_MEMORY = 4096
# A turn takes about so long, and begins when what the one before has left to do is done.
TURN_MS = 15
# Several processors that have rested are slow at first: on a virtual machine, for some 10 ms.
WARM_MS = 25
REST_S = 0.02


def start_peer(name, python, threads, cores):
    count = str(threads)
    environment = dict(os.environ, OMP_NUM_THREADS=count, OPENBLAS_NUM_THREADS=count, MKL_NUM_THREADS=count,
                       NUMEXPR_MAX_THREADS=count, PYTHONWARNINGS="ignore", JAX_PLATFORMS="cpu",
                       # Freed memory is kept and lies on huge pages: no peer pays for touching it again.
                       GLIBC_TUNABLES="glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:"
                                      "glibc.malloc.trim_threshold=17179869184:glibc.malloc.top_pad=268435456")
    with open(os.devnull, "w") as silence:  # libraries chat there; what fails is answered
        process = Process([python, os.path.join(PEERS, "peer.py"), name, "--threads=" + count], cores, environment, silence)
    return process, process.hear()


class Peers:
    """The processes of the peers at one count of threads. One that ends is started again for the next graph."""

    def __init__(self, names, python, threads, cores):
        self.python, self.threads, self.cores = python, threads, cores
        self.processes, self.versions = {}, {}
        for name in names:
            process, hello = start_peer(name, python, threads, cores)
            if failed(hello):
                print("  no %s: %s" % (name, hello["error"]))
                process.close()
            else:
                self.processes[name], self.versions[name] = process, hello["version"]

    def open(self, name, workload, folder):
        if self.processes[name].has_ended():
            self.processes[name], _ = start_peer(name, self.python, self.threads, self.cores)
        return self.processes[name].ask("open %s %s" % (workload, folder))

    def close(self):
        for process in self.processes.values():
            process.close()


def reference_results(workload, folder, about, network):
    inputs = {}
    for tensor in about["inputs"]:
        array = peer_program.read_inputs(folder, [tensor])[tensor["name"]]
        if tensor["dtype"] == "bf16":
            array = peer_program.widened(array)
        inputs[tensor["name"]] = array.astype(WIDE[tensor["dtype"]])
    if network:
        return {"y": network.contracted([inputs["t%d" % i] for i in range(len(inputs))])}
    with numpy.errstate(all="ignore"):
        return graphs.graph_of(workload)(words.NumPyWords(), **graphs.peer_inputs(workload, inputs))


def differs(got, wanted, tolerance):
    wanted = numpy.asarray(wanted)
    if wanted.dtype == bool:
        return not numpy.array_equal(got.reshape(wanted.shape), wanted)
    largest = float(numpy.max(numpy.abs(wanted), initial=0, where=numpy.isfinite(wanted)))
    return not numpy.allclose(got.reshape(wanted.shape), wanted, rtol=tolerance, atol=tolerance * largest, equal_nan=True)


def wrong_result(workload, about, wanted, read, tolerances):
    if losses.is_loss(workload):
        return gradients.wrong_gradient(workload, about, wanted, read)
    return wrong_result_of_graph(workload, about, wanted, read, tolerances)


def wrong_result_of_graph(workload, about, wanted, read, tolerances):
    """The first wrong result, or None. `read` gives an output's numbers with the axes that NumPy's have, in order."""
    got = {tensor["name"]: read(tensor) for tensor in about["outputs"]}
    tolerance = max(tolerances[tensor["dtype"]] for tensor in about["outputs"])
    got = family_graphs.comparable(workload, {name: x.reshape(numpy.shape(wanted[name])) for name, x in got.items()})
    for name, numbers in family_graphs.comparable(workload, wanted).items():
        if differs(got[name], numbers, tolerance):
            return name
    return None


def wrong_results_of_ours(workload, folder, about, wanted):
    def read(tensor):
        flat = numpy.fromfile(os.path.join(folder, "result_%s.bin" % tensor["name"]), peer_program.DTYPES[tensor["dtype"]])
        flat = peer_program.widened(flat) if tensor["dtype"] == "bf16" else flat
        array = flat.reshape(tensor["shape"][::-1])
        if not family_graphs.is_matrix_work(workload):
            return array
        return family_graphs.as_libraries_have(workload, tensor["name"], array)
    return wrong_result(workload, about, wanted, read, TOLERANCE)


def wrong_results_of_peer(name, workload, folder, about, wanted):
    with open(os.path.join(folder, name + "_result.bin"), "rb") as f:
        def read(tensor):
            return numpy.fromfile(f, peer_program.RESULT_DTYPES[tensor["dtype"]], math.prod(tensor["shape"]))
        return wrong_result(workload, about, wanted, read, PEER_TOLERANCE)


def measure(contestants, threads, rounds):
    """Milliseconds of every run by contestant, which take turns; and why some of them dropped out."""
    counts, times, dropped = {}, {name: [] for name in contestants}, {}
    for round_ in range(-1, rounds):  # the first one warms up and says how many runs make a turn
        for name, (process, command) in contestants.items():
            if name in dropped:
                continue
            time.sleep(REST_S)
            count = counts.get(name, 3)
            if threads > 1 and count > 1:  # until the processors are awake and apart
                process.ask("%s %d" % (command, max(1, round(count * WARM_MS / TURN_MS))))
            answer = process.ask("%s %d" % (command, count))
            if failed(answer):
                dropped[name] = answer["error"]
            elif round_ < 0:
                counts[name] = max(1, min(200, round(TURN_MS / max(1e-6, min(answer)))))
            else:
                times[name] += answer
    return {name: t for name, t in times.items() if name not in dropped}, dropped


def open_peers(workload, peers, folder, about, wanted):
    """The peers that run it, by name; milliseconds of the first run; why the others do not run it."""
    contestants, compile_ms, absent = {}, {}, {}
    for name in peers.processes:
        answer = peers.open(name, workload, folder)
        if failed(answer):
            absent[name] = answer["error"]
            continue
        wrong = wrong_results_of_peer(name, workload, folder, about, wanted)
        if wrong:
            absent[name] = "its result %s is not NumPy's" % wrong
            continue
        contestants[name] = (peers.processes[name], "run")
        compile_ms[name] = answer
    return contestants, compile_ms, absent


def limit_of(floors):
    """The name of what limits it, and how long that takes at least. Computations follow each other; memory runs aside."""
    if "steps" in floors:
        return "steps", floors["steps"]
    compute = floors["fma"] + floors["arithmetic"] + floors["math"]
    if floors["dram"] >= compute:
        return "dram", floors["dram"]
    return max(("fma", "arithmetic", "math"), key=floors.get), compute


def row_of(workload, threads, about, floors, times, compile_ms, absent):
    medians = {name: statistics.median(t) for name, t in times.items()}
    spread = {name: [float(numpy.percentile(t, 10)), float(numpy.percentile(t, 90))] for name, t in times.items()}
    limit, limit_ms = limit_of(floors)
    ours = medians.pop("ours")
    unfused = medians.pop("unfused", None)
    moved = about["read_bytes"] + about["written_bytes"]
    row = {"workload": workload, "threads": threads, "ours_ms": ours, "limit_ms": limit_ms, "limit": limit, "peers": medians,
           "share": limit_ms / ours, "floors_ms": {k: v for k, v in floors.items() if k != "flops"},
           "bytes": moved, "flops": floors["flops"], "gb_per_s": moved / ours / 1e6,
           "ns_per_element": ours * 1e6 / about["elements"], "segments": about["segments"],
           "temporary_bytes": about["temporary_bytes"], "ours_compile_ms": about["compile_ms"],
           "peers_first_run_ms": compile_ms, "spread_ms": spread, "runs": len(times["ours"]), "absent": absent}
    if unfused:
        row["unfused_ms"] = unfused
    return row


def line_of(row):
    peers = "  ".join("%s %.2f" % (name, row["peers"][name] / row["ours_ms"]) for name in PEER_NAMES if name in row["peers"])
    return "%-24s %d %9.3f ms  %4.0f %% of %-10s %s" % (row["workload"], row["threads"], row["ours_ms"], 100 * row["share"],
                                                       row["limit"], peers)


def memory_problem(workload, about):
    if about["planned_bytes"] <= MOST_OVER_ALIVE * about["alive_bytes"] + LITTLE_MEMORY:
        return None
    return "%s plans %d bytes of temporaries and results, %.2f times what is alive at once" % (
        workload, about["planned_bytes"], about["planned_bytes"] / about["alive_bytes"])


def run_workload(workload, ours, peers, threads, rounds, network, machine):
    """The row of ./dev bench, and what is wrong with it or None."""
    with tempfile.TemporaryDirectory() as folder:
        about = ours.ask("open %s %s" % (workload, folder))
        if failed(about):
            return None, "%s: %s" % (workload, about["error"])
        about["network"] = network.for_peers() if network else None
        with open(os.path.join(folder, "about.json"), "w") as f:
            json.dump(about, f)
        if losses.is_loss(workload):
            wanted, wrong = gradients.checked_results(workload, folder, about)
        else:
            wanted = reference_results(workload, folder, about, network)
            wrong = wrong_results_of_ours(workload, folder, about, wanted)
        if wrong:
            return None, "the result %s of %s is not NumPy's" % (wrong, workload)
        contestants = {"ours": (ours, "run %s ours" % workload)}
        if about["is_one_kernel"]:
            contestants["unfused"] = (ours, "run %s unfused" % workload)
        others, compile_ms, absent = open_peers(workload, peers, folder, about, wanted)
        del wanted
        floors = [ours.ask("limit " + workload)]
        times, dropped = measure({**contestants, **others}, threads, rounds)
    if "ours" in dropped:
        return None, "%s: %s" % (workload, dropped["ours"])
    absent.update(dropped)
    # Before and after: what else the machine does only makes them longer.
    floors.append(ours.ask("limit " + workload))
    for answer in floors:
        if failed(answer):
            return None, "%s: %s" % (workload, answer["error"])
    floors = {name: min(answer[name] for answer in floors) for name in floors[0]}
    if network:  # products are counted by step, in the best order that is known
        floors.update(steps=step_floor_ms(network, machine), flops=sum(flops for flops, _ in network.flops_and_bytes()))
    row = row_of(workload, threads, about, floors, times, compile_ms, absent)
    print(line_of(row), flush=True)
    for name, reason in sorted(absent.items()):
        print("    no %s: %s" % (name, reason), flush=True)
    if network:
        print("    memory: %.1f MB planned, %.1f MB alive at once" % (about["planned_bytes"] / 1e6, about["alive_bytes"] / 1e6))
        problem = memory_problem(workload, about)
        if problem:
            return row, problem
    if about["is_one_kernel"] and about["segments"] != 1:
        return row, "%s has %d segments, and is to be one fused kernel" % (workload, about["segments"])
    return row, None


def define_networks(ours, networks):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "network")
        for name, network in networks.items():
            network.write(file)
            answer = ours.ask("network %s %s" % (name, file))
            if failed(answer):
                print("  no %s: %s" % (name, answer["error"]))


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def print_summary(rows):
    for threads in sorted({row["threads"] for row in rows}):
        chosen = [row for row in rows if row["threads"] == threads]
        print("== %d thread%s, %d workloads" % (threads, "" if threads == 1 else "s", len(chosen)))
        for name in PEER_NAMES:
            ratios = {row["workload"]: row["peers"][name] / row["ours_ms"] for row in chosen if name in row["peers"]}
            if not ratios:
                continue
            behind = sorted((ratio, workload) for workload, ratio in ratios.items() if ratio < 1)
            print("%-16s geometric mean %5.2f of %2d; ahead of ours in %d%s" %
                  (name, geometric_mean(list(ratios.values())), len(ratios), len(behind),
                   "".join("\n    %-24s %.2f" % (w, r) for r, w in behind)))


def write_figures(file, rows, machine, versions):
    """After every workload: what a run has measured when somebody ends it is there."""
    if file:
        with open(file, "w") as f:
            json.dump({"workloads": rows, "machine": machine, "versions": versions}, f, indent=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the built programs")
    parser.add_argument("--filter", default="", help="beginnings of workloads' names, as G07,G11_f64")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--peers", default=",".join(PEER_NAMES), help="some of %s, or none" % ",".join(PEER_NAMES))
    parser.add_argument("--peer-python", default=sys.executable, help="the Python that has the peers")
    parser.add_argument("--networks", default="", help="folder of tensor networks, for the workloads G24")
    parser.add_argument("--json", default="", metavar="FILE")
    options = parser.parse_args()

    networks = networks_in(options.networks)
    names = [name for name in options.peers.split(",") if name and name != "none"]
    for name in names:
        if name not in PEER_NAMES:
            sys.exit("no peer is called %r; there are %s" % (name, ", ".join(PEER_NAMES)))
    available = sorted(os.sched_getaffinity(0))
    rows, problems, machine, versions = [], [], [], {}
    for threads in [int(n) for n in (options.threads or "1,2").split(",")]:
        cores = available[:threads]
        if len(cores) < threads:
            print("%d threads: there are %d cores" % (threads, len(available)))
            continue
        ours = Process([os.path.join(options.bin, "bench_graphs"), "--threads=%d" % threads], cores)
        peers = Peers(names, options.peer_python, threads, cores)
        versions.update(peers.versions)
        machine.append(dict(ours.ask("machine"), threads=threads, load=os.getloadavg()[0]))
        print("copies %(copy_gb_per_s).1f GB/s, triad %(triad_gb_per_s).1f GB/s, f32 %(f32_gflops).0f GF/s, f64 "
              "%(f64_gflops).0f GF/s" % machine[-1], flush=True)
        define_networks(ours, networks)
        for workload in ours.ask("list"):
            if not workload.startswith(tuple(options.filter.split(","))):
                continue
            row, problem = run_workload(workload, ours, peers, threads, options.rounds, networks.get(workload),
                                        machine[-1])
            if row:
                rows.append(row)
                write_figures(options.json, rows, machine, versions)
            if problem:
                print("    " + problem)
                problems.append(problem)
        ours.close()
        peers.close()
    print_summary(rows)
    write_figures(options.json, rows, machine, versions)
    if problems:
        sys.exit("\n".join(sorted(set(problems))))


if __name__ == "__main__":
    main()
