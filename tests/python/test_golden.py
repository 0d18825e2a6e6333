"""The graphs of some functions, as text: what the client sends must not change unnoticed.

TENSORD_UPDATE_GOLDEN=1 rewrites the files in golden/; the diff is then for the reviewer.
"""

import os
import pathlib
import re
import unittest

from google.protobuf import text_format

import checkout  # noqa: F401
import tensord as td

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"


def dense_layer(x, weights, bias):
    return td.tanh(x @ weights + bias)


def batched_matmul(x, y):
    return x @ y


def layer_norm(x, scale):
    centered = x - x.mean(axis=-1, keepdims=True)
    return centered / td.sqrt((centered**2).mean(axis=-1, keepdims=True) + 1e-5) * scale


def finite_difference(u):
    return u[1:] - u[:-1]


def lookup(table, rows):
    return table[rows]


def sparse_update(table, rows, updates):
    return table.at[rows].add(updates)


def head(x, count):
    return x[:count] * 2.0


def subscripts(x, y, z):
    return td.einsum("...ij,jk,k->...i", x, y, z, optimize=("greedy", 1000))


def label_lists(x, y):
    return td.einsum(x, [0, 99], y, [99, 5], [5, 0], optimize=["einsum_path", (0, 1)])


def decompositions(a, b):
    _, values, vh = td.linalg.svd(a, full_matrices=False)
    return td.linalg.solve(a, b), values, td.linalg.pinv(vh, rcond=1e-3)


def spectra(x):
    return td.fft.rfft(x, 8, axis=0, norm="ortho"), td.fft.ifft2(x)


FUNCTIONS = {
    "decompositions": (decompositions, td.spec((5, 3, 3)), td.spec((5, 3, 2))),
    "label_lists": (label_lists, td.spec(("n", 4)), td.spec((4, 3))),
    "spectra": (spectra, td.spec((6, "n"), "float32")),
    "subscripts": (subscripts, td.spec((1, 2, 3)), td.spec((3, 1)), td.spec(4)),
    "dense_layer": (dense_layer, td.spec(("n", 4), "float32"), td.spec((4, 2), "float32"), td.spec(2, "float32")),
    "batched_matmul": (batched_matmul, td.spec((5, 2, 3)), td.spec((5, 3, 4))),
    "layer_norm": (layer_norm, td.spec((6, 8), "float32"), td.spec(8, "float32")),
    "finite_difference": (finite_difference, td.spec("n")),
    "sparse_update": (sparse_update, td.spec(("n", 3)), td.spec("m", "int64"), td.spec(("m", 3))),
    "head": (head, td.spec((10, 3)), td.spec((), "int64")),
    "lookup": (lookup, td.spec((10, 3)), td.spec((2, 2), "int64")),
}


class GoldenGraphs(unittest.TestCase):
    def test_graphs(self):
        for name, (function, *specs) in FUNCTIONS.items():
            with self.subTest(name):
                graph = td.make_graph(function, *specs).graph
                # protobuf's printers differ in their white space from release to release.
                text = re.sub(r" +$", "", text_format.MessageToString(graph), flags=re.MULTILINE)
                path = GOLDEN / f"{name}.txtpb"
                if os.environ.get("TENSORD_UPDATE_GOLDEN"):
                    GOLDEN.mkdir(exist_ok=True)
                    path.write_text(text)
                expected = text_format.Parse(path.read_text(), type(graph)())
                self.assertEqual(graph, expected, f"{path.name} is out of date: TENSORD_UPDATE_GOLDEN=1 rewrites it")


if __name__ == "__main__":
    unittest.main()
