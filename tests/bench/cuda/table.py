#!/usr/bin/env python3
"""Prints the table of a GPU: table.py FIGURES [PEER…]. FIGURES is what bench_cuda --json wrote, each PEER what peers.py wrote.

A row is a workload: how long the GPU worked, the rate, its ratio to the rate of negate_f32 (which only copies), the time of a
run, and of each peer how long it took, where it is a chain of small kernels the time of a call. The last column is the
quickest peer's time over ours: above 1 we are quicker.
"""
import json
import sys


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def rate_of(workload):
    seconds = max(workload["device_ms"], 1e-6) / 1e3
    if workload["bytes"]:
        return workload["bytes"] / seconds / 1e9, "GB/s"
    return (workload["flops"] / seconds / 1e12, "TF/s") if workload["flops"] else (None, "")


def rows(figures, peers):
    copies = [rate_of(w)[0] for w in figures["workloads"] if w["workload"] == "negate_f32"]
    yield ["workload", "GPU ms", "rate", "of copy", "run ms"] + [peer["library"] for peer in peers] + ["best / ours"]
    for workload in figures["workloads"]:
        rate, unit = rate_of(workload)
        key = "run_ms" if workload["is_chain"] else "device_ms"
        theirs = [peer["workloads"].get(workload["workload"], {}).get(key) for peer in peers]
        known = [time for time in theirs if time is not None]
        yield [workload["workload"], f"{workload['device_ms']:.4f}", "" if rate is None else f"{rate:.4g} {unit}",
               f"{rate / copies[0]:.2f}" if copies and unit == "GB/s" else "", f"{workload['run_ms']:.4f}",
               *["" if time is None else f"{time:.4f}" for time in theirs],
               f"{min(known) / max(workload[key], 1e-9):.2f}" if known else ""]


def main():
    figures = load(sys.argv[1])
    table = list(rows(figures, [load(path) for path in sys.argv[2:]]))
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    print(f"{figures['device']}: milliseconds, medians")
    for row in table:
        print("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))).rstrip())


if __name__ == "__main__":
    main()
