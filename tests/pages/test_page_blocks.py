"""Every C++ block of a page runs: a test includes it, or it stands word for word in what is built."""
import os
import re
import unittest

import page_blocks
import project_files

FOLDER = os.path.dirname(os.path.abspath(__file__))


def included_blocks():
    names = set()
    for name in os.listdir(FOLDER):
        if name.endswith("_test.cc"):
            with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
                names.update(re.findall(r'^#include "tests/pages/blocks/(.+)\.inc"', file.read(), re.MULTILINE))
    return names


def without_spaces(text):
    return "".join(text.split())


def declarations_of(text):
    """The parts of a block that begin in the first column."""
    return re.split(r"\n(?=[^\s}])", text.rstrip())


class PageBlocksTest(unittest.TestCase):
    def test_every_cpp_block_is_compiled_and_run(self):
        included = included_blocks()
        built = [without_spaces("\n".join(project_files.read_lines(path))) for path in project_files.code_files((".h", ".cc", ".def"))]
        blocks = page_blocks.all_blocks("cpp")
        self.assertEqual(included - {block.name for block in blocks}, set(), "tests include blocks that no page has")
        self.assertGreater(len(included), 4)
        for block in blocks:
            for part in [] if block.name in included else declarations_of(block.text):
                with self.subTest(block=block.name, part=part):
                    self.assertTrue(any(without_spaces(part) in text for text in built),
                                    f"{block.page}:{block.line}: include tests/pages/blocks/{block.name}.inc in a test of tests/pages")

    def test_blocks_are_found(self):
        page = ["# A page", "", "## One, two", "```cpp", "int a;", "```", "1. step", "   ```cpp", "   int b;", "     int c;", "   ```", "```", "no C++", "```"]
        first, second = page_blocks.blocks_of("a/page.md", page, "cpp")
        self.assertEqual((first.name, first.line, first.text), ("a/page/one-two", 5, "int a;\n"))
        self.assertEqual((second.name, second.line, second.text), ("a/page/one-two_2", 9, "int b;\n  int c;\n"))
        with self.assertRaisesRegex(ValueError, "a/page.md:1: a block that does not end"):
            page_blocks.blocks_of("a/page.md", ["```cpp", "int a;"], "cpp")
        with self.assertRaisesRegex(ValueError, "a/page.md:1: a block of cpp is called so"):
            page_blocks.blocks_of("a/page.md", ["```c++", "int a;", "```"], "cpp")


if __name__ == "__main__":
    unittest.main()
