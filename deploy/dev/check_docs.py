#!/usr/bin/env python3
"""Checks that links between the project's pages lead somewhere and that every package has its reason."""
import os
import re
import sys

from project_files import ROOT, Findings, list_files, read_lines

LINK = re.compile(r"\]\(([^)\s]+)\)")


def check_links(findings):
    for path in list_files():
        if not path.endswith(".md"):
            continue
        fenced = False
        for number, line in enumerate(read_lines(path), 1):
            if line.startswith("```"):
                fenced = not fenced
            if fenced:
                continue
            for target in LINK.findall(line):
                target = target.split("#")[0]
                if not target or re.match(r"[a-z]+:", target):
                    continue
                if not os.path.exists(os.path.join(ROOT, os.path.dirname(path), target)):
                    findings.error(path, number, f"{target} does not exist. Correct or remove the link")


def check_packages(findings):
    described = "\n".join(read_lines("docs/dependencies.md"))
    for number, line in enumerate(read_lines("deploy/dev/packages.txt"), 1):
        fields = line.split()
        if len(fields) < 3 or fields[0].split("/")[0] not in ("build", "runtime"):
            continue
        if not re.search(rf"`{re.escape(fields[1])}`", described):
            findings.error("deploy/dev/packages.txt", number, f"docs/dependencies.md does not name `{fields[1]}`. Say its licence and why")


def main():
    findings = Findings("docs")
    check_links(findings)
    check_packages(findings)
    return findings.exit_status()


if __name__ == "__main__":
    sys.exit(main())
