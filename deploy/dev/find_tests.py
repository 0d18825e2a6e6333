#!/usr/bin/env python3
"""Finds what ./dev test PATTERN runs, before anything is built: find_tests.py BUILD_FOLDER PATTERN [ctest arguments]

The pattern is a regular expression whose case does not matter. It selects the tests whose ctest names it is found in; where
there is none, the cases of GoogleTest (Suite.Case) and of unittest (file.Class.method). Prints a line each:
    test NAME       a ctest, and the target that builds what it needs
    gtest FILTER    the cases, as GoogleTest filters them; absent where whole tests run
    unittest REGEX  the same for unittest
The ctest arguments limit which tests there are.
"""
import ast
import difflib
import json
import os
import re
import subprocess
import sys

GTEST_CASE = re.compile(r"^(TEST|TEST_F|TEST_P|TYPED_TEST)\(\s*(\w+),\s*(\w+)\s*\)", re.MULTILINE)
# The names of GoogleTest's macros: instances have the name of the instantiation before, of the parameter behind.
SUITE_FILTER = {"TEST": "{}.", "TEST_F": "{}.", "TEST_P": "*/{}.", "TYPED_TEST": "{}/*."}
CASE_FILTER = {"TEST": "{}", "TEST_F": "{}", "TEST_P": "{}/*", "TYPED_TEST": "{}"}


def ctest_names(build, arguments):
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1", *arguments], check=True, capture_output=True, text=True)
    return [test["name"] for test in json.loads(listed.stdout)["tests"]]


def listed_files(build):
    """The kind of cases and the files that declare them, by ctest name."""
    with open(os.path.join(build, "tests.txt"), encoding="utf-8") as file:
        lines = [line.split() for line in file]
    return {name: (kind, files) for name, kind, *files in lines}


def gtest_cases(path):
    with open(path, encoding="utf-8") as file:
        return GTEST_CASE.findall(file.read())


def unittest_cases(path):
    """Names as unittest has them. A class without methods of its own has those that it inherits."""
    module = os.path.basename(path).removesuffix(".py")
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            methods = [member.name for member in node.body if isinstance(member, ast.FunctionDef) and member.name.startswith("test")]
            if methods or any("Test" in ast.unparse(base) for base in node.bases):
                yield f"{module}.{node.name}"
            yield from (f"{module}.{node.name}.{method}" for method in methods)


def gtest_filters(cases, pattern):
    """The cases that match; as a whole suite where its name does, so that the filter stays short."""
    for macro, suite, case in cases:
        of_suite = SUITE_FILTER[macro].format(suite)
        if pattern.search(suite):
            yield of_suite + "*"
        elif pattern.search(f"{suite}.{case}"):
            yield of_suite + CASE_FILTER[macro].format(case)


class Selection:
    def __init__(self):
        self.tests = []
        self.filters = []
        self.has_unittest = False
        self.seen = []  # names that did not match

    def add_cases(self, names, files, pattern):
        for name in names:
            kind, paths = files.get(name, ("", []))
            if kind == "gtest":
                cases = [case for path in paths for case in gtest_cases(path)]
                filters = list(gtest_filters(cases, pattern))
                self.seen += [word for _, suite, case in cases for word in (suite, f"{suite}.{case}")]
                self.filters += filters
                matches = bool(filters)
            elif kind == "unittest":
                cases = [case for path in paths for case in unittest_cases(path)]
                self.seen += [case.split(".", 1)[1] for case in cases]
                matches = any(map(pattern.search, cases))
                self.has_unittest |= matches
            else:
                matches = False
            if matches:
                self.tests.append(name)


def near(word, names):
    by_lower = {name.lower(): name for name in names}
    return [by_lower[lower] for lower in difflib.get_close_matches(word.lower(), by_lower, 5, 0.6)]


def main():
    build, word, *arguments = sys.argv[1:]
    try:
        pattern = re.compile(word, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as error:
        print(f"test: '{word}' is no regular expression: {error}", file=sys.stderr)
        return 2
    names = ctest_names(build, arguments)
    selection = Selection()
    selection.tests = [name for name in names if pattern.search(name)]
    if not selection.tests:
        selection.add_cases(names, listed_files(build), pattern)
    if not selection.tests:
        among = f" among those that '{' '.join(arguments)}' leaves" if arguments else ""
        print(f"test: nothing matches '{word}'{among}: no ctest name, no suite or case of GoogleTest, no case of unittest", file=sys.stderr)
        close = near(word, names + selection.seen)
        if close:
            print(f"test: near it are {', '.join(close)}", file=sys.stderr)
        return 2
    for name in selection.tests:
        print(f"test {name}")
    if selection.filters:
        print("gtest " + ":".join(dict.fromkeys(selection.filters)))
    if selection.has_unittest:
        print(f"unittest {word}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
