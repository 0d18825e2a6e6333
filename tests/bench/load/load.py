#!/usr/bin/env python3
"""The server under load, made by `tensordctl bench` on the same machine: calls a second by count of clients, four times
as much as it can do, tiny graphs beside a heavy one, and the soak. TENSORD_LOAD_SECONDS is the time of each (default
10; a release takes 60, and 1800 for the soak). Called by tests/bench/run.py.

Exit status 1 if a limit is missed.
"""
import argparse
import contextlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "python"))
from server_process import ServerProcess  # noqa: E402

SECONDS = float(os.environ.get("TENSORD_LOAD_SECONDS", "10"))
# Alone and beside the heavy graph, in turns.
TURNS = 5
# At the peak and past it, in turns, each so long: a shared machine changes its speed within seconds, by more than is to
# be measured. 120 of these tell the ratio within .01, 60 of a second within .02.
OVERLOAD_TURN_SECONDS = 0.5
# Some milliseconds of one core, and some ten.
ONE_CORE = "busy:1000"
HEAVY = "busy:4000"

OVERLOAD = 4.0
PEAK_CALLS_A_PROCESSOR = 4
QUEUE_LENGTH = 1024  # as it comes
SHORT_QUEUE_LENGTH = 128  # which is full soon after a turn begins
CALLS_A_CONNECTION = 64  # fewer than a connection may have at once
LEAST_GOODPUT = 0.9
LARGEST_REFUSAL_MS = 5.0
LARGEST_P99_RATIO = 3.0


@contextlib.contextmanager
def on(processors):
    """Processes that are started here run on these."""
    all_of_them = os.sched_getaffinity(0)
    os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_of_them)


class Load:
    """A server of its own, and the command that calls it. `apart`: each on a half of the processors, so that what the
    command takes is not taken from the server."""

    def __init__(self, binaries, apart=False, queue_length=QUEUE_LENGTH):
        self.binaries = binaries
        self.queue_length = queue_length
        os.environ["TENSORD_BINARY"] = os.path.join(binaries, "tensord")
        self.tensordctl = os.path.join(binaries, "tensordctl")
        processors = sorted(os.sched_getaffinity(0))
        half = len(processors) // 2
        if apart and half == 0:
            sys.exit("load: needs a processor for the server and one for its clients")
        self.of_clients = processors[half:] if apart else processors
        self.processors_of_server = half if apart else len(processors)
        with on(processors[:half] if apart else processors):
            self.server = ServerProcess("--log-level=warning", f"--set=cpu.queue_length={queue_length}")

    def start(self, *words):
        with on(self.of_clients):
            return subprocess.Popen([self.tensordctl, "bench", f"--target={self.server.target}", "--json", *words],
                                    stdout=subprocess.PIPE, text=True)

    def run(self, *words):
        """The runs that the command reports."""
        out, _ = self.start(*words).communicate()
        runs = json.loads(out).get("runs")
        if not runs:
            sys.exit(f"load: bench {' '.join(words)} failed")
        return runs

    def peak_mib(self):
        status = pathlib.Path(f"/proc/{self.server.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def row(name, ours_ms, **figures):
    return {"workload": name, "threads": os.cpu_count(), "ours_ms": ours_ms, "peers": {}, **figures}


def clients(load):
    rows = []
    for run in load.run("--concurrency=1,16,64", f"--duration={SECONDS / 3:g}s"):
        count = int(run["concurrency"])
        rows.append(row(f"load_clients_{count}", run["latency_ms"]["p50"], p99_ms=run["latency_ms"]["p99"],
                        calls_per_second=run["goodput"], client_cores=run["client_cores"]))
        print("%-20s %9.0f calls/s   p50 %8.3f ms   p99 %8.3f ms" % (rows[-1]["workload"], run["goodput"],
                                                                   run["latency_ms"]["p50"], run["latency_ms"]["p99"]))
    return rows, True


def peak(load, seconds, warmup=1.0):
    # As many calls as keep its processors busy while answers are under way. To look for the best number would take the
    # luckiest of some short runs for it.
    run, = load.run(f"--workload={ONE_CORE}", f"--duration={seconds:g}s", f"--warmup={warmup:g}s",
                    "--concurrency=%d" % (PEAK_CALLS_A_PROCESSOR * load.processors_of_server))
    return run["goodput"]


def until_refused(load, capacity):
    # Nothing is refused before the queue is full.
    return 1.5 * load.queue_length / ((OVERLOAD - 1) * capacity)


def overloaded(load, capacity, seconds):
    run, = load.run(f"--workload={ONE_CORE}", f"--rate={OVERLOAD * capacity:g}", f"--duration={seconds:g}s",
                    "--connections=%d" % -(-load.queue_length // CALLS_A_CONNECTION),
                    f"--warmup={until_refused(load, capacity):g}s")
    return run


def overload(load):
    # Goodput, each turn beside what was possible just before and just after it, all after as much of a warm-up.
    peak(load, 1)  # so that it is compiled
    peaks, runs = [peak(load, OVERLOAD_TURN_SECONDS)], []
    for _ in range(max(2, round(SECONDS / OVERLOAD_TURN_SECONDS))):
        capacity = peaks[-1]
        runs.append(overloaded(load, capacity, OVERLOAD_TURN_SECONDS))
        peaks.append(peak(load, OVERLOAD_TURN_SECONDS, until_refused(load, capacity)))
    ratios = [run["goodput"] / statistics.mean(around) for run, around in zip(runs, zip(peaks, peaks[1:]))]
    ratio = statistics.median(ratios)
    # Refusals and memory, without a pause and with the queue that a server comes with.
    long = Load(load.binaries, apart=True)
    try:
        peak(long, 1)
        run = overloaded(long, peak(long, 1), SECONDS)
        memory = long.peak_mib()
    finally:
        long.server.stop()
    refusals = run["refusals_ms"]
    quarters = statistics.quantiles(ratios, n=4)
    print("%-20s goodput %.3f of the peak, half of %d turns from %.2f to %.2f (limit %.1f), peak %.0f/s; %d refused in "
          "p50 %.3f ms, p99 %.3f ms (limit %.0f), most memory %.0f MiB" %
          ("load_overload", ratio, len(ratios), quarters[0], quarters[2], LEAST_GOODPUT, statistics.median(peaks),
           run["refused"], refusals["p50"], refusals["p99"], LARGEST_REFUSAL_MS, memory))
    # If no call was refused, the time of a refusal is unknown.
    refused = all(turn["refused"] for turn in runs) and run["refused"] > 0
    met = ratio >= LEAST_GOODPUT and refused and refusals["p99"] <= LARGEST_REFUSAL_MS
    return [row("load_overload", run["latency_ms"]["p50"], goodput_ratio=ratio, refused=run["refused"],
                refusal_p99_ms=refusals["p99"], peak_mib=memory)], met


def beside_heavy(load):
    turn = SECONDS / (2 * TURNS)
    tiny = ["--concurrency=1", f"--duration={turn:g}s", "--warmup=500ms"]
    load.run(f"--workload={HEAVY}", "--duration=100ms")  # so that it is compiled
    alone, beside = [], []
    for _ in range(TURNS):
        alone.append(load.run(*tiny)[0]["latency_ms"])
        heavy = load.start(f"--workload={HEAVY}", "--duration=1h", "--warmup=0s")
        try:
            beside.append(load.run(*tiny)[0]["latency_ms"])
            heavy.send_signal(signal.SIGINT)
            out, _ = heavy.communicate()
        finally:
            heavy.kill()
            heavy.wait()
        if json.loads(out)["runs"][0]["ok"] == 0:
            sys.exit("load: no heavy graph ran beside the tiny ones")
    ratio = statistics.median(b["p99"] / a["p99"] for a, b in zip(alone, beside))
    p99 = [statistics.median(t["p99"] for t in times) for times in (alone, beside)]
    print("%-20s p99 of tiny graphs %.3f ms alone, %.3f ms beside a heavy one: %.2f times (limit %.0f)" %
          ("load_beside_heavy", *p99, ratio, LARGEST_P99_RATIO))
    return [row("load_beside_heavy", p99[1], alone_ms=p99[0], ratio=ratio)], ratio <= LARGEST_P99_RATIO


def soak(load):
    environment = {**os.environ, "TENSORDCTL_BINARY": load.tensordctl, "TENSORD_SOAK_SECONDS": f"{SECONDS:g}"}
    script = ROOT / "tests" / "e2e" / "load" / "soak_test.py"
    done = subprocess.run([sys.executable, str(script)], env=environment, check=False)
    print("%-20s %s" % ("load_soak", "nothing grew" if done.returncode == 0 else "something grew"))
    return [row("load_soak", SECONDS * 1e3)], done.returncode == 0


WORKLOADS = {"load_clients": clients, "load_overload": overload, "load_beside_heavy": beside_heavy, "load_soak": soak}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the built programs")
    parser.add_argument("--filter", default="", help="beginning of the workloads' names")
    parser.add_argument("--json", default="", metavar="FILE", help="write the figures here")
    options = parser.parse_args()
    rows, missed = [], []
    for name, measure in WORKLOADS.items():
        if not name.startswith(options.filter):
            continue
        of_overload = {"apart": True, "queue_length": SHORT_QUEUE_LENGTH} if measure is overload else {}
        load = Load(os.path.abspath(options.bin), **of_overload)
        try:
            measured, met = measure(load)
        finally:
            load.server.stop()
        rows += measured
        missed += [] if met else [name]
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"workloads": rows}, f, indent=1)
    if missed:
        sys.exit("load: over the limit: " + ", ".join(missed))


if __name__ == "__main__":
    main()
