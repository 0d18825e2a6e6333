#!/usr/bin/env python3
"""Checks that every header compiles alone. Arguments: the number of jobs, and headers (default: all)."""
import concurrent.futures
import os
import subprocess
import sys

from project_files import ROOT, Findings, code_files

# The options of the release preset's targets, as far as a header can tell the difference.
COMPILER = ["g++", "-std=c++20", "-fsyntax-only", "-I.", "-Iclients/cpp/include", "-Ibuild/release", "-isystem", "build/release/proto"]


def compile_alone(path):
    result = subprocess.run(COMPILER + ["-x", "c++", "-"], input=f'#include "{path}"\n', cwd=ROOT, capture_output=True, text=True)
    return path, result.returncode, result.stderr


def main():
    findings = Findings("headers")
    headers = sys.argv[2:] or [path for path in code_files((".h",)) if not path.endswith("-inl.h")]
    if not os.path.exists("/usr/local/cuda/include/cuda_runtime.h"):
        headers = [path for path in headers if not path.startswith("backends/cuda/")]
    with concurrent.futures.ThreadPoolExecutor(int(sys.argv[1]) if len(sys.argv) > 1 else 1) as pool:
        for path, status, errors in pool.map(compile_alone, headers):
            if status != 0:
                first = next((line for line in errors.splitlines() if "error:" in line), errors.strip())
                findings.error(path, 1, f"does not compile alone: {first} Include what it uses")
    return findings.exit_status()


if __name__ == "__main__":
    sys.exit(main())
