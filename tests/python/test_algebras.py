"""Graphs in other algebras and single products of one, against loops of NumPy and known algorithms."""

import unittest

import numpy as np

import checkout  # noqa: F401
import tensord as td
from server_test import ServerTest
from tensord import contract

SUMS = {"max_plus": np.max, "min_plus": np.min, "max_times": np.max, "or_and": np.any}
PRODUCTS = {"max_plus": np.add, "min_plus": np.add, "max_times": np.multiply, "or_and": np.logical_and}
DTYPES = {name: ("float32", "float64", "float16", "int32", "int64") for name in SUMS} | {"or_and": ("bool",)}


def product(algebra, a, b):
    return SUMS[algebra](PRODUCTS[algebra](a[:, :, None], b[None, :, :]), axis=1)


def numbers(random, shape, dtype):
    return random.integers(0, 2 if dtype == "bool" else 9, shape).astype(dtype)


def shortest_paths(weights):
    """Floyd and Warshall's algorithm."""
    paths = weights.copy()
    for via in range(len(paths)):
        paths = np.minimum(paths, paths[:, via : via + 1] + paths[via : via + 1, :])
    return paths


def viterbi(start, step, emission):
    """The most probable path of an HMM in logarithms, by enumeration from the left."""
    best, back = start + emission[0], []
    for seen in emission[1:]:
        scores = best[:, None] + step
        back.append(scores.argmax(axis=0))
        best = scores.max(axis=0) + seen
    return best


class Graphs(unittest.TestCase):
    """What is sent."""

    def test_a_graph_carries_its_algebra(self):
        traced = td.program.make_graph(lambda x: x @ x, td.spec(("n", "n"), "float32"), algebra="min_plus")
        self.assertEqual(traced.graph.algebra, contract.ALGEBRAS["ALGEBRA_MIN_PLUS"])
        self.assertEqual(traced.graph.nodes[0].dot_general.algebra, 0)

    def test_a_product_carries_its_own(self):
        traced = td.program.make_graph(lambda x: td.exp(td.matmul(x, x, algebra="max_plus")), td.spec((2, 2), "float32"))
        self.assertEqual(traced.graph.algebra, 0)
        self.assertEqual(traced.graph.nodes[0].dot_general.algebra, contract.ALGEBRAS["ALGEBRA_MAX_PLUS"])

    def test_other_names_are_refused(self):
        for algebra in ("plus_times", "standard", "MAX_PLUS", 1):
            with self.subTest(algebra), self.assertRaisesRegex(ValueError, "algebra is one of 'max_plus'"):
                td.program.make_graph(lambda x: x, td.spec((2,)), algebra=algebra)
            with self.subTest(algebra), self.assertRaisesRegex(ValueError, "algebra is one of 'max_plus'"):
                td.program.make_graph(lambda x: td.einsum("i->", x, algebra=algebra), td.spec((2,)))


class Results(ServerTest):
    def test_products(self):
        random = np.random.default_rng(5)
        for algebra in SUMS:
            for dtype in DTYPES[algebra]:
                a, b = numbers(random, (7, 70), dtype), numbers(random, (70, 33), dtype)
                want = product(algebra, a, b)
                whole = self.compile(lambda x, y: x @ y, a, b, algebra=algebra)
                alone = self.compile(lambda x, y: td.matmul(x, y, algebra=algebra), a, b)
                named = self.compile(lambda x, y: td.einsum("ij,jk->ik", x, y, algebra=algebra), a, b)
                for program in (whole, alone, named):
                    with self.subTest(algebra=algebra, dtype=dtype):
                        np.testing.assert_array_equal(program(a, b), want)
                        self.assertEqual(program(a, b).dtype, want.dtype)

    def test_sums_keep_their_type(self):
        random = np.random.default_rng(8)
        ways = {
            "sum": (lambda x: td.sum(x, axis=0), lambda x, add: add(x, axis=0)),
            "method": (lambda x: x.sum(axis=1, keepdims=True), lambda x, add: add(x, axis=1, keepdims=True)),
            "all": (lambda x: x.sum(), lambda x, add: add(x)),
            "trace": (td.trace, lambda x, add: add(np.diagonal(x))),
            "initial": (lambda x: td.sum(x, axis=0, initial=1), lambda x, add: add(x, axis=0, initial=1)),
        }
        for algebra, add in SUMS.items():
            for dtype in DTYPES[algebra]:
                x = numbers(random, (4, 4), dtype)
                for name, (function, reference) in ways.items():
                    if name == "initial" and dtype == "bool":
                        continue
                    with self.subTest(name, algebra=algebra, dtype=dtype):
                        got, want = self.compile(function, x, algebra=algebra)(x), reference(x, add)
                        np.testing.assert_array_equal(got, want)
                        self.assertEqual(got.dtype, np.dtype(dtype))

    def test_all_pairs_shortest_paths_by_squaring(self):
        random = np.random.default_rng(6)
        weights = random.integers(1, 100, (60, 60)).astype("float64")
        weights[random.random((60, 60)) < 0.9] = np.inf
        np.fill_diagonal(weights, 0)
        square = self.compile(lambda d: d @ d, td.spec(("n", "n")), algebra="min_plus")
        paths = weights
        for _ in range(6):
            paths = square(paths)
        np.testing.assert_array_equal(paths, shortest_paths(weights))

    def test_a_viterbi_step_beside_exp_and_log(self):
        random = np.random.default_rng(7)
        start, step, emission = random.random(8), random.random((8, 8)), random.random((5, 8))

        def decode(start, step, emission):
            best = td.log(start) + td.log(emission[0])
            for time in range(1, 5):
                best = td.einsum("i,ij->j", best, td.log(step), algebra="max_plus") + td.log(emission[time])
            return td.exp(best)

        got = self.compile(decode, start, step, emission)(start, step, emission)
        np.testing.assert_allclose(got, np.exp(viterbi(np.log(start), np.log(step), np.log(emission))), rtol=1e-12)

    def test_what_an_algebra_lacks_is_refused(self):
        with self.assertRaises(td.InvalidArgument) as refused:
            self.compile(lambda x: td.exp(x @ x), td.spec((2, 2)), algebra="max_plus")
        self.assertEqual(refused.exception.reason, "OP_OUTSIDE_ALGEBRA")
        with self.assertRaises(td.InvalidArgument) as refused:  # a sum there is no number of them
            self.compile(td.count_nonzero, td.spec(3, bool), algebra="or_and")
        self.assertEqual(refused.exception.reason, "OP_OUTSIDE_ALGEBRA")
        with self.assertRaises(td.InvalidArgument) as refused:
            self.compile(lambda x: td.matmul(x, x, algebra="max_plus"), td.spec((2, 2), complex))
        self.assertEqual(refused.exception.reason, "DTYPE_UNSUPPORTED")


if __name__ == "__main__":
    unittest.main()
