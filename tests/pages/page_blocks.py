"""The C++ and Python blocks of README.md, docs and the clients' READMEs.

A block is named after its page and the anchor of its section, clients/cpp/README/pipelines; the second block of a section is
pipelines_2. page_blocks.py FOLDER writes those of C++ to FOLDER/clients/cpp/README/pipelines.inc and the like, which tests
include, and prints their pages."""
import os
import re
import sys
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "deploy", "dev"))
import project_files  # noqa: E402

OTHER_NAMES = {"c++": "cpp", "cc": "cpp", "cxx": "cpp", "C++": "cpp", "py": "python", "python3": "python", "Python": "python"}


class Block:
    def __init__(self, page, name, line, text):
        self.page, self.name, self.line, self.text = page, name, line, text


def anchor_of(heading):
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


def blocks_of(page, lines, language):
    """The blocks of a page in `language`, "cpp" or "python". ValueError for one without an end, or called otherwise."""
    blocks, fence, section, counts = [], None, "top", {}
    for number, line in enumerate(lines, 1):
        if fence is not None:
            if line.strip() == "```":
                if fence[0] == language:
                    counts[section] = counts.get(section, 0) + 1
                    place = section if counts[section] == 1 else f"{section}_{counts[section]}"
                    text = textwrap.dedent("\n".join(lines[fence[1]:number - 1])) + "\n"
                    blocks.append(Block(page, f"{page.removesuffix('.md')}/{place}", fence[1] + 1, text))
                fence = None
        elif line.strip().startswith("```"):
            fence = (line.strip()[3:], number)
            if fence[0] in OTHER_NAMES:
                raise ValueError(f"{page}:{number}: a block of {OTHER_NAMES[fence[0]]} is called so, and is not found by {fence[0]}")
        elif line.startswith("#"):
            section = anchor_of(line.lstrip("#"))
    if fence is not None:
        raise ValueError(f"{page}:{fence[1]}: a block that does not end")
    return blocks


def all_blocks(language):
    pages = [path for path in project_files.list_files() if path.endswith(".md") and path.split("/")[0] in ("README.md", "docs", "clients")]
    return [block for page in pages for block in blocks_of(page, project_files.read_lines(page), language)]


def write(block, folder):
    path = os.path.join(folder, block.name + ".inc")
    text = f'#line {block.line} "{block.page}"\n{block.text}'
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.exists(path) or open(path, encoding="utf-8").read() != text:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    cpp_blocks = all_blocks("cpp")
    for found in cpp_blocks:
        write(found, sys.argv[1])
    print(";".join(sorted({found.page for found in cpp_blocks})), end="")
