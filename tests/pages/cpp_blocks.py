"""The C++ blocks of README.md, docs and the clients' READMEs, as files that tests include.

cpp_blocks.py FOLDER: writes them to FOLDER/clients/cpp/README/pipelines.inc and the like, the page and the anchor of the
section, and prints the pages. A second block of a section is pipelines_2.inc."""
import os
import re
import sys
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "deploy", "dev"))
import project_files  # noqa: E402


class Block:
    def __init__(self, page, name, line, text):
        self.page, self.name, self.line, self.text = page, name, line, text


def anchor_of(heading):
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


def blocks_of(page, lines):
    """The blocks of a page. ValueError for one without an end."""
    blocks, fence, section, counts = [], None, "top", {}
    for number, line in enumerate(lines, 1):
        if fence is not None:
            if line.strip() == "```":
                if fence[0] == "cpp":
                    counts[section] = counts.get(section, 0) + 1
                    place = section if counts[section] == 1 else f"{section}_{counts[section]}"
                    text = textwrap.dedent("\n".join(lines[fence[1]:number - 1])) + "\n"
                    blocks.append(Block(page, f"{page.removesuffix('.md')}/{place}.inc", fence[1] + 1, text))
                fence = None
        elif line.strip().startswith("```"):
            fence = (line.strip()[3:], number)
        elif line.startswith("#"):
            section = anchor_of(line.lstrip("#"))
    if fence is not None:
        raise ValueError(f"{page}:{fence[1]}: a block that does not end")
    return blocks


def all_blocks():
    pages = [path for path in project_files.list_files() if path.endswith(".md") and path.split("/")[0] in ("README.md", "docs", "clients")]
    return [block for page in pages for block in blocks_of(page, project_files.read_lines(page))]


def write(block, folder):
    path = os.path.join(folder, block.name)
    text = f'#line {block.line} "{block.page}"\n{block.text}'
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.exists(path) or open(path, encoding="utf-8").read() != text:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    for found in all_blocks():
        write(found, sys.argv[1])
    print(";".join(sorted({found.page for found in all_blocks()})), end="")
