"""Traced functions mean what NumPy computes: their graphs, evaluated by the oracle, against NumPy. Needs no server."""

import unittest

import numpy as np

import graph_oracle
import tensord as td
from all_cases import CASES
from function_cases import check_equal


class TracedFunctions(unittest.TestCase):
    def test_graph_means_what_numpy_computes(self):
        for case in CASES:
            with self.subTest(case.name):
                traced = td.make_graph(case.traced, *case.arguments)
                arrays = graph_oracle.evaluate(traced.graph, [np.asarray(argument) for argument in case.arguments])
                for array, spec in zip(arrays, traced.output_specs):
                    self.assertEqual(array.dtype, spec.dtype.numpy, case.name)
                    self.assertEqual(len(array.shape), len(spec.shape), case.name)
                    for size, traced_size in zip(array.shape, spec.shape):
                        if isinstance(traced_size, int):  # others are known only when the program runs
                            self.assertEqual(size, traced_size, case.name)
                check_equal(self, case, traced.unflatten_results(arrays), case.expected())

    def test_case_names_are_unique_enough_to_find(self):
        self.assertGreater(len(CASES), 250)


if __name__ == "__main__":
    unittest.main()
