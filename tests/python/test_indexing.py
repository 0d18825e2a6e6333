"""Keys of x[key] and x.at[key] drawn at random against NumPy, symbolic sizes, and what is refused. Needs no server."""

import unittest

import numpy as np

import checkout  # noqa: F401
import graph_oracle
import random_keys
import tensord as td
from function_cases import check_equal
from tensord import contract

F64 = "float64"


def run(function, specs, *arguments):
    traced = td.make_graph(function, *specs)
    return traced.unflatten_results(graph_oracle.evaluate(traced.graph, arguments))


class RandomKeys(unittest.TestCase):
    def test_reads_and_writes(self):
        compared = 0
        for key, x, case in random_keys.cases(20241120, 1500):
            if case is IndexError:
                with self.assertRaises((IndexError, ValueError), msg=f"{x.shape}[{key.items}]"):
                    td.make_graph(lambda x, *arrays: x[key.of(arrays)], x, *key.arrays)
                continue
            with self.subTest(case.name):
                check_equal(self, case, run(case.traced, case.arguments, *case.arguments), case.expected())
            compared += 1
        self.assertGreater(compared, 1000)

    def test_take_along_axis_and_back(self):
        random = np.random.default_rng(7)
        for _ in range(200):
            shape = tuple(random.integers(1, 5, random.integers(1, 4)))
            axis = int(random.integers(-len(shape), len(shape)))
            index_shape = [1 if random.random() < 0.3 else n for n in shape]
            index_shape[axis] = random.integers(0, 5)
            indices = random.integers(-shape[axis], shape[axis], index_shape)
            x = random.integers(-9, 9, shape)
            taken, put = run(
                lambda x, i: (td.take_along_axis(x, i, axis), td.put_along_axis(x, i, 5, axis)),
                [x, indices],
                x,
                indices,
            )
            np.testing.assert_array_equal(taken, np.take_along_axis(x, indices, axis))
            expected = x.copy()
            np.put_along_axis(expected, indices, 5, axis)
            np.testing.assert_array_equal(put, expected)


class SymbolicSizes(unittest.TestCase):
    def check(self, function, *shapes, reference=None, sizes=(("n", 5), ("m", 3)), integers=()):
        sizes = dict(sizes)
        random = np.random.default_rng(1)
        arguments = [random.uniform(1, 2, [sizes.get(size, size) for size in shape]) for shape in shapes]
        specs = [td.spec(shape, F64) for shape in shapes] + [td.spec(np.shape(i), "int64") for i in integers]
        arguments += [np.asarray(i, np.int64) for i in integers]
        actual = run(function, specs, *arguments)
        np.testing.assert_allclose(actual, (reference or function)(*arguments), rtol=1e-12)

    def test_reads(self):
        self.check(lambda x, i: x[i], ("n", 3), integers=[[0, -1, 4]])
        self.check(lambda x, i: x[:, i], ("n", "m"), integers=[[0, -1, 2]])
        self.check(lambda x, i: x[i, i], ("n", "m"), integers=[[0, -1, 2]])
        self.check(lambda x, i: x[1:, i, ::-1], ("n", "m", 2), integers=[[0, -1, 2]])
        self.check(lambda x, i: np.take_along_axis(x, i, 0), ("n", 2), integers=[[[0, -1], [1, 4]]])
        self.check(lambda x, i: np.take(x, i, 0, mode="wrap"), ("n", 2), integers=[[7, -9]])
        self.check(lambda x: x[[0, 1, -1]], ("n", 3))

    def test_writes(self):
        def added(x, i):
            result = x.copy()
            np.add.at(result, i, 1.0)
            return result

        self.check(lambda x, i: x.at[i].add(1.0), ("n", 3), integers=[[0, -1, 0]], reference=added)
        self.check(lambda x, i: x.at[:, i].add(1.0), ("n", "m"), integers=[[0, -1, 0]],
                   reference=lambda x, i: added(x.T, i).T)  # fmt: skip
        self.check(lambda x: x.at[1:].set(0.0), ("n", 3), reference=lambda x: x * ([[1]] + [[0]] * (len(x) - 1)))
        self.check(lambda x: x.at[-1].multiply(2.0), ("n",), reference=lambda x: np.r_[x[:-1], x[-1] * 2])
        self.check(
            lambda x, y: x.at[[0, 0]].add(y[:2]),
            ("n",),
            ("m",),
            reference=lambda x, y: np.r_[x[0] + y[0] + y[1], x[1:]],
        )

    def test_diagonals(self):
        for k in (0, 1, -2):
            self.check(lambda x: np.diagonal(x, k), ("n", "n"))
            self.check(lambda x: np.tril(x, k), (2, "n", "m"))
            self.check(lambda x: np.diag(x, k), ("n",))
        self.check(lambda x: np.diagonal(x), ("n", "m"))
        self.check(lambda x: np.diagonal(x), ("n", 4))
        self.check(lambda x: np.trace(x), ("n", "n", 2))

    def test_windows_that_do_not_fit_are_errors(self):
        """Never another window: the oracle, as the server, refuses sizes that are negative or too large."""
        for key in (np.s_[2], np.s_[-3], np.s_[1:3], np.s_[:3], np.s_[-3:-1], np.s_[-3:2], np.s_[3:], np.s_[-3:1]):
            for function in (lambda x: x[key], lambda x: x.at[key].set(0.0), lambda x: x.at[key].add(1.0)):
                traced = td.make_graph(function, td.spec(("n", 2)))
                with self.subTest(str(key)), self.assertRaises(AssertionError):
                    graph_oracle.evaluate(traced.graph, [np.ones((1 if key == np.s_[1:3] else 2, 2))])

    def test_windows_that_are_replaced(self):
        for key in (
            np.s_[2],
            np.s_[-3],
            np.s_[1:3],
            np.s_[:3],
            np.s_[-3:-1],
            np.s_[-3:4],
            np.s_[2:, 1],
            np.s_[1:-1, -1:],
        ):
            with self.subTest(str(key)):

                def replaced(x, value):
                    result = x.copy()
                    result[key] = value
                    return result

                reference = lambda x: replaced(x, 0.0) + replaced(x, x[key] * 2.0)
                self.check(lambda x: x.at[key].set(0.0) + x.at[key].multiply(2.0), ("n", "m"), reference=reference)

    def test_slices_up_to_another_size(self):
        self.check(lambda x, y: x[: y.shape[0]], ("n", 2), ("m",))
        self.check(lambda x, y: x[y.shape[0] :], ("n", 2), ("m",))

    def test_sizes_as_numbers(self):
        self.check(lambda x, y: td.shape_of(x, 0) * 2 - td.shape_of(y, 1), ("n", 3), (2, "m"),
                   reference=lambda x, y: np.int64(len(x) * 2 - y.shape[1]))  # fmt: skip
        graph = td.make_graph(lambda x: td.shape_of(x, 0) + td.shape_of(x, 0), td.spec("n")).graph
        self.assertEqual([node.WhichOneof("op") for node in graph.nodes], ["shape_of", "binary"])

    def test_pad_to_match(self):
        self.check(
            lambda x, y: td.pad_to_match(x, y), ("m", 2), ("n", 1), reference=lambda x, y: np.pad(x, ((0, 2), (0, 0)))
        )
        self.check(lambda x, y: td.pad_to_match(x, y), ("n", 2), ("m", 1), reference=lambda x, y: x)

    def test_a_window_of_symbolic_size(self):
        self.check(lambda x, y, i: td.dynamic_slice(x, (i,), y.shape), ("n",), ("m",), integers=[1],
                   reference=lambda x, y, i: x[1:4])  # fmt: skip


class RunTimeSizes(unittest.TestCase):
    def shapes_of(self, function, x, *arguments):
        return run(function, [x, *arguments], x, *arguments)

    def test_sizes_meet(self):
        x, n = np.arange(12.0).reshape(4, 3), np.int64(2)
        for function, expected in (
            (lambda x, n: td.dynamic_truncate(x, n) + 1.0, x[:2] + 1),
            (lambda x, n: td.dynamic_truncate(x, n) * x[0], x[:2] * x[0]),
            (lambda x, n: td.softmax(td.dynamic_truncate(x, n), 0).sum(0), np.ones(3)),
            (lambda x, n: x[:n].reshape(-1), x[:2].reshape(-1)),
            (lambda x, n: x[:n].T @ x[:n], x[:2].T @ x[:2]),
            (lambda x, n: x[:n][:, [0, -1]], x[:2][:, [0, -1]]),
            (lambda x, n: td.concatenate([x[:n], x]), np.concatenate([x[:2], x])),
            (lambda x, n: x[n:] / td.shape_of(x[n:], 0), x[2:] / 2),
            (lambda x, n: x[:n].mean(), x[:2].mean()),
        ):
            np.testing.assert_allclose(self.shapes_of(function, x, n), expected, rtol=1e-12)

    def test_shape_sources_are_operands(self):
        graph = td.make_graph(lambda x, n: x[:n] * 2.0, td.spec(5), td.spec((), "int64")).graph
        truncate = next(node for node in graph.nodes if node.HasField("dynamic_truncate"))
        broadcast = next(node for node in graph.nodes if node.HasField("broadcast_in_dim"))
        self.assertEqual(list(broadcast.inputs)[1:], [truncate.name])
        size = broadcast.broadcast_in_dim.shape[0].operand
        self.assertEqual((size.operand, size.axis), (1, 0))

    def test_results_have_no_static_size(self):
        (spec,) = td.make_graph(lambda x, n: x[:n], td.spec((5, 2)), td.spec((), "int32")).output_specs
        self.assertIsInstance(spec.shape[0], td.Dim)
        self.assertEqual(spec.shape[1], 2)
        self.assertIn("size(dynamic_truncate", str(spec.shape[0]))

    def test_refusals(self):
        for pattern, function in (
            ("rank 0", lambda x, n: td.dynamic_truncate(x, x)),
            ("rank 0", lambda x, n: td.dynamic_truncate(x, 2.0)),
            ("step 1", lambda x, n: x[:n:2]),
            ("a slice's bound is an integer", lambda x, n: x[: x[0]]),
            ("counted up to", lambda x, n: td.arange(x[:n].shape[0])),
            ("bounds are known while tracing", lambda x, n: x.at[:n].set(0)),
            ("known only when", lambda x, n: len(x[:n])),
        ):
            with self.assertRaisesRegex(TypeError, pattern):
                td.make_graph(function, td.spec(5), td.spec((), "int64"))
        with self.assertRaisesRegex(ValueError, "out of bounds"):
            td.make_graph(lambda x, n: td.dynamic_truncate(x, n, 1), td.spec(5), td.spec((), "int64"))


class Refusals(unittest.TestCase):
    def refused(self, kind, pattern, function, shape=(3, 4)):
        with self.assertRaisesRegex(kind, pattern):
            td.make_graph(function, td.spec(shape, F64), td.spec((2, 2), "int64"))

    def test_known_indices_are_checked(self):
        self.refused(IndexError, "index 3 is out of bounds for axis 0 of size 3", lambda x, i: x.at[3].set(0))
        self.refused(IndexError, "index -5 is out of bounds for axis 1", lambda x, i: x.at[i, [0, -5]].set(0))
        self.refused(IndexError, "index 4 is out of bounds", lambda x, i: td.take_along_axis(x, [[4]], 1))
        self.refused(IndexError, "size 0", lambda x, i: x[:0][i])
        self.refused(IndexError, "size 0", lambda x, i: x[:0].at[i].set(0))
        self.refused(IndexError, "one Ellipsis", lambda x, i: x[..., ...])

    def test_values(self):
        self.refused(ValueError, r"\(3,\) does not broadcast to \(2, 2, 4\)", lambda x, i: x.at[i].set(np.zeros(3)))
        self.refused(ValueError, r"values of shape \(2, 4\)", lambda x, i: x.at[0].set(np.zeros((2, 4))))
        self.refused(TypeError, "real part", lambda x, i: x.at[0].set(1j))
        self.refused(TypeError, "does not fit into int64", lambda x, i: i.at[0].add(2.5))
        self.refused(TypeError, "not defined for bool", lambda x, i: (x > 0).at[0].subtract(True))
        self.refused(TypeError, "indices are integers", lambda x, i: x[x])
        self.refused(TypeError, "indices are integers", lambda x, i: x[[0.5]])
        self.refused(TypeError, "td.stack", lambda x, i: x[[i[0, 0], 1]])

    def test_functions(self):
        self.refused(TypeError, "'clip' or 'wrap'", lambda x, i: td.take(x, i, mode="raise"))
        self.refused(ValueError, "mode", lambda x, i: td.take(x, i, mode="fill"))
        self.refused(ValueError, "2 shifts for 3 axes", lambda x, i: td.roll(x, (1, 2), (0, 1, 0)))
        self.refused(TypeError, "", lambda x, i: td.roll(x, 1.5, 0))
        self.refused(ValueError, "rank 1 for an array of rank 2", lambda x, i: td.take_along_axis(x, i[0], 0))
        self.refused(ValueError, "do not broadcast", lambda x, i: td.take_along_axis(x, i, 0))
        self.refused(TypeError, "use td.put_along_axis", lambda x, i: np.put_along_axis(x, i, 0, 0))
        self.refused(TypeError, "diag_indices_from", lambda x, i: np.fill_diagonal(x, 0))
        self.refused(ValueError, "different sizes", lambda x, i: np.diag_indices_from(x))
        self.refused(ValueError, "different sizes", lambda x, i: td.extract_diag(x, 0, 1))
        self.refused(ValueError, "one axis", lambda x, i: td.diagonal(x, 0, 1, -1))
        self.refused(ValueError, "rank 2 or more", lambda x, i: td.tril(x[0]))
        self.refused(ValueError, "axis 3", lambda x, i: td.embed_diag(x, 0, 3))
        self.refused(ValueError, "does not fit", lambda x, i: td.dynamic_slice(x, i[0], (4, 1)))
        self.refused(ValueError, "does not fit", lambda x, i: td.dynamic_update_slice(x, np.zeros((3, 5)), i[0]))
        self.refused(ValueError, "3 start indices", lambda x, i: td.dynamic_slice(x, (0, 0, 0), (1, 1)))
        self.refused(ValueError, "start indices are 2 integers", lambda x, i: td.dynamic_slice(x, x[0], (1, 1)))
        self.refused(TypeError, "a start index is an integer", lambda x, i: td.dynamic_slice(x, (0, 1.5), (1, 1)))
        self.refused(ValueError, "reference of rank 1", lambda x, i: td.pad_to_match(x, i[0]))

    def test_searches(self):
        self.refused(ValueError, "'left' or 'right'", lambda x, i: td.searchsorted(x[0], 1.0, "middle"))
        self.refused(ValueError, "searches a vector", lambda x, i: td.searchsorted(x, 1.0))
        self.refused(TypeError, "complex", lambda x, i: td.searchsorted(x[0], 1j))
        self.refused(TypeError, "symbolic size n", lambda x, i: td.searchsorted(x, 1.0), shape=("n",))

    GATHER = {
        "offset_dims": [2],
        "collapsed_slice_dims": [0],
        "start_index_map": [0],
        "index_vector_dim": 2,
        "slice_sizes": (1, 4),
    }
    SCATTER = {
        "update_window_dims": [2],
        "inserted_window_dims": [0],
        "scatter_dims_to_operand_dims": [0],
        "index_vector_dim": 2,
    }

    def test_gather_attributes(self):
        for pattern, change in (
            ("index_vector_dim 3", {"index_vector_dim": 3}),
            ("2 axes for index vectors of size 1", {"start_index_map": [0, 1]}),
            ("names 1 axes for index vectors of size 2", {"index_vector_dim": 1, "offset_dims": [1]}),
            ("1 slice sizes", {"slice_sizes": (1,)}),
            ("do not fit", {"slice_sizes": (1, 5)}),
            ("slice size is 1, not 2", {"slice_sizes": (2, 4)}),
            ("0 offset_dims", {"offset_dims": []}),
            ("offset_dims: axis 3", {"offset_dims": [3]}),
            ("sizes 3 and 2", {"operand_batching_dims": [0], "start_indices_batching_dims": [0]}),
            ("sizes 4 and 2", {"operand_batching_dims": [1], "start_indices_batching_dims": [0]}),
            ("do not pair", {"operand_batching_dims": [1]}),
            ("sizes 4 and 2", {"operand_batching_dims": [1], "start_indices_batching_dims": [0]}),
            ("ascending", {"collapsed_slice_dims": [1, 0], "offset_dims": [], "slice_sizes": (1, 1)}),
        ):
            self.refused(ValueError, pattern, lambda x, i: td.gather(x, i, **{**self.GATHER, **change}))
        self.refused(TypeError, "int32 or int64", lambda x, i: td.gather(x, x[:2, :2], **self.GATHER))

    def test_scatter_attributes(self):
        for pattern, change in (
            ("index_vector_dim -1", {"index_vector_dim": -1}),
            ("0 update_window_dims", {"update_window_dims": []}),
            ("batch shape", {"update_window_dims": [0]}),
            ("combiner", {"combiner": "subtract"}),
            ("2 axes for index vectors", {"scatter_dims_to_operand_dims": [0, 1]}),
            ("do not pair", {"input_batching_dims": [1]}),
        ):
            attributes = {**self.SCATTER, **change}
            self.refused(ValueError, pattern, lambda x, i: td.scatter(x, i, np.zeros((2, 2, 4)), **attributes))
        self.refused(TypeError, "updates of int64", lambda x, i: td.scatter(x, i, i, **self.SCATTER))
        self.refused(
            ValueError, "windows of size 5", lambda x, i: td.scatter(x, i, np.zeros((2, 2, 5)), **self.SCATTER)
        )

    def test_axes_have_one_role(self):
        gather = {
            **self.GATHER,
            "operand_batching_dims": [0],
            "start_indices_batching_dims": [0],
            "start_index_map": [1],
        }
        self.refused(ValueError, "axis in common", lambda x, i: td.gather(x, i, **gather), shape=(2, 4))
        scatter = {**self.SCATTER, "input_batching_dims": [0], "scatter_indices_batching_dims": [0],
                   "scatter_dims_to_operand_dims": [1]}  # fmt: skip
        self.refused(ValueError, "axis in common", lambda x, i: td.scatter(x, i, x, **scatter), shape=(2, 4))

    def test_every_combiner_has_a_name(self):
        for name in ("add", "set", "multiply", "minimum", "maximum"):
            graph = td.make_graph(
                lambda x, i: td.scatter(x, i, np.zeros((2, 2, 4)), combiner=name, **self.SCATTER),
                td.spec((3, 4)),
                td.spec((2, 2), "int64"),
            ).graph
            self.assertEqual(graph.nodes[-1].scatter.combiner, contract.COMBINERS["COMBINER_" + name.upper()])


if __name__ == "__main__":
    unittest.main()
