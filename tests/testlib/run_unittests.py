#!/usr/bin/env python3
"""Runs the unittest cases of files: run_unittests.py FILE…

TENSORD_CASES, a regular expression whose case does not matter, selects cases by their name, file.Class.method.
TENSORD_REPORTS names a folder that gets the cases' seconds, in JSON that is laid out as GoogleTest's.
"""
import json
import os
import pathlib
import re
import sys
import time
import unittest


class TimedResult(unittest.TextTestResult):
    """Keeps the seconds of every case that has ended."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.seconds = {}
        self.started = 0.0

    def startTest(self, test):
        self.started = time.monotonic()
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        self.seconds[test.id()] = time.monotonic() - self.started


def cases_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from cases_of(test)
        else:
            yield test


def load(files):
    loader = unittest.TestLoader()
    for file in files:
        path = pathlib.Path(file).resolve()
        if str(path.parent) not in sys.path:
            sys.path.insert(0, str(path.parent))
        yield from cases_of(loader.loadTestsFromName(path.stem))


def write_report(folder, name, seconds):
    cases = [{"classname": case.rpartition(".")[0], "name": case.rpartition(".")[2], "time": f"{spent:.3f}s"}
             for case, spent in seconds.items()]
    report = {"name": name, "testsuites": [{"name": name, "testsuite": cases}]}
    pathlib.Path(folder, f"{name}-{os.getpid()}.json").write_text(json.dumps(report), encoding="utf-8")


def main():
    files = sys.argv[1:]
    wanted = re.compile(os.environ.get("TENSORD_CASES", ""), re.IGNORECASE)
    # A file that could not be imported is a case too, with the reason; it is never left out.
    cases = [case for case in load(files) if wanted.search(case.id()) or case.id().startswith("unittest.loader.")]
    if not cases:
        print(f"run_unittests: no case of {' '.join(files)} matches '{wanted.pattern}'", file=sys.stderr)
        return 1
    result = unittest.TextTestRunner(verbosity=2, resultclass=TimedResult).run(unittest.TestSuite(cases))
    if "TENSORD_REPORTS" in os.environ:
        write_report(os.environ["TENSORD_REPORTS"], pathlib.Path(files[0]).resolve().parent.name, result.seconds)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
