"""The client against a real server: every traced function computes what NumPy computes, and failures say what is wrong.

Needs TENSORD_BINARY, the path of the tensord binary; skipped without.
"""

import os
import re
import subprocess
import sys
import threading
import unittest

import numpy as np
from google.protobuf import json_format

import checkout
from all_cases import CASES
from function_cases import check_equal
import random_keys
from server_process import ServerProcess
from server_test import ServerTest
import tensord as td
from tensord import contract

EXAMPLES = checkout.REPOSITORY / "clients" / "examples" / "python"


def operations_of(client):
    """Names of the operations that the server computes: the contract's node kinds and the families' messages."""
    info = client.server_info(capabilities=True)
    return {"unary", "binary", *(capability.op for capability in info.capabilities), *info.families}


def operations_in(graph):
    return {
        node.extension.op.type_url.rpartition("/")[2] if node.HasField("extension") else node.WhichOneof("op")
        for node in graph.nodes
    }


class Functions(ServerTest):
    def test_results_are_those_of_numpy(self):
        known = operations_of(self.client)
        computed = 0
        for case in CASES:
            with self.subTest(case.name):
                needed = operations_in(td.make_graph(case.traced, *case.arguments).graph)
                if needed <= known:
                    actual = td.evaluate(case.traced, *case.arguments, client=self.client)
                    check_equal(self, case, actual, case.expected())
                    computed += 1
                else:  # what a server lacks it refuses by name
                    with self.assertRaises(td.Unimplemented) as context:
                        td.evaluate(case.traced, *case.arguments, client=self.client)
                    self.assertTrue(context.exception.reason and context.exception.node)
        self.assertGreater(computed, 300)

    def test_random_keys(self):
        known = operations_of(self.client)
        for key, x, case in random_keys.cases(7, 250):
            if case is IndexError or not operations_in(td.make_graph(case.traced, *case.arguments).graph) <= known:
                continue
            with self.subTest(case.name):
                check_equal(self, case, td.evaluate(case.traced, *case.arguments, client=self.client), case.expected())

    def test_symbolic_sizes(self):
        def function(x, y):
            centered = x - x.mean(axis=0)
            return centered[1:] @ y, np.concatenate([x, x[::-1]]), x.reshape(-1), td.softmax(x, 0), np.pad(x, 1)

        program = self.compile(function, td.spec(("n", 3)), td.spec((3, "m")))
        for n, m in ((1, 1), (2, 5), (300, 7)):
            random = np.random.default_rng(n)
            x, y = random.uniform(size=(n, 3)), random.uniform(size=(3, m))
            grown = np.exp(x)
            expected = (
                (x - x.mean(axis=0))[1:] @ y,
                np.concatenate([x, x[::-1]]),
                x.reshape(-1),
                grown / grown.sum(0),
                np.pad(x, 1),
            )
            for one, other in zip(program(x, y), expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)
        self.assertEqual(program.compile_count, 1)

    def test_symbolic_windows(self):
        keys = [np.s_[1:], np.s_[:-2, 1:], np.s_[1:-1, 0], np.s_[::-1], np.s_[:, ::-1], np.s_[None, :, 2]]
        if "gather_dynamic_slice_sizes" in operations_of(self.client):
            keys += [np.s_[2], np.s_[-1], np.s_[:3], np.s_[-3:-1, 1:], np.s_[:, ::2]]
        program = self.compile(lambda x: [x[key] for key in keys], td.spec(("n", 4)))
        for n in (3, 9):
            x = np.random.default_rng(n).uniform(size=(n, 4))
            for key, one in zip(keys, program(x), strict=True):
                np.testing.assert_array_equal(one, x[key], str(key))

    def test_symbolic_rolls(self):
        if "gather_dynamic_slice_sizes" not in operations_of(self.client):
            self.skipTest("the server takes no windows of symbolic size")

        def functions(p):
            yield from (p.fft.fftshift, p.fft.ifftshift, lambda x: p.roll(x, x.shape[0] * 3 - 2))
            yield lambda x: p.roll(x, 2 - x.shape[0] // 2)
            yield from (lambda x, shift=shift: p.roll(x, shift) for shift in (0, 1, -1, 7, -7, -16))

        program = self.compile(lambda x: [function(x) for function in functions(td)], td.spec("n"))
        for n in (0, 1, 2, 3, 5, 8):
            x = np.arange(float(n))
            for place, (function, one) in enumerate(zip(functions(np), program(x), strict=True)):
                np.testing.assert_array_equal(one, function(x), f"{place} of {n}")

        def matrices(p, x):
            return p.fft.fftshift(x), p.fft.ifftshift(x, 1), p.roll(x, 5), p.roll(x, (1, 2), 0), p.roll(x, 1, (0, 1))

        x = np.arange(15.0).reshape(3, 5)
        program = self.compile(lambda x: matrices(td, x), td.spec(("n", "m")))
        for one, other in zip(program(x), matrices(np, x), strict=True):
            np.testing.assert_array_equal(one, other)
        program = self.compile(lambda x, y: td.roll(x, y.shape[0], 1), td.spec((3, 5)), td.spec("n"))
        for n in (0, 1, 5, 7):
            np.testing.assert_array_equal(program(x, np.zeros(n)), np.roll(x, n, 1))
        program = self.compile(lambda x, n: td.fft.fftshift(x[:n]), td.spec(5), td.spec((), "int64"))
        for n in range(6):
            np.testing.assert_array_equal(program(np.arange(5.0), np.int64(n)), np.fft.fftshift(np.arange(5.0)[:n]))

    def test_windows_that_do_not_fit_are_errors(self):
        if not {"gather", "gather_dynamic_slice_sizes"} <= operations_of(self.client):
            self.skipTest("the server does not gather")
        for key in (np.s_[2], np.s_[-3], np.s_[1:3], np.s_[:3], np.s_[-3:-1], np.s_[3:]):
            for function in (lambda x: x[key], lambda x: x.at[key].set(0.0)):
                program = self.compile(function, td.spec(("n", 4)))
                program(np.ones((4, 4)))
                with self.subTest(str(key)), self.assertRaises(td.InvalidArgument):
                    program(np.ones((1, 4)))

    def test_least_squares_of_symbolic_sizes(self):
        program = self.compile(td.linalg.lstsq, td.spec(("m", "n"), "float32"), td.spec("m"))
        for rows, columns in ((5, 2), (2, 5), (3, 3)):
            random = np.random.default_rng(rows)
            a, b = random.uniform(size=(rows, columns)).astype(np.float32), random.uniform(size=rows)
            expected = np.linalg.lstsq(a, b, rcond=None)
            x, _, rank, values = program(a, b)
            np.testing.assert_allclose(x, expected[0], rtol=1e-9)
            self.assertEqual((rank, values.dtype), (expected[2], np.float64))
            np.testing.assert_allclose(values, expected[3], rtol=1e-9)

    def test_matrices_without_an_answer_are_errors(self):
        singular = np.zeros((3, 3))
        for reason, function, x in (
            ("MATRIX_SINGULAR", td.linalg.inv, singular),
            ("MATRIX_SINGULAR", lambda a: td.linalg.solve(a, a), singular),
            ("MATRIX_NOT_POSITIVE_DEFINITE", td.linalg.cholesky, -np.eye(3)),
        ):
            with self.subTest(reason), self.assertRaises(td.linalg.LinAlgError) as context:
                td.evaluate(function, x, client=self.client)
            self.assertEqual(context.exception.reason, reason)
            self.assertIsInstance(context.exception, td.FailedPrecondition)
            self.assertIsInstance(context.exception, np.linalg.LinAlgError)
        with self.assertRaises(td.Error) as context:
            self.client.execute("0" * 64, [])
        self.assertNotIsInstance(context.exception, td.linalg.LinAlgError)

    def test_large_tensors_cross_whole(self):
        x = np.random.default_rng(3).standard_normal((1024, 2048))
        np.testing.assert_array_equal(td.evaluate(lambda x: x.T, x, client=self.client), x.T)
        np.testing.assert_array_equal(td.evaluate(lambda x: -x, x[::2, ::3], client=self.client), -x[::2, ::3])

    def test_bfloat16(self):
        program = self.compile(lambda x: (x.astype("float32") * 2, (x * 2).astype("float32")), td.spec(4, "bfloat16"))
        values = np.array([1.0, -2.5, 0.5, np.inf], np.float32)
        bits = (values.view(np.uint32) >> 16).astype(np.uint16).view(td.bfloat16.numpy)
        for result in program(bits):
            np.testing.assert_array_equal(result, values * 2)


class QuantumStates(ServerTest):
    """Tensors of 32 axes, as many qubits, of which most are fixed: within the limits that servers have by default."""

    def test_every_kind_of_function_takes_32_axes(self):
        random = np.random.default_rng(32)
        axes = list(range(32))
        order = [int(axis) for axis in random.permutation(32)]
        functions = {
            "sum": lambda m, x: m.sum(m.transpose(x + 1, order), axis=(0, 5, 31)),
            "max": lambda m, x: m.max(x, axis=tuple(axes[::2])),
            "concatenate": lambda m, x: m.concatenate([x, m.flip(x, (0, 31))], axis=31),
            "index": lambda m, x: x[0, ..., 0],
            "take": lambda m, x: m.take(x, np.array([0, 0]), axis=0),
            "repeat": lambda m, x: m.repeat(x, 3, axis=31),
            "tile": lambda m, x: m.tile(x, (2, *(1,) * 29, 2, 2)),
            "einsum": lambda m, x: m.einsum(x, axes, x, axes, axes[:5]),
            "tensordot": lambda m, x: m.tensordot(x, x, axes=(axes[3:], axes[3:])),
            "fft": lambda m, x: m.fft.fftn(x, axes=(0, 31)),
            "svd": lambda m, x: m.linalg.svd(x, compute_uv=False),
            "matmul": lambda m, x: m.matmul(x, m.swapaxes(x, 30, 31)),
        }
        for shape in ((2,) * 10 + (1,) * 22, (1, 2) * 8 + (1,) * 14 + (2, 2), (1,) * 22 + (2,) * 10):
            x = random.standard_normal(shape)
            for name, function in functions.items():
                with self.subTest(name, shape=shape):
                    actual = td.evaluate(lambda x: function(td, x), x, client=self.client)
                    np.testing.assert_allclose(actual, function(np, x), rtol=1e-12, atol=1e-12)


class Programs(ServerTest):
    def test_second_compilation_finds_the_first(self):
        specs = td.spec((7, 3)), td.spec((3, 2))
        first = self.compile(lambda x, y: td.tanh(x @ y), *specs)
        with td.Client(self.server.target, timeout=60) as other:
            second = td.compile(lambda other_name, w: td.tanh(other_name @ w), *specs, client=other)
        self.assertEqual((first.source, second.source), ("compiled", "memory"))
        self.assertEqual(first.fingerprint, second.fingerprint)

    def test_stats(self):
        program = self.compile(lambda x: td.exp(x).sum(), td.spec(1000))
        program(np.zeros(1000), profile=True)
        self.assertEqual(program.stats.source, "memory")
        self.assertTrue(program.stats.device)
        self.assertGreater(program.stats.run_time, 0)
        self.assertLess(program.stats.run_time, program.stats.round_trip_time)
        segments = program.stats.segments
        self.assertTrue(segments)
        self.assertTrue(all(segment.backend == "cpu" and segment.kernel and segment.nodes for segment in segments))
        self.assertEqual([segment.start for segment in segments], sorted(segment.start for segment in segments))
        self.assertLessEqual(sum(segment.duration for segment in segments), program.stats.run_time)
        self.assertIn("us)", repr(segments[0]))

    def test_evaluate_twice(self):
        for source in ("compiled", "memory"):
            _, stats = td.evaluate(lambda x: x * 3 - 0.123, np.zeros((3, 5)), client=self.client, with_stats=True)
            self.assertEqual(stats.source, source)

    def test_explain_and_get_program(self):
        program = self.compile(lambda x: td.exp(x) + 1, td.spec(("n", 5), "float32"))
        self.assertTrue(program.explain())
        found = self.client.get_program(program.fingerprint)
        self.assertEqual((found.fingerprint, len(found.inputs), len(found.outputs)), (program.fingerprint, 1, 1))

    def test_results_arrive_aligned(self):
        program = self.compile(lambda x: x + 1, td.spec("n"))
        for _ in range(2):
            result = program(np.zeros(1000))
        self.assertTrue(result.flags.aligned)
        self.assertFalse(result.flags.owndata)

    def test_many_threads(self):
        program = self.compile(lambda x: x @ x, td.spec(("n", "n")))
        wrong = []

        def work(seed):
            for size in range(1, 12):
                x = np.random.default_rng(seed * 100 + size).uniform(size=(size, size))
                if not np.allclose(program(x), x @ x, rtol=1e-12):
                    wrong.append((seed, size))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Sessions(ServerTest):
    def setUp(self):
        try:
            self.client.session().close()
        except td.Unimplemented as refusal:
            self.assertEqual(refusal.reason, "UNSUPPORTED_REQUEST")
            self.skipTest("the server has no sessions")

    def test_state_stays_on_the_server(self):
        program = self.compile(lambda x, y: (x + y, (x + y).sum()), td.spec("n"), td.spec("n"))
        with self.client.session() as session:
            state = session.put(np.zeros(5))
            for step in range(1, 4):
                state, total = program(state.donate(), np.ones(5), keep=(True, False))
                self.assertEqual(float(total), 5.0 * step)
            np.testing.assert_array_equal(state.fetch(), np.full(5, 3.0))
            state.delete()
            matrix = session.put(np.arange(6.0).reshape(2, 3))
            np.testing.assert_array_equal(matrix.fetch(), np.arange(6.0).reshape(2, 3))

    def test_handles_that_are_gone(self):
        program = self.compile(lambda x: x, td.spec(2))
        session = self.client.session()
        remote = session.put(np.zeros(2))
        session.close()
        with self.assertRaises(td.FailedPrecondition) as context:
            program(remote)
        self.assertEqual(context.exception.reason, "SESSION_UNKNOWN")


class Failures(ServerTest):
    def test_the_server_names_node_and_op(self):
        graph = td.make_graph(lambda x: x + x, td.spec((2, 3))).graph
        graph.inputs.add(name="y", type=td.make_graph(lambda y: y, td.spec((4, 3))).graph.inputs[0].type)
        graph.nodes[0].inputs[1] = "y"
        with self.assertRaises(td.InvalidArgument) as context:
            self.client.compile(graph)
        error = context.exception
        self.assertEqual((error.reason, error.node), ("SHAPE_MISMATCH", graph.nodes[0].name))
        self.assertTrue(error.op)

    def test_unknown_device(self):
        with self.assertRaises(td.Error) as context:
            self.compile(lambda x: x, td.spec(2), device="no-such-device")
        self.assertEqual(context.exception.reason, "DEVICE_UNKNOWN")

    def test_unknown_program(self):
        with self.assertRaises(td.FailedPrecondition) as context:
            self.client.execute("0" * 64, [])
        self.assertEqual(context.exception.reason, "PROGRAM_NOT_FOUND")

    def test_arguments_that_do_not_fit(self):
        program = self.compile(lambda x, y: x.sum() + y.sum(), td.spec("n"), td.spec("n"))
        for arguments, reason in (([np.zeros(2)], "ARGUMENT_COUNT"), ([np.zeros(2), np.zeros(3)], "SYMBOL_CONFLICT"),
                                  ([np.zeros(2), np.zeros(2, np.float32)], "ARGUMENT_MISMATCH")):  # fmt: skip
            with self.assertRaises(td.InvalidArgument) as context:
                self.client.execute(program.fingerprint, arguments)
            self.assertEqual(context.exception.reason, reason)

    def test_extremes_of_an_axis_that_turns_out_empty(self):
        for function in (np.argmax, np.argmin, np.max, np.min):
            program = self.compile(lambda x, function=function: function(x, 0), td.spec(("n", 2)))
            np.testing.assert_array_equal(program(np.ones((1, 2))), function(np.ones((1, 2)), 0))
            with self.subTest(function.__name__), self.assertRaises(td.InvalidArgument) as context:
                program(np.zeros((0, 2)))
            self.assertIn("there is nothing to reduce along axis", str(context.exception))

    def test_a_size_that_turns_out_too_small_is_named(self):
        for function, words in ((np.fft.fft, "nothing to transform along axis 0: n = 0, and the least is 1"),
                                (lambda x: x[:3], "larger than the operand's axis: n = 0, and the least is 3")):  # fmt: skip
            program = self.compile(function, td.spec(("n",), "complex128"))
            with self.subTest(words), self.assertRaises(td.InvalidArgument) as context:
                program(np.zeros(0, complex))
            self.assertIn(words, str(context.exception))

    def test_bytes_that_are_no_request(self):
        with self.assertRaises(td.InvalidArgument):
            self.client._call("Execute", b"\xff\xff\xff", 30)

    def test_health_and_info(self):
        self.assertEqual(self.client.health(), "SERVING")
        info = self.client.server_info(capabilities=True)
        self.assertTrue(info.version and info.devices and info.capabilities)
        self.assertIn(
            contract.DTYPES["DTYPE_F64"], {dtype for capability in info.capabilities for dtype in capability.dtypes}
        )


class Restart(unittest.TestCase):
    def test_a_program_survives_the_server(self):
        """Another server behind the same client's next connection knows nothing: the program compiles itself again."""
        first, second = ServerProcess(), ServerProcess()
        self.addCleanup(second.stop)
        try:
            with td.Client(first.target, timeout=60) as client, td.Client(second.target, timeout=60) as other:
                program = td.compile(lambda x: x * 2, td.spec("n"), client=client)
                np.testing.assert_array_equal(program(np.ones(2)), [2, 2])
                program._client = other
                np.testing.assert_array_equal(program(np.ones(3)), [2, 2, 2])
                self.assertEqual(program.compile_count, 2)
        finally:
            self.assertEqual(first.stop(), 0)


class Examples(ServerTest):
    def run_example(self, *command):
        return subprocess.run(
            [sys.executable, *command, f"--target={self.server.target}"], capture_output=True, text=True, timeout=300
        )

    def test_demo(self):
        result = self.run_example(EXAMPLES / "demo.py", "--quick", "--repeats=1")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        for words in ("Attention block", "Black–Scholes", "Poisson", "Where to go next"):
            self.assertIn(words, result.stdout)

    def test_quickstart(self):
        result = self.run_example(EXAMPLES / "quickstart.py")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_graph_files(self):
        def graph(name):
            return json_format.Parse((EXAMPLES.parent / "graphs" / name).read_text(), contract.Graph())

        for path in (EXAMPLES.parent / "graphs").glob("*.json"):
            if operations_in(graph(path.name)) <= operations_of(self.client):
                self.assertTrue(self.client.compile(graph(path.name)).program.fingerprint)
        if {"gather_dynamic_slice_sizes", "scatter"} <= operations_of(self.client):
            program = self.client.compile(graph("lookup_and_count.json")).program
            table, rows = np.arange(20, dtype=np.float32).reshape(10, 2), np.array([3, 9, 3])
            taken, counts = self.client.execute(program.fingerprint, [table, rows])[0]
            np.testing.assert_array_equal(taken, table[rows])
            np.testing.assert_array_equal(counts, np.bincount(rows, minlength=10))

    def test_embedding(self):
        if not {"gather", "scatter"} <= operations_of(self.client):
            self.skipTest("the server neither gathers nor scatters")
        result = self.run_example(EXAMPLES / "embedding.py")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("as NumPy counts: True", result.stdout)

    def test_training(self):
        pattern = r"at the end ([\d.]+)% of others right, where knowing the centers gives ([\d.]+)%"
        found = self.numbers_of("training.py", pattern)
        self.assertGreater(found[0], 0.95 * found[1])

    def test_gaussian_process(self):
        cost, slope = self.numbers_of("gaussian_process.py", r"at the end: +cost (\S+), largest slope (\S+)")
        self.assertLess((cost, abs(slope)), (0.0, 0.01))

    def test_circuit(self):
        found, least = self.numbers_of("circuit.py", r"at the end (\S+), the least possible (\S+)")
        self.assertLessEqual(least, found + 1e-5)
        self.assertLess(found, 0.995 * least)

    def numbers_of(self, example, pattern):
        """What an example prints, as numbers."""
        result = self.run_example(EXAMPLES / example)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return [float(text) for text in re.search(pattern, result.stdout).groups()]

    def test_other_algebras(self):
        """Each is checked against another way to solve it."""
        for name in ("shortest_paths", "viterbi", "reachability", "spin_glass", "schedule"):
            with self.subTest(name):
                result = self.run_example(EXAMPLES / f"{name}.py")
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                self.assertRegex(result.stdout, r"(?m)^as .*: True$")
                self.assertNotIn("False", result.stdout)


if __name__ == "__main__":
    unittest.main()
