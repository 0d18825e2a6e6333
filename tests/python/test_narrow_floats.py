"""Functions that are made of several operations round 16-bit floats once: computed by the oracle, against float64. Needs no server."""

import math
import unittest

import numpy as np

import checkout  # noqa: F401
import graph_oracle
import tensord as td

_erf = np.vectorize(math.erf, otypes=[float])


def _logsumexp(x):
    return np.log(np.exp(x).sum(-1))


def _gelu_by_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


_OF_ONE = {
    "silu": (td.silu, lambda x: x / (1 + np.exp(-x))),
    "gelu by tanh": (lambda x: td.gelu(x, approximate=True), _gelu_by_tanh),
    "softplus": (td.softplus, lambda x: np.logaddexp(x, 0)),
    "deg2rad": (td.deg2rad, np.deg2rad),
    "rad2deg": (td.rad2deg, np.rad2deg),
}

# 1 + erf loses digits of numbers that are small in float32 already, so of those that float16 barely has.
_WITH_A_TAIL = {"gelu": (td.gelu, lambda x: 0.5 * x * (1 + _erf(x * math.sqrt(0.5))))}

_OF_TWO = {
    "hypot": (td.hypot, np.hypot),
    "logaddexp": (td.logaddexp, np.logaddexp),
    "floor_divide": (td.floor_divide, np.floor_divide),
    "floor_divide by a number": (lambda x, y: x // 0.3, lambda x, y: x // float(np.float16(0.3))),
}

_OF_ROWS = {
    "softmax": (td.softmax, lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)),
    "log_softmax": (td.log_softmax, lambda x: x - _logsumexp(x)[:, None]),
    "logsumexp": (lambda x: td.logsumexp(x, -1), _logsumexp),
    "std": (lambda x: td.std(x, -1), lambda x: x.std(-1)),
    "norm": (lambda x: td.linalg.norm(x, axis=-1), lambda x: np.linalg.norm(x, axis=-1)),
    "norm of cubes": (lambda x: td.linalg.norm(x, 3, axis=-1), lambda x: np.linalg.norm(x, 3, axis=-1)),
    "vector_norm": (lambda x: td.linalg.vector_norm(x, axis=-1), lambda x: np.linalg.norm(x, axis=-1)),
    "matrix_norm": (td.linalg.matrix_norm, np.linalg.norm),
    "sum from a number on": (lambda x: td.sum(x, -1, initial=-250.0), lambda x: x.sum(-1) - 250),
    "average": (lambda x: td.average(x, -1, td.abs(x)), lambda x: np.average(x, -1, np.abs(x))),
}


class NarrowFloats(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(1)

    def random(self, *shape, scale=3.0):
        return (self.rng.standard_normal(shape) * scale).astype(np.float16)

    def check(self, functions, *arguments, least=2.0**-14):
        for name, (traced, reference) in functions.items():
            with self.subTest(name), np.errstate(all="ignore"):
                graph = td.make_graph(traced, *arguments).graph
                (got,) = graph_oracle.evaluate(graph, list(arguments))
                self.assertEqual(got.dtype, np.float16)
                wanted = np.asarray(reference(*(x.astype(np.float64) for x in arguments)))
                ulp = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(wanted), least))) - 10)
                worst = np.max(np.abs(got.astype(np.float64) - wanted) / ulp)
                self.assertLess(worst, 0.55)

    def test_functions_of_an_element(self):
        self.check(_OF_ONE, self.random(4000))
        self.check(_WITH_A_TAIL, self.random(4000), least=2.0**-10)

    def test_functions_of_two_elements(self):
        self.check(_OF_TWO, self.random(4000), self.random(4000))
        divisors = self.random(4000)
        divisors[np.abs(divisors) < 0.01] = 1  # quotients stay below 65504
        self.check(_OF_TWO, self.random(4000, scale=150.0), divisors)

    def test_functions_of_rows(self):
        self.check(_OF_ROWS, self.random(50, 33))

    def test_what_is_between_may_be_larger_than_the_type_holds(self):
        large = {name: _OF_ROWS[name] for name in ("std", "norm", "norm of cubes", "vector_norm", "matrix_norm", "average")}
        self.check(large, self.random(50, 33, scale=300.0))


if __name__ == "__main__":
    unittest.main()
