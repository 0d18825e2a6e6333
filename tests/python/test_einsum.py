"""The graphs and refusals of td.einsum; its results are among the function cases. Needs no server."""

import unittest

import checkout  # noqa: F401
import numpy as np
import tensord as td
from tensord import contract

A, B = td.spec((3, 4)), td.spec((4, 2))


def sent(function, *specs):
    """The Einsum of a function whose last node is one."""
    operation = td.make_graph(function, *specs).graph.nodes[-1].extension.op
    return contract.message_class(operation.type_url.rpartition("/")[2]).FromString(operation.value)


class Einsum(unittest.TestCase):
    def test_equations(self):
        for subscripts, equation in (
            ("ij,jk", "ij,jk->ik"),
            ("jB, Ba", "jB,Ba->aj"),
            ("(ij),jk->ki", "(ij),jk->ki"),
            ("i3,3й->йi", "iZ,ZY->Yi"),
            ("αβ,βγ", "ZY,YX->ZX"),
            ("21,1α", "ZY,YX->ZX"),
        ):
            self.assertEqual(sent(lambda x, y: td.einsum(subscripts, x, y), A, B).equation, equation)
        self.assertEqual(sent(lambda x, y: td.einsum(x, [26, 1], y, [1, 2]), A, B).equation, "Ab,bc->cA")

    def test_label_lists(self):
        message = sent(lambda x: td.einsum(x, [60, 70], []), A)
        self.assertEqual(message.equation, "ZY->")
        count = 60
        message = sent(lambda *x: td.einsum(*[p for i, one in enumerate(x) for p in (one, [i, i + 1])], [count, 0]),
                       *[td.spec((2, 2))] * count)  # fmt: skip
        self.assertEqual(message.equation, "")
        self.assertEqual([list(term.labels) for term in message.operands], [[i, i + 1] for i in range(count)])
        self.assertEqual(list(message.output.labels), [count, 0])
        empty = sent(lambda *x: td.einsum(*[p for i, one in enumerate(x) for p in (one, [i])], []), *[td.spec(2)] * 53)
        self.assertTrue(empty.HasField("output"))

    def test_orders(self):
        numbers = contract.enum_values("tensord.einsum.v1.Einsum.Optimizer")
        for optimize, name in ((True, "AUTO"), ("auto", "AUTO"), (False, "LEFT_TO_RIGHT"), ("greedy", "GREEDY"),
                               ("optimal", "OPTIMAL")):  # fmt: skip
            message = sent(lambda x, y: td.einsum("ij,jk", x, y, optimize=optimize), A, B)
            self.assertEqual(message.optimizer, numbers["OPTIMIZER_" + name])
            self.assertFalse(message.HasField("largest_intermediate"))
        message = sent(lambda x, y: td.einsum("ij,jk,kl", x, y, x.T[:2], optimize=(["einsum_path", (1, 2), (0, 1)], 1e6)),
                       A, B)  # fmt: skip
        self.assertEqual([list(step.operands) for step in message.path], [[1, 2], [0, 1]])
        self.assertEqual(message.largest_intermediate, 1000000)

    def test_mistakes(self):
        for error, call in (
            (ValueError, lambda x, y: td.einsum()),
            (ValueError, lambda x, y: td.einsum("ij,jk", x)),
            (ValueError, lambda x, y: td.einsum("ij", x, y)),
            (ValueError, lambda x, y: td.einsum("ijk,jk", x, y)),
            (ValueError, lambda x, y: td.einsum("ij,kj", x, y)),
            (ValueError, lambda x, y: td.einsum("ii,jk", x, y)),
            (ValueError, lambda x, y: td.einsum("ij,jk->il", x, y)),
            (ValueError, lambda x, y: td.einsum("ij->jk->ik", x)),
            (ValueError, lambda x, y: td.einsum("i-,-k->ik", x, y)),
            (ValueError, lambda x, y: td.einsum("i\t,jk->ik", x, y)),
            (ValueError, lambda x, y: td.einsum("i.j,jk", x, y)),
            (ValueError, lambda x, y: td.einsum("i*,*k", x, y)),
            (ValueError, lambda x, y: td.einsum("i_,_k->ik", x, y)),
            (ValueError, lambda x, y: td.einsum("i\u2003,\u2003k->ik", x, y)),
            (ValueError, lambda x, y: td.einsum("...j...,jk", x, y)),
            (ValueError, lambda x, y: td.einsum("...j,jk->k", x, y)),
            (ValueError, lambda x, y: td.einsum("(ij,jk->ik", x, y)),
            (ValueError, lambda x, y: td.einsum("ij),jk->ik", x, y)),
            (ValueError, lambda x, y: td.einsum("(ij)jk->ik", x, y)),
            (ValueError, lambda x, y: td.einsum("(ij,jk)", x, y)),
            (ValueError, lambda x, y: td.einsum("ij,jk", x, y, optimize="best")),
            (ValueError, lambda x, y: td.einsum("ij,jk", x, y, optimize=[(0, 2)])),
            (ValueError, lambda x, y: td.einsum("ij,jk", x, y, optimize=[(0, 1), (0, 1)])),
            (ValueError, lambda x, y: td.einsum("ij,jk,k", x, y, y[0], optimize=[(0, 1)])),
            (ValueError, lambda x, y: td.einsum("ij,jk", x, y, optimize=("greedy", 0))),
            (ValueError, lambda x, y: td.einsum("ij,jk", x, y, order="Z")),
            (TypeError, lambda x, y: td.einsum("ij,jk", x, y, optimize=3)),
            (TypeError, lambda x, y: td.einsum("ij,jk", x, y, out=x)),
            (TypeError, lambda x, y: td.einsum("ij,jk", x, y, dtype=np.float32)),
            (TypeError, lambda x, y: td.einsum(x, "ij", y, "jk")),
            (TypeError, lambda x, y: td.einsum(x, [0, -1], y, [1, 2])),
            (TypeError, lambda x, y: td.einsum(x, [0, True], y, [1, 2])),
        ):
            with self.subTest(call.__code__.co_firstlineno), self.assertRaises(error) as context:
                td.make_graph(call, A, B)
            self.assertIn("einsum", str(context.exception))

    def test_symbolic_sizes(self):
        traced = td.make_graph(lambda x, y: td.einsum("...i,ij->j...", x, y), td.spec(("b", "n")), td.spec(("n", 5)))
        self.assertEqual(traced.output_specs[0], td.spec((5, "b")))
        with self.assertRaises(ValueError):
            td.make_graph(lambda x, y: td.einsum("ij,jk", x, y), td.spec(("n", "n")), td.spec(("m", 3)))


if __name__ == "__main__":
    unittest.main()
