#!/usr/bin/env python3
"""Tells whether two runs of bench_cuda gave the same results: same_bits.py FIGURES OTHER. Fails where a workload has other bits,
or where one run lacks it."""
import json
import sys


def digests(path):
    with open(path, encoding="utf-8") as file:
        return {workload["workload"]: workload["digest"] for workload in json.load(file)["workloads"]}


def main():
    first, other = (digests(path) for path in sys.argv[1:])
    differing = sorted(name for name in first.keys() | other.keys() if first.get(name) != other.get(name))
    print(f"{len(first) - len(differing)} of {len(first)} workloads have the same bits in both processes")
    if differing or not first:
        sys.exit("other bits: " + ", ".join(differing))


if __name__ == "__main__":
    main()
