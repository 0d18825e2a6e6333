#!/usr/bin/env python3
"""Writes the inputs of the golden cases as seeds of the fuzz targets: golden_seeds.py GOLDEN_FOLDER CORPUS_FOLDER."""
import pathlib
import sys


def cases(path):
    """Inputs of one golden file (tests/testlib/golden.h)."""
    current = None
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.startswith("==== "):
            current = []
        elif line == "----\n" and current is not None:
            yield "".join(current)
            current = None
        elif current is not None:
            current.append(line)


def main():
    golden, corpus = map(pathlib.Path, sys.argv[1:])
    for path in sorted(golden.rglob("*.txt")):
        if path.name == "CMakeLists.txt":
            continue
        for number, text in enumerate(cases(path)):
            target = "graph_text_fuzz" if text.startswith(("graph ", "// ")) else "graph_wire_fuzz"
            folder = corpus / target
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{path.parent.name}_{path.stem}_{number}").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
