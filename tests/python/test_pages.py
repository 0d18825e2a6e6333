"""The Python blocks of README.md, docs and the clients' READMEs: each runs in the surroundings that its page leaves out.

Needs TENSORD_BINARY, the path of the tensord binary; skipped without.
"""

import contextlib
import io
import math
import os
import sys
import unittest
import unittest.mock

import numpy as np

import checkout
from shared_memory_test_case import SharedMemoryTestCase
import tensord as td

sys.path.insert(0, str(checkout.REPOSITORY / "tests" / "pages"))
import page_blocks  # noqa: E402
import project_files  # noqa: E402

PYTHON_PAGE = "clients/python/README.md"


def section_of(block):
    return block.name.rpartition("/")[2]


class Pages(SharedMemoryTestCase):
    """Has a test for each block."""

    region_bytes = 64 << 20

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.blocks = {(block.page, section_of(block)): block for block in page_blocks.all_blocks("python")}

    def setUp(self):
        super().setUp()
        connected = td.connect(self.server.target)  # the default of the blocks that make no client
        self.addCleanup(connected.close)

    def run_block(self, page, section, **surroundings):
        """Run a block as a reader of its page does: the names that it leaves behind, and the text that it prints."""
        block = self.blocks[page, section]
        names, printed = {"np": np, "td": td, "math": math, **surroundings}, io.StringIO()
        code = compile("\n" * (block.line - 1) + block.text, block.page, "exec")
        with unittest.mock.patch.dict(os.environ, {"TENSORD_TARGET": self.server.target}):
            with contextlib.redirect_stdout(printed):
                exec(code, names)
        return names, printed.getvalue()

    def test_front_page(self):
        names, _ = self.run_block("README.md", "from-python")
        np.testing.assert_array_equal(names["y"], np.full((1000, 8), np.tanh(np.float32(64))))

    def test_first_example(self):
        names, printed = self.run_block(PYTHON_PAGE, "tensord-for-python")
        self.assertIn("source='memory'", printed)
        np.testing.assert_array_equal(names["y"], np.full((1000, 8), np.tanh(64.0)))

    def test_indices(self):
        digits, rows, gradients = np.array([3, 1, 3]), np.array([0, 2, 0]), np.ones((3, 2))

        def traced(table, x):
            results = []
            for line in self.blocks[PYTHON_PAGE, "indices"].text.splitlines():
                names = {"np": np, "td": td, "digits": digits, "table": table, "rows": rows, "rate": 0.5, "gradients": gradients, "x": x}
                statement = line if "=" in line.split("(")[0] else "result = " + line
                exec(statement, names)
                results.append(names.get("result", names.get("counts")))
            return results

        counts, table, x = td.evaluate(traced, np.zeros((3, 2)), np.ones((2, 2)), client=self.client)
        np.testing.assert_array_equal(counts, [0, 1, 0, 2, 0, 0, 0, 0, 0, 0])
        np.testing.assert_array_equal(table, [[-1, -1], [0, 0], [-0.5, -0.5]])
        np.testing.assert_array_equal(x, [[0, 1], [0, 0]])

    def test_shortest_paths(self):
        weights = np.full((4, 4), np.inf)
        weights[np.arange(4), np.arange(4)] = 0
        weights[np.arange(3), np.arange(1, 4)] = [1, 2, 3]
        names, _ = self.run_block(PYTHON_PAGE, "functions", weights=weights)
        np.testing.assert_array_equal(names["weights"][0], [0, 1, 3, 6])

    def test_einsum_path(self):
        names, _ = self.run_block(PYTHON_PAGE, "functions_2")
        self.assertEqual(names["path"][0], "einsum_path")
        self.assertIn("Optimized", names["report"])
        arrays = [np.ones(spec.shape) for spec in names["specs"]]
        np.testing.assert_array_equal(names["program"](*arrays), np.full((1000, 5), 60.0))

    def test_state(self):
        halve = td.compile(lambda x: ((x + 1) / 2, np.max(np.abs(1 - x))), td.spec((512, 512)), client=self.client)
        names, _ = self.run_block(PYTHON_PAGE, "state-that-stays-on-the-server", client=self.client, step=halve)
        np.testing.assert_allclose(names["result"], np.ones((512, 512)), atol=1e-9)

    def test_pipeline(self):
        count = td.compile(lambda x: (x + 1, x), td.spec(2), client=self.client)
        with self.client.session() as session:
            surroundings = {"session": session, "state": session.put(np.zeros(2)), "step": count}
            _, printed = self.run_block(PYTHON_PAGE, "state-that-stays-on-the-server_2", **surroundings)
        self.assertEqual(printed, "[99. 99.]\n")

    def test_derivatives(self):
        for_ten = {"weights": {"in": np.ones((4, 3)), "out": np.ones(3)}, "x": np.ones((10, 4)), "y": np.ones(10)}
        names, _ = self.run_block(PYTHON_PAGE, "derivatives", **for_ten)
        self.assertEqual({name: slope.shape for name, slope in names["slopes"].items()}, {"in": (4, 3), "out": (3,)})
        self.run_block("docs/use/derivatives.md", "in-python")
        self.run_block("docs/use/derivatives.md", "in-python_2")
        self.run_block("docs/use/derivatives.md", "memory")
        self.run_block("docs/use/derivatives.md", "what-the-derivative-is")

    def test_shared_memory(self):
        program = td.compile(lambda x: x * 2, td.spec((4096, 4096), "float32"), client=self.client)
        names, _ = self.run_block("docs/use/shared-memory.md", "shared-memory", program=program)
        names["client"].close()
        self.assertEqual(names["y"].shape, (4096, 4096))


class EveryBlock(unittest.TestCase):
    def test_runs_or_stands_in_the_code(self):
        folder = checkout.REPOSITORY / "tests" / "python"
        tests = "".join(path.read_text() for path in folder.glob("test_*.py"))
        code = ["".join("".join(project_files.read_lines(path)).split()) for path in project_files.code_files([".py"])]
        for block in page_blocks.all_blocks("python"):
            page = "PYTHON_PAGE" if block.page == PYTHON_PAGE else f'"{block.page}"'
            call = f'{page}, "{section_of(block)}"'
            if call not in tests and not any("".join(block.text.split()) in text for text in code):
                self.fail(f"{block.page}:{block.line}: no test of tests/python runs {call}")


if __name__ == "__main__":
    unittest.main()
