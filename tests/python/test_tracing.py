"""Promotions, broadcasts, names and refusals of tracing, and the fate of symbolic sizes. Needs no server."""

import collections
import threading
import unittest

import numpy as np

import checkout  # noqa: F401
import graph_oracle
import tensord as td
from tensord import dtypes
from tensord.tracing import lifting

F32, F64, I32, I64 = "float32", "float64", "int32", "int64"


def result_spec(function, *specs):
    (spec,) = td.make_graph(function, *specs).output_specs
    return spec


def run(function, specs, *arguments):
    traced = td.make_graph(function, *specs)
    return traced.unflatten_results(graph_oracle.evaluate(traced.graph, arguments))


class Promotion(unittest.TestCase):
    def test_types_promote_as_in_numpy(self):
        in_numpy = [dtype for dtype in dtypes.ALL if dtype is not td.bfloat16]
        for left in in_numpy:
            for right in in_numpy:
                expected = np.promote_types(left.numpy, right.numpy)
                self.assertEqual(dtypes.promote_types(left, right).numpy, expected, f"{left}, {right}")
                self.assertEqual(
                    result_spec(lambda x, y: x + y, td.spec((), left), td.spec((), right)).dtype.numpy, expected
                )

    def test_bfloat16(self):
        expected = {
            "bool": "bfloat16",
            "float16": "float32",
            "float32": "float32",
            "int32": "float64",
            "complex64": "complex64",
        }
        for name, result in expected.items():
            self.assertEqual(dtypes.promote_types(td.bfloat16, dtypes.as_dtype(name)).name, result)
            self.assertEqual(dtypes.promote_types(dtypes.as_dtype(name), td.bfloat16).name, result)
        self.assertIs(result_spec(lambda x: x * 2 + 0.5, td.spec(3, "bfloat16")).dtype, td.bfloat16)

    def test_python_numbers_are_weak(self):
        cases = [(F32, 2.5, F32), (F32, 1, F32), (F32, 1j, "complex64"), (F64, 1j, "complex128"), (I32, 1, I32)]
        cases += [(I32, 2.5, F64), (I64, True, I64), ("bool", 1, I64), ("bool", 1.5, F64), (I32, 1j, "complex128")]
        cases += [("float16", 2.5, "float16"), ("complex64", 2.0, "complex64")]
        for dtype, number, result in cases:
            self.assertEqual(
                result_spec(lambda x: x + number, td.spec(3, dtype)).dtype.name, result, f"{dtype} + {number!r}"
            )

    def test_numpy_numbers_are_not(self):
        self.assertEqual(result_spec(lambda x: x * np.float64(2), td.spec(3, F32)).dtype.name, F64)
        self.assertEqual(result_spec(lambda x: x * np.float32(2), td.spec(3, F32)).dtype.name, F32)

    def test_integers_that_do_not_fit(self):
        with self.assertRaisesRegex(OverflowError, "3000000000"):
            td.make_graph(lambda x: x + 3_000_000_000, td.spec(3, I32))

    def test_fractional_results_of_integers(self):
        for function in (td.exp, td.mean, td.var, lambda x: x / 2, lambda x: td.softmax(x)):
            self.assertEqual(result_spec(function, td.spec(4, I32)).dtype.name, F64)

    def test_dtypes_compare_to_what_names_them(self):
        self.assertTrue(td.float32 == np.float32 and np.float32 == td.float32 and "float32" == td.float32)
        self.assertFalse(td.float32 == "int3")
        self.assertIs(dtypes.as_dtype(float), td.float64)
        for wrong in ("uint8", None, "U5", object):
            with self.assertRaises(TypeError):
                dtypes.as_dtype(wrong)


class Broadcasting(unittest.TestCase):
    def test_shapes(self):
        for shapes in (((3, 1), (4,)), ((), (2, 2)), ((1, 0), (3, 1)), ((2, 1, 3), (5, 1))):
            expected = np.broadcast_shapes(*shapes)
            self.assertEqual(lifting.broadcast_shapes(*shapes), expected)
            spec = result_spec(lambda x, y: x * y, *(td.spec(shape, F32) for shape in shapes))
            self.assertEqual(spec.shape, expected)

    def test_refusals_name_the_shapes(self):
        with self.assertRaisesRegex(ValueError, r"\(3,\), \(4,\).*sizes 3 and 4"):
            td.make_graph(lambda x, y: x + y, td.spec(3), td.spec(4))
        with self.assertRaisesRegex(ValueError, "sizes n and 4"):
            td.make_graph(lambda x, y: x + y, td.spec("n"), td.spec(4))
        with self.assertRaisesRegex(ValueError, "sizes n and m"):
            td.make_graph(lambda x, y: x + y, td.spec("n"), td.spec("m"))

    def test_a_scalar_stays_one_constant(self):
        graph = td.make_graph(lambda x: (x + 1.0) * 1.0 - 1.0, td.spec((2, 2), F32)).graph
        self.assertEqual(sum(node.HasField("constant") for node in graph.nodes), 1)


class Divisions(unittest.TestCase):
    def test_a_known_divisor_is_not_asked_for_zero(self):
        def nodes(function):
            return len(td.make_graph(function, td.spec(3, I32), td.spec(3, I32)).graph.nodes)

        self.assertLess(nodes(lambda x, y: x // 3), nodes(lambda x, y: x // 0))
        self.assertLess(nodes(lambda x, y: np.fmod(x, 3)), nodes(lambda x, y: np.fmod(x, y)))


class SymbolicSizes(unittest.TestCase):
    def check(self, function, *shapes, sizes=(("n", 5), ("m", 2)), reference=None):
        """The same function on symbolic shapes, evaluated for some sizes, and in NumPy."""
        sizes = dict(sizes)
        specs = [td.spec(shape, F64) for shape in shapes]
        random = np.random.default_rng(1)
        arguments = [random.uniform(1, 2, [sizes.get(size, size) for size in shape]) for shape in shapes]
        actual = run(function, specs, *arguments)
        expected = (reference or function)(*arguments)
        np.testing.assert_allclose(actual, expected, rtol=1e-12)
        self.assertEqual(np.asarray(actual).dtype, np.asarray(expected).dtype)

    def test_functions(self):
        self.check(lambda x: x * 2 + x.T.T, ("n", 3))
        self.check(lambda x: x.sum(axis=0), ("n", 3))
        self.check(lambda x: x.mean(axis=0) + x.mean(), ("n", 3))
        self.check(lambda x: x.var(axis=1) + x.std(), ("n", "m"))
        self.check(lambda x, y: x @ y, ("n", 3), (3, "m"))
        self.check(lambda x, y: x @ y, ("m", "n", 3), ("m", 3, "n"))
        self.check(lambda x: x.reshape(-1, 6), ("n", 2, 3))
        self.check(lambda x: x.reshape(-1), ("n", "m", 3))
        self.check(lambda x: x.ravel().sum(), ("n", "m"))
        self.check(lambda x: np.concatenate([x, x, x[:1]]), ("n", 3))
        self.check(lambda x: np.pad(x, 2), ("n", 3))
        self.check(lambda x: np.tile(x, (2, 3)), ("n", 3))
        self.check(lambda x: np.repeat(x, 2, axis=0), ("n", 3))
        self.check(lambda x: np.where(x > 1.5, x, 0.0), ("n",))
        self.check(lambda x: np.argmax(x, axis=0), ("n", 3))
        self.check(lambda x, y: x - y, ("n", 3), ("n", 1))
        self.check(lambda x: np.roll(x, (7, -1), (0, 1)), ("n", "m"))
        self.check(lambda x: td.softmax(x, 0), ("n", 3), reference=lambda x: np.exp(x) / np.exp(x).sum(0))
        self.check(lambda x: td.arange(x.shape[0]) * x, ("n",), reference=lambda x: np.arange(len(x)) * x)
        self.check(
            lambda x: td.zeros((x.shape[0], 2)) + x[:, None],
            ("n",),
            reference=lambda x: np.zeros((len(x), 2)) + x[:, None],
        )
        self.check(lambda x: x / td.shape_of(x, 0), ("n", 3), reference=lambda x: x / len(x))
        self.check(lambda x: td.eye(x.shape[0]) @ x, ("n", 3), reference=lambda x: x)

    def test_sizes_in_arithmetic(self):
        for dtype in ("float32", "int32", "complex64"):
            x = np.arange(1, 7).astype(dtype)
            for function in (lambda x: x / x.shape[0], lambda x: x * x.shape[0] - 3, lambda x: x.shape[0] ** 2 + x,
                             lambda x: x.shape[0] % 4 + x, lambda x: np.maximum(abs(x), x.shape[0])):  # fmt: skip
                actual, expected = run(function, [td.spec("n", dtype)], x), function(x)
                np.testing.assert_allclose(actual, expected, rtol=1e-6)
                self.assertEqual(np.asarray(actual).dtype, np.asarray(expected).dtype)
        self.check(lambda x: (1 / x.shape[0]) * x + 0.5 * x.shape[0] + np.sqrt(x.shape[0]) - x.shape[0] ** 0.5, ("n",))
        n, two = td.Dim.symbol("n"), np.int64(2)
        self.assertEqual(n**2, n * n)
        for size, wanted in ((two * n, 2 * n), (n * two, 2 * n), (two + n - np.int32(1), n + 1), (n // two, n // 2), (np.array(2) * n, 2 * n)):
            self.assertEqual(size, wanted)
        self.assertFalse((two,) == (n,) or (n, 3) == (two, 3))
        self.assertTrue(two != n)
        self.check(lambda x: np.tile(x, 2).reshape(two * x.shape[0], 1) + np.zeros(1), ("n",))

    def test_diagonals(self):
        self.check(lambda x: (x + 1).diagonal(), ("n", "n"))
        self.check(lambda x: np.trace(x), ("n", "n"))
        self.check(lambda x: np.tril(x) - np.triu(x, 1), ("n", "m"))
        self.check(lambda x: np.diag(x, 1), ("n",))

    def test_slices(self):
        keys = [np.s_[1:], np.s_[:-2], np.s_[1:-1, 1:], np.s_[:, ::2], np.s_[::-1], np.s_[:, ::-2], np.s_[2], np.s_[-1]]
        keys += [np.s_[:3], np.s_[-3:], np.s_[-3:-1, 0], np.s_[:, 1], np.s_[None, 1:3], np.s_[1:, -1]]
        for key in keys:
            with self.subTest(str(key)):
                self.check(lambda x: x[key], ("n", 4))

    def test_one_program_serves_every_size(self):
        traced = td.make_graph(lambda x: x[1:] - x[:-1], td.spec("n"))
        for size in (2, 7):
            x = np.random.default_rng(size).uniform(size=size)
            np.testing.assert_array_equal(graph_oracle.evaluate(traced.graph, [x])[0], np.diff(x))

    def test_arithmetic(self):
        n, m = td.Dim.symbol("n"), td.Dim.symbol("m")
        self.assertEqual(n + n, 2 * n)
        self.assertEqual(n * m, m * n)
        self.assertEqual(n - n, 0)
        self.assertEqual((4 * n * m) // (2 * m), 2 * n)
        self.assertEqual((n + 1) * (n - 1), n * n - 1)
        self.assertNotEqual(n, m)
        self.assertEqual(hash(n + m), hash(m + n))
        self.assertEqual(((n + 3) // 2).evaluate({"n": 4}), 3)
        self.assertEqual(str(2 * n - 1), "2*n - 1")
        with self.assertRaises(TypeError):
            bool(n)

    def test_what_depends_on_the_size_is_refused(self):
        for function in (
            lambda x: x[::2],
            lambda x: td.split(x, 2),
            lambda x: x.reshape(3, -1),
            lambda x: [y for y in x],
        ):
            with self.assertRaises((TypeError, ValueError)):
                td.make_graph(function, td.spec("n"))


class Refusals(unittest.TestCase):
    def refused(self, kind, pattern, function, *specs):
        with self.assertRaisesRegex(kind, pattern):
            td.make_graph(function, *(specs or (td.spec((3, 4), F32),)))

    def test_values_are_not_there_yet(self):
        for function in (
            lambda x: x if x.sum() > 0 else -x,
            float,
            lambda x: int(x[0, 0]),
            lambda x: np.asarray(x),
            lambda x: x.item(),
        ):
            self.refused(TypeError, "has no value", function)

    def test_arrays_do_not_change(self):
        def assign(x):
            x[0] = 1

        self.refused(TypeError, "x.at", assign)

    def test_masks(self):
        self.refused(TypeError, "td.where", lambda x: x[x > 0])
        self.refused(TypeError, "td.where", lambda x: x[:, x[0] > 0])
        self.refused(TypeError, "td.where", lambda x: x.at[x > 0].set(0))
        self.refused(TypeError, "True and False", lambda x: x[True])
        self.refused(IndexError, "mask's axis of size 2 does not fit axis 0", lambda x: x[np.array([True, False])])

    def test_indices(self):
        self.refused(IndexError, "index 3 is out of bounds for axis 0 of size 3", lambda x: x[3])
        self.refused(IndexError, "index -4 is out of bounds for axis 0", lambda x: x[[0, -4]])
        self.refused(IndexError, "index 12 is out of bounds", lambda x: td.take(x, np.array([3, 12])))
        self.refused(IndexError, "3 indices", lambda x: x[0, 0, 0])
        self.refused(TypeError, "index", lambda x: x["a"])
        self.refused(ValueError, r"\(2,\), \(3,\) do not broadcast", lambda x: x[[0, 1], [1, 2, 3]])

    def test_shapes(self):
        self.refused(ValueError, r"12 elements are not 10", lambda x: x.reshape(5, 2))
        self.refused(ValueError, "axis 2", lambda x: x.sum(axis=2))
        self.refused(ValueError, r"size 4 of axis 1 .* size 3 of axis 0", lambda x: x @ x)
        self.refused(ValueError, "size 0", lambda x: x[:0].max())
        self.refused(ValueError, "squeeze", lambda x: td.squeeze(x, 0))

    def test_types(self):
        self.refused(TypeError, "not defined for complex64", lambda x: td.floor(x), td.spec(3, "complex64"))
        self.refused(TypeError, "ordering", lambda x: x < x, td.spec(3, "complex64"))
        self.refused(TypeError, "subtract", lambda x: x - x, td.spec(3, "bool"))
        self.refused(TypeError, "bitwise_and", lambda x: x & x)
        self.refused(ValueError, "negative integer powers", lambda x: x**-1, td.spec(3, I32))
        self.refused(TypeError, "uint8", lambda x: x + np.zeros(3, np.uint8))

    def test_numpy_functions_without_counterpart(self):
        self.refused(TypeError, "np.sort cannot be traced", lambda x: np.sort(x))
        self.refused(TypeError, "np.add.accumulate cannot be traced", lambda x: np.add.accumulate(x))
        self.refused(TypeError, "np.spacing", lambda x: np.spacing(x))

    def test_outside_of_a_trace(self):
        with self.assertRaisesRegex(RuntimeError, "td.compile"):
            td.zeros(3)
        with self.assertRaisesRegex(RuntimeError, "use NumPy"):
            td.exp(np.ones(3))

    def test_values_of_another_trace(self):
        leaked = []
        td.make_graph(lambda x: leaked.append(x) or x, td.spec(3))
        self.refused(ValueError, "another trace", lambda x: x + leaked[0], td.spec(3))

    def test_strings_are_no_results(self):
        self.refused(TypeError, "a traced function returns", lambda x: "text")

    def test_a_failed_trace_leaves_nothing_behind(self):
        with self.assertRaises(ZeroDivisionError):
            td.make_graph(lambda x: 1 // 0, td.spec(3))
        with self.assertRaises(RuntimeError):
            td.zeros(3)


class Structures(unittest.TestCase):
    def test_nested_arguments_and_results(self):
        Pair = collections.namedtuple("Pair", "low high")

        def function(model, xs, scale):
            return {"y": xs[0] @ model["w"] + model["b"], "pair": Pair(xs[1], scale), "none": None, "list": [scale * 2]}

        model = {"w": np.ones((2, 3)), "b": np.zeros(3)}
        args = (model, (np.ones((4, 2)), np.arange(3)), 2.5)
        traced = td.make_graph(function, *args)
        self.assertEqual([value.name for value in traced.graph.inputs], ["model_w", "model_b", "xs_0", "xs_1", "scale"])
        self.assertEqual([value.name for value in traced.graph.outputs], ["y", "pair_0", "pair_1", "list_0"])
        arrays = [array for array, _ in traced.flatten_arguments(args)]
        result = traced.unflatten_results(graph_oracle.evaluate(traced.graph, arrays))
        np.testing.assert_array_equal(result["y"], np.full((4, 3), 2.0))
        self.assertIsInstance(result["pair"], Pair)
        self.assertEqual((result["none"], float(result["list"][0])), (None, 5.0))

    def test_static_arguments(self):
        traced = td.make_graph(lambda x, count: td.tile(x, count), td.spec(2), static={"count": 3})
        self.assertEqual(traced.output_specs[0].shape, (6,))

    def test_constants_and_inputs_as_results(self):
        arrays = run(lambda x: (x, x, 7, np.arange(3)), [td.spec(2)], np.ones(2))
        self.assertEqual([array.tolist() for array in arrays], [[1, 1], [1, 1], 7, [0, 1, 2]])

    def test_argument_checks(self):
        traced = td.make_graph(lambda x, y: x.sum(axis=1) + y, td.spec(("n", 3), F32), td.spec("n", F32))
        good = np.ones((4, 3), np.float32), np.ones(4, np.float32)
        self.assertEqual(len(traced.flatten_arguments(good)), 2)
        for bad, kind, pattern in (
            ((np.ones((4, 3)), good[1]), TypeError, "'x' is float64"),
            ((good[0], np.ones(5, np.float32)), ValueError, "'y' has shape .*n = 4"),
            ((np.ones((4, 2), np.float32), good[1]), ValueError, "'x' has shape"),
            ((good[0][0], good[1]), ValueError, "'x' has shape"),
            ((good[0],), TypeError, "was traced with arguments"),
        ):
            with self.assertRaisesRegex(kind, pattern):
                traced.flatten_arguments(bad)

    def test_python_numbers_and_lists_take_the_compiled_type(self):
        traced = td.make_graph(lambda x, s: x * s, td.spec(3, F32), td.spec((), F32))
        (x, _), (s, _) = traced.flatten_arguments(([1, 2, 3], 2.5))
        self.assertEqual((x.dtype, s.dtype, x.tolist(), float(s)), (np.float32, np.float32, [1, 2, 3], 2.5))
        integers = td.make_graph(lambda x: x, td.spec((), I32))
        with self.assertRaises(TypeError):
            integers.flatten_arguments((2.5,))
        with self.assertRaisesRegex(OverflowError, "'x' does not fit into int32"):
            integers.flatten_arguments((1 << 40,))

    def test_names_are_unique_and_without_colons(self):
        traced = td.make_graph(lambda add_0, x: add_0 + x, td.spec(2), td.spec(2))
        names = [value.name for value in traced.graph.inputs] + [node.name for node in traced.graph.nodes]
        self.assertEqual(len(set(names)), len(names))
        self.assertFalse(any(":" in name or not name for name in names))

    def test_traces_in_threads_do_not_mix(self):
        barrier = threading.Barrier(4)
        graphs = [None] * 4

        def trace(index):
            def function(x):
                barrier.wait()
                return td.ones(3) * index + x

            graphs[index] = td.make_graph(function, td.spec(3)).graph

        threads = [threading.Thread(target=trace, args=(index,)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for index, graph in enumerate(graphs):
            np.testing.assert_array_equal(graph_oracle.evaluate(graph, [np.zeros(3)])[0], np.full(3, index))


class Bfloat16(unittest.TestCase):
    def test_constants_round_to_nearest_even(self):
        values = np.array([1.0, 1.00390625, 1.01171875, np.nan, np.inf, -3.0])
        made = dtypes.to_numpy(values, td.bfloat16)
        bits = made.view(np.uint16)
        self.assertEqual([hex(b) for b in bits[[0, 1, 2, 4, 5]]], ["0x3f80", "0x3f80", "0x3f82", "0x7f80", "0xc040"])
        self.assertEqual(bits[3] & 0x7F80, 0x7F80)
        self.assertNotEqual(bits[3] & 0x7F, 0)


if __name__ == "__main__":
    unittest.main()
