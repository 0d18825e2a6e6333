#!/usr/bin/env python3
"""Prints the five slowest cases of a run: slowest_tests.py BUILD_FOLDER REPORTS JUNIT

REPORTS is a folder of reports by GoogleTest and tests/testlib/run_unittests.py, JUNIT the report of ctest, which has the
tests without cases. Fails where no case ran, which GoogleTest takes for success.
"""
import glob
import json
import os
import sys
import xml.etree.ElementTree

SHOWN = 5


def reported_cases(folder):
    for path in glob.glob(os.path.join(folder, "*.json")):
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        for suite in report["testsuites"]:
            for case in suite["testsuite"]:
                yield float(case["time"].rstrip("s")), f"{case['classname']}.{case['name']}"


def tests_without_cases(build, junit):
    with open(os.path.join(build, "tests.txt"), encoding="utf-8") as file:
        with_cases = {line.split()[0] for line in file}
    for case in xml.etree.ElementTree.parse(junit).iter("testcase"):
        if case.get("name") not in with_cases:
            yield float(case.get("time")), case.get("name")


def main():
    build, reports, junit = sys.argv[1:]
    ran = sorted([*reported_cases(reports), *tests_without_cases(build, junit)], reverse=True)
    if not ran:
        print("test: no case ran", file=sys.stderr)
        return 1
    print(f"== {len(ran)} cases ran; the slowest:" if len(ran) > 1 else "== 1 case ran:")
    for seconds, name in ran[:SHOWN]:
        print(f"{seconds:9.3f} s  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
