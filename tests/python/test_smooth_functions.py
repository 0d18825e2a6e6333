"""Functions that are smooth where the operations they are made of are not: derivatives at ties and zeros, values at ends.

Needs TENSORD_BINARY, the path of the tensord binary; skipped without.
"""

import unittest

import numpy as np

import checkout  # noqa: F401
from server_test import ServerTest
import tensord as td

TIES = [(1.0, 1.0), (0.0, 0.0), (-3.5, -3.5), (700.0, 700.0), (2.0, 5.0), (5.0, 2.0), (-0.0, 0.0)]
LEGS = [(1.0, 1.0), (3.0, -3.0), (-2.0, -2.0), (0.0, 2.0), (2.0, 0.0), (-2.0, 0.0), (3.0, 4.0), (1e200, 1e200)]
ENDS = np.array([-np.inf, -1e300, -745.0, -1.0, -1e-300, -0.0, 0.0, 1e-300, 0.5, 1.0, 36.0, 1e300, np.inf, np.nan])


def logistic(x):
    return 1 / (1 + np.exp(-x))


def slopes_of_logistic(x):
    """The function and its first two derivatives."""
    s = logistic(x)
    return s, s * (1 - s), s * (1 - s) * (1 - 2 * s)


def softmax(x):
    grown = np.exp(x - x.max())
    return grown / grown.sum()


class SmoothFunctions(ServerTest):
    def evaluate(self, function, *args):
        return td.evaluate(function, *args, client=self.client)

    def check(self, function, x, gradient, hessian):
        """Compares the first and second derivatives of a function of a vector to a number."""
        x = np.asarray(x)
        with self.subTest(x=x):
            np.testing.assert_allclose(self.evaluate(td.grad(function), x), gradient, rtol=1e-13, atol=1e-15)
            found = self.evaluate(td.hessian(function), x)
            np.testing.assert_allclose(found, hessian, rtol=1e-12, atol=1e-15 * (1 + np.abs(hessian).max()))

    def test_logaddexp(self):
        for x, y in TIES:
            share, slope, _ = slopes_of_logistic(x - y)
            self.check(lambda v: td.logaddexp(v[0], v[1]), (x, y), [share, 1 - share], slope * np.array([[1, -1], [-1, 1]]))

    def test_hypot(self):
        for x, y in LEGS:
            r = np.hypot(x, y)
            cosine, sine = x / r, y / r
            hessian = np.array([[sine * sine, -cosine * sine], [-cosine * sine, cosine * cosine]]) / r
            self.check(lambda v: td.hypot(v[0], v[1]), (x, y), [cosine, sine], hessian)
        np.testing.assert_array_equal(self.evaluate(td.grad(lambda v: td.hypot(v[0], v[1])), np.zeros(2)), [0, 0])

    def test_of_one_number(self):
        def second(function):
            def of_each(x):
                one = np.ones(3)
                return td.jvp(lambda x: td.jvp(function, (x,), (one,))[1], (x,), (one,))

            return of_each

        x = np.array([0.0, -0.0, 1.5])
        value, slope, bend = slopes_of_logistic(x)
        for function, expected in ((td.softplus, (value, slope)), (td.logistic, (slope, bend))):
            with self.subTest(function.__name__):
                found = self.evaluate(second(function), x)
                np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-16)
        third = self.evaluate(td.grad(lambda x: td.grad(td.grad(td.softplus))(x)), 0.0)
        self.assertAlmostEqual(float(third), 0.0, places=15)

    def test_sums_of_exponentials(self):
        for x in ([1.0, 1.0, 1.0], [2.0, 2.0, 0.0], [0.0, -1.0, 0.0], [800.0, 800.0, 1.0]):
            x = np.array(x)
            p = softmax(x)
            self.check(td.logsumexp, x, p, np.diag(p) - np.outer(p, p))
            self.check(lambda v: td.log_softmax(v)[0], x, np.eye(3)[0] - p, np.outer(p, p) - np.diag(p))
            shares = p[0] * (np.eye(3)[0] - p)
            bends = np.outer(shares, np.eye(3)[0] - p) - p[0] * (np.diag(p) - np.outer(p, p))
            self.check(lambda v: td.softmax(v)[0], x, shares, bends)

    def test_norms(self):
        norms = {
            "norm": td.norm,
            "along an axis": lambda v: td.linalg.norm(v, axis=0),
            "vector_norm": td.linalg.vector_norm,
            "Frobenius": lambda v: td.linalg.norm(v.reshape(1, 3)),
            "matrix_norm": lambda v: td.linalg.matrix_norm(v.reshape(3, 1)),
        }
        for x in ([3.0, 0.0, -4.0], [0.0, 0.0, 2.0], [1.0, 2.0, 2.0]):
            x = np.array(x)
            r = np.sqrt((x * x).sum())
            for name, function in norms.items():
                with self.subTest(name):
                    self.check(function, x, x / r, (np.eye(3) - np.outer(x, x) / r**2) / r)

    def test_norms_of_complex_numbers(self):
        x = np.array([3.0, 0.0, 0.0, 0.0, 4.0, 0.0])  # 3, 4i and 0
        function = lambda v: td.norm(td.complex(v[:3], v[3:]))  # noqa: E731
        self.check(function, x, x / 5, (np.eye(6) - np.outer(x, x) / 25) / 5)

    def test_the_remainder_of_multiples(self):
        x = np.array([4.0, 0.0, -0.0, -6.0, 4.0, 0.0, -6.0, 5.0, -5.0, 5.0])
        y = np.array([2.0, 2.0, 2.0, 2.0, -2.0, -2.0, -2.0, 3.0, 3.0, -3.0])
        slopes = self.evaluate(td.grad(lambda x, y: td.remainder(x, y).sum(), argnums=(0, 1)), x, y)
        np.testing.assert_array_equal(slopes[0], np.ones(10))
        np.testing.assert_array_equal(slopes[1], -np.floor(x / y))
        values = self.evaluate(td.remainder, x, y)
        np.testing.assert_array_equal(values, np.remainder(x, y))
        np.testing.assert_array_equal(np.signbit(values), np.signbit(np.remainder(x, y)))

    def test_values_at_the_ends(self):
        x, y = (part.ravel() for part in np.meshgrid(ENDS, ENDS))
        with np.errstate(all="ignore"):
            expected = np.logaddexp(x, y), np.hypot(x, y), np.logaddexp(x, 0.0)
        found = self.evaluate(lambda x, y: (td.logaddexp(x, y), td.hypot(x, y), td.softplus(x)), x, y)
        for one, other in zip(found, expected):
            np.testing.assert_allclose(one, other, rtol=4e-16)
        self.assertFalse(np.signbit(self.evaluate(lambda x: td.hypot(x, x), np.float64(-0.0))))


if __name__ == "__main__":
    unittest.main()
