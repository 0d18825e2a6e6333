"""td.einsum_path against np.einsum_path, and td.einsum with what it gives."""

import unittest

import numpy as np

import checkout  # noqa: F401
import tensord as td
from server_test import ServerTest
from tensord import contract, errors


class Report(unittest.TestCase):
    """No server is asked if there is nothing to plan."""

    CASES = (
        (("ij,jk->ik", np.ones((3, 4)), np.ones((4, 5))), {}),
        (("ij,jk", np.ones((3, 4)), np.ones((4, 5))), {"optimize": "optimal"}),
        (("ii->i", np.ones((4, 4))), {}),
        (("ij->", np.ones((3, 4))), {"optimize": True}),
        (("ij,jk,kl->il", np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 5))), {"optimize": False}),
        (("ij,jk,kl->il", np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 5))), {"optimize": None}),
        (("ij,jk,kl->il", np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 5))), {"optimize": ["einsum_path", (1, 2), (0, 1)]}),
        (("ij,jk,kl->il", np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 5))), {"optimize": ["einsum_path", (2, 0), (0, 1)]}),
        (("ij,jk,kl->il", np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 5))), {"optimize": ["einsum_path", (0, 1, 2)]}),
        (("ab,ab,c->", np.ones((2, 3)), np.ones((2, 3)), np.ones(6)), {"optimize": ["einsum_path", (0, 1), (0, 1)]}),
        (("ij,jk,k->ik", np.ones((3, 1)), np.ones((4, 5)), np.ones(5)), {"optimize": ["einsum_path", (1, 2), (0, 1)]}),
        (("ij,jk->ik", np.ones((3, 0)), np.ones((0, 5))), {}),
        ((np.ones((3, 4)), [0, 1], np.ones((4, 5)), [1, 2], [2, 0]), {}),
        ((np.ones((3, 4)), [5, 30], np.ones((4, 5)), [30, 2]), {}),
    )

    def test_path_and_text_are_numpys(self):
        for operands, options in self.CASES:
            with self.subTest(operands[0] if isinstance(operands[0], str) else operands[1::2], **options):
                path, text = np.einsum_path(*operands, **options)
                got_path, got_text = td.einsum_path(*operands, **options)
                self.assertEqual(got_path, path)
                # The letters for numbers have another order in each NumPy.
                is_text = isinstance(operands[0], str)
                self.assertEqual(*(one if is_text else one.lower() for one in (got_text, text)))

    def test_ellipses_and_many_labels_have_letters_too(self):
        path, text = td.einsum_path("...i,i...->...", np.ones((2, 3)), np.ones((3, 2)))
        self.assertEqual(path, ["einsum_path", (0, 1)])
        self.assertIn("Naive FLOP count:  1.200e+01", text)
        labels = list(range(60))
        _, text = td.einsum_path(np.ones((1,) * 30), labels[:30], np.ones((1,) * 30), labels[30:], [])
        self.assertIn("Naive scaling:  60", text)

    def test_types_are_enough(self):
        shapes = ("n", 4), (4, "m")
        path, text = td.einsum_path("ij,jk", *map(td.spec, shapes), sizes={"n": 1000})
        self.assertEqual(path, ["einsum_path", (0, 1)])
        self.assertEqual(text, np.einsum_path("ij,jk", np.ones((1000, 4)), np.ones((4, 64)))[1])

    def test_in_a_traced_function(self):
        found = []

        def product(x, y):
            found.append(np.einsum_path("ij,jk", x, y))
            return td.einsum("ij,jk", x, y, optimize=found[0][0])

        td.make_graph(product, td.spec((3, 4)), td.spec((4, 5)))
        self.assertEqual(found[0], np.einsum_path("ij,jk", np.ones((3, 4)), np.ones((4, 5))))

    def test_mistakes(self):
        x = np.ones((3, 4))
        for error, call in (
            (ValueError, lambda: td.einsum_path("ij,jk", x)),
            (ValueError, lambda: td.einsum_path("ij,jk", x, x)),
            (ValueError, lambda: td.einsum_path("ij,kj,kl", x, x, x, optimize="best")),
            (ValueError, lambda: td.einsum_path("ij,kj,kl", x, x, x, optimize=["einsum_path", (0, 1)])),
            (TypeError, lambda: td.einsum_path("ij,kj,kl", x, x, x, optimize=3)),
            (TypeError, lambda: td.einsum_path("ij", x, einsum_call=True)),
        ):
            with self.subTest(call.__code__.co_firstlineno), self.assertRaisesRegex(error, "einsum"):
                call()

    def test_a_server_that_does_not_tell(self):
        class Old:
            def plan_contractions(self, graph):
                return []

        with self.assertRaises(td.Unimplemented):
            td.einsum_path("i,i,i->", *[np.ones(3)] * 3, client=Old())


class Planned(ServerTest):
    """The server plans; NumPy prices what it planned alike."""

    def path(self, *operands, **options):
        return td.einsum_path(*operands, client=self.client, **options)

    def random_network(self, rng):
        count = rng.integers(3, 8)
        sizes = {label: int(rng.integers(1, 6)) for label in "abcdefgh"}
        terms = ["".join(rng.choice(list(sizes), rng.integers(1, 4), replace=False)) for _ in range(count)]
        used = sorted(set("".join(terms)))
        output = "".join(rng.choice(used, min(len(used), rng.integers(0, 4)), replace=False))
        arrays = [rng.integers(-2, 3, [sizes[label] for label in term]).astype(float) for term in terms]
        return f"{','.join(terms)}->{output}", arrays

    def test_random_networks(self):
        rng = np.random.default_rng(5)
        for number in range(40):
            equation, arrays = self.random_network(rng)
            optimize = ("greedy", "optimal", True, "auto", ("greedy", 10**6))[number % 5]
            with self.subTest(equation, optimize=optimize):
                path, text = self.path(equation, *arrays, optimize=optimize)
                self.assertEqual(path[0], "einsum_path")
                self.assertTrue(all(len(step) == 2 and step[0] < step[1] for step in path[1:]), path)
                self.assertEqual(text, np.einsum_path(equation, *arrays, optimize=path)[1])
                wanted = np.einsum(equation, *arrays)
                for optimize in (path, optimize):
                    got = td.evaluate(lambda *x: td.einsum(equation, *x, optimize=optimize), *arrays, client=self.client)
                    np.testing.assert_array_equal(got, wanted)

    def test_chains_are_contracted_as_numpys_optimum(self):
        shapes = [(2, 30), (30, 3), (3, 20), (20, 4), (4, 5)]
        arrays = [np.ones(shape) for shape in shapes]
        equation = "ab,bc,cd,de,ef->af"
        best = np.einsum_path(equation, *arrays, optimize=("optimal", 10**9))[1]
        for optimize in ("optimal", True):
            self.assertEqual(self.path(equation, *arrays, optimize=optimize)[1].split("-\n")[0].splitlines()[4],
                             best.splitlines()[4])  # fmt: skip

    def test_the_plan_tells_its_cost(self):
        arrays = [np.ones((10, 20)), np.ones((20, 3)), np.ones((3, 5))]
        graph = td.make_graph(lambda *x: td.einsum("ij,jk,kl->il", *x), *arrays).graph
        (plan,) = self.client.plan_contractions(graph)
        self.assertIsInstance(plan, contract.ContractionPlan)
        self.assertEqual((plan.flops, plan.largest_intermediate), (2 * 10 * 20 * 3 + 2 * 10 * 3 * 5, 30))
        self.assertEqual((plan.optimizer, plan.assumes_sizes), ("auto", False))
        symbolic = td.make_graph(lambda *x: td.einsum("ij,jk,kl->il", *x), td.spec(("n", 20)), *arrays[1:]).graph
        self.assertTrue(self.client.plan_contractions(symbolic)[0].assumes_sizes)
        program = td.compile(lambda *x: td.einsum("ij,jk,kl->il", *x, optimize="greedy"), *arrays, client=self.client)
        self.assertEqual(self.client.plan_contractions(program.fingerprint)[0].optimizer, "greedy")
        self.assertEqual(self.client.plan_contractions(td.make_graph(td.tanh, np.ones(3)).graph), [])

    def test_parentheses_are_a_path(self):
        path, _ = self.path("ij,(jk,kl)->il", np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 5)))
        self.assertEqual(path, ["einsum_path", (1, 2), (0, 1)])

    def test_lists_of_labels(self):
        arrays = [np.ones((10, 20)), np.ones((20, 3)), np.ones((3, 5))]
        path, text = self.path(arrays[0], [0, 1], arrays[1], [1, 2], arrays[2], [2, 3], [0, 3], optimize="optimal")
        self.assertEqual(path, ["einsum_path", (0, 1), (0, 1)])
        self.assertIn("ab,bc,cd->ad", text)

    def test_a_bound_that_no_path_keeps(self):
        arrays = [np.ones(100), np.ones(100), np.ones(100)]
        with self.assertRaises(errors.ResourceExhausted) as context:
            self.path("i,j,k->ijk", *arrays, optimize=("optimal", 10))
        self.assertEqual(context.exception.limit, "largest_intermediate")
        self.assertEqual(context.exception.limit_value, 10)


if __name__ == "__main__":
    unittest.main()
