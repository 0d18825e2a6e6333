#!/usr/bin/env python3
"""Prints why tests failed, a few lines of each: failed_tests.py BUILD_FOLDER…

A record of the whole output is long, and who keeps only its end would not see why. Reads the log that ctest leaves in
each folder.
"""
import pathlib
import re
import sys

BEGIN = re.compile(r"^\d+/\d+ Test: (\S+)$")
RESULT = re.compile(r"^Test (Passed|Failed|timed out)", re.IGNORECASE)
# A line that tells of a failure, of GoogleTest, unittest or a sanitizer, and how many lines behind it belong to it.
TELLING = [
    (re.compile(r"^\S+:\d+: Failure$"), 8),
    (re.compile(r"^\[  FAILED  \] \S+\.\S+( \(\d+ ms\)|, where .*)$"), 0),
    (re.compile(r"^(ERROR|FAIL): "), 0),
    (re.compile(r"^(\w+\.)*\w*(Error|Exception)\b"), 2),
    (re.compile(r"(WARNING: ThreadSanitizer|ERROR: (Address|Leak)Sanitizer|runtime error:)"), 12),
    (re.compile(r"^SUMMARY: "), 0),
]
SHOWN = 60


def tests_of(log):
    """Yields the name and the lines of each test that did not pass."""
    name, lines = None, []
    for line in log.splitlines():
        begin = BEGIN.match(line)
        if begin:
            name, lines = begin.group(1), []
        elif name is not None and RESULT.match(line):
            if not line.startswith("Test Passed"):
                yield name, [*lines, line]
            name = None
        else:
            lines.append(line)
    if name is not None:
        yield name, [*lines, "the test did not end"]


def telling_lines(lines):
    wanted = 0
    for line in lines:
        behind = max((count + 1 for pattern, count in TELLING if pattern.search(line)), default=0)
        wanted = max(wanted - 1, behind)
        if wanted > 0:
            yield line[:200]


def main():
    for folder in sys.argv[1:]:
        path = pathlib.Path(folder) / "Testing/Temporary/LastTest.log"
        if not path.exists():
            continue
        for name, lines in tests_of(path.read_text(encoding="utf-8", errors="replace")):
            print(f"== {folder}: {name} failed ({lines[-1].rstrip('.')})")
            shown = list(telling_lines(lines)) or lines[-SHOWN // 4 :]
            print("\n".join(shown[:SHOWN]))
            if len(shown) > SHOWN:
                print(f"… and {len(shown) - SHOWN} more lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
