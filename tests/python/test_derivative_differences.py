"""The derivative of every traced function: along a direction it is NumPy's difference, and backwards it is the adjoint.

Needs TENSORD_BINARY, the path of the tensord binary; skipped without.
"""

import unittest

import numpy as np

import checkout  # noqa: F401
from all_cases import CASES
from server_test import ServerTest
import tensord as td
from tensord.arguments import tree

STEP = 1e-5
# Cases whose reference is another function beside the arguments given, or has no difference that is the derivative.
EXCEPTIONS = {
    "eigh": "the reference reads the other triangle, and the direction is not Hermitian",
    "eigh_upper": "as eigh",
    "svd_hermitian": "as eigh",
    "cholesky_upper": "as eigh",
    "pinv_rcond": "a singular value that is cut off counts as 0, and the difference knows that it is 1e-4",
    "at_type_max(float64)": "three equal values share the derivative; a difference has the mean of the greatest and the least",
}


def is_smooth(value):
    """Whether an argument is one to differentiate: double precision, and far from overflow."""
    array = np.asarray(value)
    return array.dtype in (np.float64, np.complex128) and bool(np.all(np.abs(array) < 100))


def direction_like(random, array):
    values = random.normal(size=np.shape(array))
    return values + 1j * random.normal(size=np.shape(array)) if np.iscomplexobj(array) else values


def inner(left, right):
    return sum(float(np.real(np.vdot(one, other))) for one, other in zip(left, right, strict=True))


class Directions(ServerTest):
    def test_functions(self):
        random, compared, elements, refused = np.random.default_rng(11), 0, 0, 0
        for case in CASES:
            places = [place for place, value in enumerate(case.arguments) if is_smooth(value)]
            if not places or case.name in EXCEPTIONS:
                continue
            tangents = [direction_like(random, case.arguments[place]) for place in places]
            with self.subTest(case.name):
                try:
                    found = self.derivatives(case, places, tangents, random)
                except td.Unimplemented as refusal:
                    self.assertTrue(refusal.node and refusal.op, refusal)
                    refused += 1
                    continue
                if found is not None:
                    elements += self.compare(case, places, tangents, *found)
                    compared += 1
        self.assertGreater(compared, 300)
        self.assertGreater(elements, 3000)
        self.assertLess(refused, compared / 4)

    def derivatives(self, case, places, tangents, random):
        """Results that are floats or complex numbers, their tangents, their cotangents, and what these are backwards."""
        specs = []

        def smooth(*arguments):
            leaves, _ = tree.flatten(case.traced(*arguments))
            leaves = [leaf for leaf in leaves if isinstance(leaf, td.Array) and leaf.dtype in (td.float64, td.complex128)]
            specs[:] = [(leaf.shape, leaf.dtype) for leaf in leaves]
            return tuple(leaves)

        td.make_graph(smooth, *case.arguments)
        if not specs or not all(isinstance(size, int) for shape, _ in specs for size in shape):
            return None
        cotangents = tuple(direction_like(random, np.zeros(shape, dtype.numpy)) for shape, dtype in specs)

        def both(arguments, tangents, cotangents):
            def chosen(*values):
                given = list(arguments)
                for place, value in zip(places, values):
                    given[place] = value
                return smooth(*given)

            values = [arguments[place] for place in places]
            results, slopes = td.jvp(chosen, values, tangents)
            return results, slopes, td.vjp(chosen, *values)[1](cotangents)

        answer = td.evaluate(both, case.arguments, tuple(tangents), cotangents, client=self.client)
        return (answer[0], answer[1], cotangents, answer[2])

    def compare(self, case, places, tangents, results, slopes, cotangents, back):
        """Compares where NumPy's function has a derivative; the number of elements."""
        if all(np.all(np.isfinite(one)) for one in (*slopes, *back)):
            forwards, backwards = inner(cotangents, slopes), inner(back, tangents)
            size = 1 + sum(float(np.sum(np.abs(ct * slope))) for ct, slope in zip(cotangents, slopes))
            self.assertLess(abs(forwards - backwards), 1e-11 * size, f"{case.name}: not adjoint")
        count = 0
        expected = self.reference(case, places, tangents, 0.0)
        differences = [
            [(up - down) / (2 * step) for up, down in zip(self.reference(case, places, tangents, step),
                                                          self.reference(case, places, tangents, -step))]  # fmt: skip
            for step in (STEP, STEP / 2)
        ]
        for result, slope, value, coarse, fine in zip(results, slopes, expected, *differences, strict=True):
            size = 1 + np.abs(fine)
            with np.errstate(all="ignore"):
                is_known = np.isfinite(coarse) & np.isfinite(fine) & (np.abs(coarse - fine) < 1e-7 * size)
                is_known &= np.abs(result - value) <= 1e-9 * (1 + np.abs(value))  # signs of vectors are free
                wrong = is_known & ~(np.abs(slope - fine) < 1e-5 * size)
            self.assertFalse(np.any(wrong), f"{case.name}: {slope} is not {fine}")
            count += int(np.sum(is_known))
        return count

    def reference(self, case, places, tangents, step):
        arguments = list(case.arguments)
        for place, tangent in zip(places, tangents):
            arguments[place] = np.asarray(arguments[place]) + step * tangent
        with np.errstate(all="ignore"):
            leaves, _ = tree.flatten(case.reference(*arguments))
        leaves = [np.asarray(leaf) for leaf in leaves]
        return [leaf for leaf in leaves if leaf.dtype in (np.float64, np.complex128)]


if __name__ == "__main__":
    unittest.main()
