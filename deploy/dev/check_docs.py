#!/usr/bin/env python3
"""Checks the project's pages: links, mentions, columns, the index, the changelog, and the reasons for packages."""
import glob
import os
import re
import sys

from project_files import ROOT, Findings, list_files, read_lines

LINK = re.compile(r"\]\(([^)\s]+)\)")
# A page that code, settings or prose name by its path from the root; a decision also by its number alone.
MENTION = re.compile(r"(?<![\w./-])docs/[\w./-]*")
HEADING = re.compile(r"^#+ (.*)$")
FOLDERS = ("use", "operate", "extend", "why")
VERSION_LINES = 40
COLUMNS = 100


def unfenced(path):
    """The numbered lines of a page outside of its blocks of code."""
    fenced = False
    for number, line in enumerate(read_lines(path), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchors_of(path):
    anchors = set()
    for _, line in unfenced(path):
        heading = HEADING.match(line)
        if heading:
            title = LINK.sub("]", heading.group(1)).lower()
            anchors.add(re.sub(r"[^\w\- ]", "", title).strip().replace(" ", "-"))
    return anchors


def sections_of(path):
    """The line at which each section of the second level begins, and its lines without the empty ones at its end."""
    lines = read_lines(path)
    starts = [index for index, line in enumerate(lines) if line.startswith("## ")]
    for start, end in zip(starts, starts[1:] + [len(lines)]):
        section = lines[start:end]
        while not section[-1]:
            section.pop()
        yield start + 1, section


def check_links(pages, findings):
    anchors = {}
    for path in pages:
        for number, line in unfenced(path):
            for link in LINK.findall(line):
                if re.match(r"[a-z]+:", link):
                    continue
                target, _, anchor = link.partition("#")
                linked = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
                if not os.path.exists(os.path.join(ROOT, linked)):
                    findings.error(path, number, f"{target} does not exist. Correct or remove the link")
                elif anchor and linked.endswith(".md"):
                    if linked not in anchors:
                        anchors[linked] = anchors_of(linked)
                    if anchor not in anchors[linked]:
                        findings.error(path, number, f"{linked} has no heading '#{anchor}'. Correct the link")


def check_columns(pages, findings):
    """Prose is wrapped; rows of tables, headings, code and words without end are not."""
    for path in pages:
        for number, line in unfenced(path):
            if len(line) > COLUMNS and not line.lstrip().startswith(("|", "#")) and " " in line.strip()[:COLUMNS]:
                findings.error(path, number, f"{len(line)} columns, at most {COLUMNS}. Wrap the paragraph")


def check_mentions(paths, findings):
    for path in paths:
        for number, line in enumerate(read_lines(path), 1):
            for mention in MENTION.findall(LINK.sub("", line)):
                page = mention.rstrip(".-")
                if not os.path.exists(os.path.join(ROOT, page)) and not glob.glob(os.path.join(ROOT, page + "-*.md")):
                    findings.error(path, number, f"{page} does not exist. Name the page that is meant")


def check_index(pages, findings):
    indexed = set()
    for index in ("docs/README.md", "docs/why/README.md"):
        for line in read_lines(index):
            indexed.update(os.path.normpath(os.path.join(os.path.dirname(index), link.split("#")[0])) for link in LINK.findall(line))
    numbers = {}
    for path in pages:
        parts = path.split("/")
        if parts[0] != "docs" or path == "docs/README.md":
            continue
        if parts[1] not in FOLDERS or len(parts) < 3:
            findings.error(path, 1, f"pages lie in docs/{{{','.join(FOLDERS)}}}. Move it")
        if path not in indexed:
            findings.error(path, 1, f"docs/{'why/' if parts[1] == 'why' else ''}README.md does not link it. Add its line")
        number = parts[-1].split("-")[0]
        if parts[1] == "why" and numbers.setdefault(number, path) != path:
            findings.error(path, 1, f"has the number of {numbers[number]}. Take the next one")


def check_changelog(findings):
    """A version is read by users, in one look."""
    for number, lines in sections_of("CHANGELOG.md"):
        if len(lines) > VERSION_LINES:
            findings.error("CHANGELOG.md", number, f"{lines[0][3:]} has {len(lines)} lines, at most {VERSION_LINES}. "
                           "Say what users notice; figures go to docs/use/benchmarks/gains.md")


def check_packages(findings):
    described = "\n".join(read_lines("docs/extend/dependencies.md"))
    for number, line in enumerate(read_lines("deploy/dev/packages.txt"), 1):
        fields = line.split()
        if len(fields) < 3 or fields[0].split("/")[0] not in ("build", "runtime"):
            continue
        if not re.search(rf"`{re.escape(fields[1])}`", described):
            findings.error("deploy/dev/packages.txt", number, f"docs/extend/dependencies.md does not name `{fields[1]}`. Say its licence and why")


def main():
    findings = Findings("docs")
    paths = list_files()
    pages = [path for path in paths if path.endswith(".md")]
    check_links(pages, findings)
    check_columns(pages, findings)
    check_mentions(paths, findings)
    check_index(pages, findings)
    check_changelog(findings)
    check_packages(findings)
    return findings.exit_status()


if __name__ == "__main__":
    sys.exit(main())
