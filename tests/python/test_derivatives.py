"""td.grad and its like: conventions of arguments, and derivatives against differences and closed forms.

Needs TENSORD_BINARY, the path of the tensord binary; skipped without.
"""

import collections
import unittest
import unittest.mock

import numpy as np

import checkout  # noqa: F401
from server_test import ServerTest
import tensord as td

Pair = collections.namedtuple("Pair", "scale shift")


def differences(function, x, step=1e-6):
    """The gradient of a function of NumPy arrays by central differences."""
    slopes = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        change = np.zeros_like(x)
        change[index] = step
        slopes[index] = (function(x + change) - function(x - change)) / (2 * step)
    return slopes


def loss(parameters, x, y):
    hidden = np.tanh(x @ parameters["w"] + parameters["b"])
    return ((hidden @ parameters["v"] - y) ** 2).mean()


def network(seed=3, rows=7):
    random = np.random.default_rng(seed)
    parameters = {"w": random.normal(size=(4, 5)), "b": random.normal(size=5), "v": random.normal(size=5)}
    return parameters, random.normal(size=(rows, 4)), random.normal(size=rows)


class DerivativeTest(ServerTest):
    def evaluate(self, function, *args, **options):
        return td.evaluate(function, *args, client=self.client, **options)

    def refuses(self, error, words, function, *args):
        with self.assertRaisesRegex(error, words):
            self.evaluate(function, *args)


class Gradients(DerivativeTest):
    def test_a_network(self):
        parameters, x, y = network()
        value, slopes = self.evaluate(td.value_and_grad(loss), parameters, x, y)
        self.assertAlmostEqual(float(value), loss(parameters, x, y), places=12)
        self.assertEqual(list(slopes), list(parameters))
        for name, slope in slopes.items():
            expected = differences(lambda one: loss({**parameters, name: one}, x, y), parameters[name])
            np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-8)
            self.assertEqual(slope.dtype, np.float64)

    def test_symbolic_sizes(self):
        parameters, x, y = network()
        program = self.compile(td.grad(loss), parameters, td.spec(("n", 4)), td.spec("n"))
        for rows in (1, 3, 7):
            alone = self.evaluate(td.grad(loss), parameters, x[:rows], y[:rows])
            for name, slope in program(parameters, x[:rows], y[:rows]).items():
                np.testing.assert_allclose(slope, alone[name], rtol=1e-12, atol=1e-14)
        self.assertEqual(program.compile_count, 1)

    def test_a_size_that_only_the_trace_knows(self):
        def of_scale(x, scale):
            return td.grad(lambda s: td.sum(td.zeros(x.shape) + s * s))(scale)

        program = self.compile(of_scale, td.spec("n"), 0.0)
        self.assertEqual(program(np.zeros(6), 2.5), 6 * 5.0)

    def test_sizes_that_the_run_decides(self):
        def step(x, y, count):
            a, b = x[:count], y[:count]
            return td.value_and_grad(lambda one: (one * one * b).sum())(a)

        x, y = np.arange(1.0, 6.0), np.arange(2.0, 7.0)
        for count in (0, 2, 5):
            value, slope = self.evaluate(step, x, y, count)
            np.testing.assert_allclose(value, (x * x * y)[:count].sum())
            np.testing.assert_allclose(slope, (2 * x * y)[:count])

    def test_argnums(self):
        def product(x, y, z):
            return (x * y * y * z).sum()

        x, y, z = (np.arange(1.0, 4.0) + shift for shift in range(3))
        np.testing.assert_allclose(self.evaluate(td.grad(product), x, y, z), y * y * z)
        np.testing.assert_allclose(self.evaluate(td.grad(product, 1), x, y, z), 2 * x * y * z)
        np.testing.assert_allclose(self.evaluate(td.grad(product, -1), x, y, z), x * y * y)
        both = self.evaluate(td.grad(product, argnums=(2, 0)), x, y, z)
        self.assertIsInstance(both, tuple)
        for one, expected in zip(both, (x * y * y, y * y * z), strict=True):
            np.testing.assert_allclose(one, expected)
        self.assertEqual(len(self.evaluate(td.grad(product, [1]), x, y, z)), 1)
        self.assertEqual(self.evaluate(td.grad(product, ()), x, y, z), ())

    def test_arguments_by_name(self):
        def scaled(x, scale=2.0):
            return (x**3).sum() * scale

        x = np.array([1.0, 2.0])
        program = self.compile(td.grad(scaled), x=x, scale=0.0)
        np.testing.assert_allclose(program(x=x, scale=5.0), 15 * x**2)
        np.testing.assert_allclose(self.evaluate(td.grad(scaled), x), 6 * x**2)
        inner = self.evaluate(lambda one: td.grad(scaled)(one, scale=one.sum()), x)
        np.testing.assert_allclose(inner, 9 * x**2)

    def test_has_aux(self):
        def with_others(x):
            y = np.exp(x)
            return y.sum(), {"y": y, "count": (x > 0).sum(), "x": x, "word": None}

        x = np.array([-1.0, 2.0])
        slope, others = self.evaluate(td.grad(with_others, has_aux=True), x)
        (value, again), same = self.evaluate(td.value_and_grad(with_others, has_aux=True), x)
        for one in (slope, same, others["y"], again["y"]):
            np.testing.assert_allclose(one, np.exp(x))
        np.testing.assert_array_equal(others["x"], x)
        self.assertEqual((int(others["count"]), others["word"]), (1, None))
        np.testing.assert_allclose(value, np.exp(x).sum())

    def test_trees(self):
        def of_tree(tree):
            pair, (z, nothing), [u] = tree
            return (pair.scale * z + pair.shift).sum() + u * u

        tree = (Pair(np.array([1.0, 2.0]), np.array([3.0, 4.0])), (np.array([5.0, 6.0]), None), [np.float32(7)])
        slopes = self.evaluate(td.grad(of_tree), tree)
        self.assertIsInstance(slopes[0], Pair)
        np.testing.assert_allclose(slopes[0].scale, [5, 6])
        np.testing.assert_allclose(slopes[0].shift, [1, 1])
        np.testing.assert_allclose(slopes[1][0], [1, 2])
        self.assertIsNone(slopes[1][1])
        self.assertEqual((slopes[2][0], slopes[2][0].dtype), (14, np.float32))

    def test_values_of_the_trace_are_constants(self):
        x = np.array([1.0, 2.0])
        np.testing.assert_allclose(self.evaluate(lambda x: td.grad(lambda w: (w * x).sum())(x), x), x)
        np.testing.assert_allclose(self.evaluate(lambda x: td.grad(lambda w: (w * w.T * x).sum())(x), x), 2 * x * x)

        def with_work_outside(x):
            scale = td.exp(x)
            return td.grad(lambda w: (w**2 * scale).sum())(scale)

        np.testing.assert_allclose(self.evaluate(with_work_outside, x), 2 * np.exp(2 * x))

    def test_a_result_that_does_not_depend(self):
        x = np.array([1.0, 2.0])
        np.testing.assert_array_equal(self.evaluate(td.grad(lambda x: 3.0), x), [0, 0])
        np.testing.assert_array_equal(self.evaluate(lambda x: td.grad(lambda w: x.sum())(x), x), [0, 0])
        self.assertEqual(self.evaluate(td.grad(lambda x: x), 2.0), 1)
        np.testing.assert_array_equal(self.evaluate(td.grad(lambda x: (x > 1).sum() * 1.0), x), [0, 0])

    def test_nested(self):
        x = 0.7
        function, expected = np.sin, (np.cos(x), -np.sin(x), -np.cos(x), np.sin(x))
        for derivative in expected:
            function = td.grad(function)
            np.testing.assert_allclose(self.evaluate(function, x), derivative, rtol=1e-12)

        def outer(x):  # by x directly, and through the inner gradient
            return (td.grad(lambda w: (w**3 * x).sum())(x) * x).sum()

        values = np.array([1.0, 2.0])
        np.testing.assert_allclose(self.evaluate(td.grad(outer), values), 3 * 4 * values**3)

    def test_an_unrolled_recurrence(self):
        def train(w, x):
            for _ in range(20):
                w = w - 0.1 * td.grad(lambda one: ((one * x - 1) ** 2).sum())(w)
            return w

        w, x = np.array([0.1, 0.2]), np.array([1.0, 2.0])
        expected = w
        for _ in range(20):
            expected = expected - 0.2 * (expected * x - 1) * x
        np.testing.assert_allclose(self.evaluate(train, w, x), expected, rtol=1e-12)

    def test_complex_numbers(self):
        z = np.array([1 + 2j, 3 - 1j])
        np.testing.assert_allclose(self.evaluate(td.grad(lambda z: (abs(z) ** 2).sum()), z), 2 * z)
        np.testing.assert_allclose(self.evaluate(td.grad(lambda z: td.real((2 + 1j) * z).sum()), z), [2 - 1j] * 2)
        slope = self.evaluate(td.grad(lambda z: z**3, holomorphic=True), 1 + 2j)
        np.testing.assert_allclose(slope, 3 * (1 + 2j) ** 2)

    def test_linear_algebra(self):
        random = np.random.default_rng(1)
        a = random.normal(size=(4, 4))
        a = a @ a.T + 4 * np.eye(4)
        slope = self.evaluate(td.grad(lambda a: 2 * td.log(td.diagonal(td.linalg.cholesky(a))).sum()), a)
        inverse = np.linalg.inv(a)
        np.testing.assert_allclose(slope, np.tril(inverse) + np.tril(inverse, -1), rtol=1e-9)

    def test_narrow_floats(self):
        x = np.array([1, 2], np.float16)
        slope = self.evaluate(td.grad(lambda x: (x * x).sum()), x)
        self.assertEqual(slope.dtype, np.float16)
        np.testing.assert_array_equal(slope, [2, 4])


class Directions(DerivativeTest):
    def test_jvp(self):
        def function(x, y):
            return {"product": x * y, "count": (x > 0).sum()}

        x, y, t, u = np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([1.0, 0.5]), np.array([0.0, 2.0])
        values, slopes = self.evaluate(lambda *a: td.jvp(function, a[:2], a[2:]), x, y, t, u)
        np.testing.assert_allclose(values["product"], x * y)
        np.testing.assert_allclose(slopes["product"], t * y + x * u)
        self.assertIsNone(slopes["count"])
        value, slope, others = self.evaluate(lambda x: td.jvp(lambda x: (x * x, x + 1), (x,), (x,), has_aux=True), x)
        np.testing.assert_allclose(slope, 2 * x * x)
        np.testing.assert_allclose(others, x + 1)

    def test_vjp(self):
        def function(a, x):
            return a @ x, x.sum()

        def both(a, x, ct, one):
            values, backward = td.vjp(function, a, x)
            return values, backward((ct, one)), backward((2 * ct, 0.0))

        a, x = np.arange(6.0).reshape(2, 3), np.array([1.0, -1.0, 2.0])
        ct = np.array([3.0, 5.0])
        values, first, second = self.evaluate(both, a, x, ct, 7.0)
        np.testing.assert_allclose(values[0], a @ x)
        np.testing.assert_allclose(first[0], np.outer(ct, x))
        np.testing.assert_allclose(first[1], ct @ a + 7)
        np.testing.assert_allclose(second[0], 2 * np.outer(ct, x))
        np.testing.assert_allclose(second[1], 2 * ct @ a)

    def test_cotangents_are_adjoints(self):
        random = np.random.default_rng(2)
        a, ct = (random.normal(size=(2, 3)) + 1j * random.normal(size=(2, 3)) for _ in range(2))
        x, ct = a[0], ct[:, 0]
        slope = self.evaluate(lambda a, x, ct: td.vjp(lambda x: a @ x, x)[1](ct)[0], a, x, ct)
        np.testing.assert_allclose(slope, a.conj().T @ ct)

    def test_what_the_passes_share_is_added_once(self):
        def three_times(x):
            _, backward = td.vjp(td.tanh, x)
            return [backward(x * factor)[0] for factor in (1.0, 2.0, 3.0)]

        graph = td.make_graph(three_times, td.spec((4,)), client=self.client).graph
        tanh = td.contract.UNARY_OPS["UNARY_OP_TANH"]
        self.assertEqual(sum(node.WhichOneof("op") == "unary" and node.unary == tanh for node in graph.nodes), 1)
        names = [node.name for node in graph.nodes] + [one.name for one in graph.inputs]
        self.assertEqual(len(set(names)), len(names))

    def test_sizes_that_the_run_decides(self):
        def step(x, ct, count):
            value, backward = td.vjp(lambda x: x[:count] ** 2, x)
            return value, backward(ct[:count])[0]

        x, ct = np.arange(1.0, 5.0), np.arange(2.0, 6.0)
        value, slope = self.evaluate(step, x, ct, 3)
        np.testing.assert_allclose(value, x[:3] ** 2)
        np.testing.assert_allclose(slope, [*(2 * x * ct)[:3], 0])

    def test_hvp(self):
        def function(x):
            return (x**3).sum() + x[0] * x[1]

        x, v = np.array([1.0, 2.0, 3.0]), np.array([1.0, -1.0, 2.0])
        matrix = self.evaluate(td.hessian(function), x)
        expected = np.diag(6 * x)
        expected[0, 1] = expected[1, 0] = 1
        np.testing.assert_allclose(matrix, expected)
        product = self.evaluate(lambda x, v: td.hvp(function, (x,), (v,)), x, v)
        np.testing.assert_allclose(product, expected @ v)


class Checkpoints(DerivativeTest):
    @staticmethod
    def layers(x, weights):
        for w in weights:
            x = np.tanh(x @ w)
        return x

    def deep(self, wrap):
        def function(weights, x):
            for first in range(0, 12, 3):
                x = wrap(self.layers)(x, weights[first : first + 3])
            return (x**2).mean()

        random = np.random.default_rng(5)
        return function, [random.normal(size=(4, 4)) for _ in range(12)], random.normal(size=(6, 4))

    def test_the_same_gradient(self):
        function, weights, x = self.deep(td.checkpoint)
        plain = self.deep(lambda f: f)[0]
        for derivative in (td.grad, td.value_and_grad, td.jacrev):
            for found, expected in zip(
                td.arguments.tree.flatten(self.evaluate(derivative(function), weights, x))[0],
                td.arguments.tree.flatten(self.evaluate(derivative(plain), weights, x))[0],
            ):
                np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(
            self.evaluate(lambda w, x: td.jvp(lambda w: function([w] + weights[1:], x), (w,), (w,))[1], weights[0], x),
            self.evaluate(lambda w, x: td.jvp(lambda w: plain([w] + weights[1:], x), (w,), (w,))[1], weights[0], x),
            rtol=1e-13,
        )

    def test_what_is_between_is_computed_again(self):
        function, weights, x = self.deep(td.checkpoint)
        graph = td.make_graph(td.grad(function), weights, x, client=self.client).graph
        barriers = sum(node.WhichOneof("op") == "optimization_barrier" for node in graph.nodes)
        self.assertGreater(barriers, 4)
        tanhs = sum(node.unary == 9 for node in graph.nodes if node.WhichOneof("op") == "unary")
        self.assertEqual(tanhs, 12 + 8)  # the result of each call is kept
        plain = td.make_graph(td.grad(self.deep(lambda f: f)[0]), weights, x, client=self.client).graph
        self.assertNotIn("optimization_barrier", {node.WhichOneof("op") for node in plain.nodes})

    def test_nested_and_repeated(self):
        def f(x):
            inner = td.checkpoint(lambda x: np.sin(np.exp(np.sin(x))))
            return td.checkpoint(lambda x: np.cos(inner(x) * x))(x).sum()

        def plain(x):
            return np.cos(np.sin(np.exp(np.sin(x))) * x).sum()

        x = np.array([0.3, -1.2])
        np.testing.assert_allclose(self.evaluate(td.grad(f), x), self.evaluate(td.grad(plain), x), rtol=1e-13)
        np.testing.assert_allclose(self.evaluate(td.hessian(f), x), self.evaluate(td.hessian(plain), x), rtol=1e-12)
        self.assertEqual(self.evaluate(f, x), self.evaluate(plain, x))
        self.assertEqual(td.checkpoint(plain)(x), plain(x))

    def test_two_passes(self):
        graph = td.make_graph(lambda x, w: (np.exp(np.sin(x) @ w)).sum(), np.ones((2, 3)), np.ones(3)).graph
        whole = self.client.differentiate(graph, "grad", checkpoints=["x"])
        forward, backward = self.client.differentiate(graph, "grad", checkpoints=["x"], split=True)
        x, w = np.arange(6.0).reshape(2, 3), np.array([0.1, 0.2, 0.3])
        self.assertEqual([one.name for one in forward.outputs], [one.name for one in graph.outputs])
        self.assertEqual([one.name for one in backward.inputs], ["x", "w"])
        expected, _ = self.client.execute(whole, [x, w])
        for found, slope in zip(self.client.execute(backward, [x, w])[0], expected):
            np.testing.assert_allclose(found, slope, rtol=1e-13)
        with self.assertRaisesRegex(td.InvalidArgument, "nowhere"):
            self.client.differentiate(graph, "grad", checkpoints=["nowhere"])


class Jacobians(DerivativeTest):
    def test_both_agree(self):
        def function(x):
            return np.sin(x)[:, None] * x * np.arange(1.0, 4.0)

        x = np.array([0.3, -0.2, 0.9])
        columns = self.evaluate(td.jacfwd(function), x)
        rows = self.evaluate(td.jacrev(function), x)
        self.assertEqual(columns.shape, (3, 3, 3))
        np.testing.assert_allclose(columns, rows, atol=1e-14)
        for place in np.ndindex(3, 3):
            expected = differences(lambda x: (np.sin(x)[:, None] * x * np.arange(1.0, 4.0))[place], x)
            np.testing.assert_allclose(rows[place], expected, atol=1e-8)

    def test_structures(self):
        def function(a, b):
            return {"sum": a["x"].sum() + b, "product": a["x"] * b}

        a, b = {"x": np.array([1.0, 2.0])}, 3.0
        for jacobian in (td.jacfwd, td.jacrev):
            found = self.evaluate(jacobian(function, argnums=(0, 1)), a, b)
            np.testing.assert_allclose(found["sum"][0]["x"], [1, 1])
            np.testing.assert_allclose(found["sum"][1], 1)
            np.testing.assert_allclose(found["product"][0]["x"], 3 * np.eye(2))
            np.testing.assert_allclose(found["product"][1], [1, 2])
            alone = self.evaluate(jacobian(function), a, b)
            np.testing.assert_allclose(alone["product"]["x"], 3 * np.eye(2))
            slopes, others = self.evaluate(jacobian(lambda x: (x * x, x), has_aux=True), a["x"])
            np.testing.assert_allclose(slopes, np.diag([2, 4]))
            np.testing.assert_allclose(others, [1, 2])

    def test_hessian_of_a_tree(self):
        def function(p):
            return (p["a"] * p["a"]).sum() * p["b"]

        found = self.evaluate(td.hessian(function), {"a": np.array([1.0, 2.0]), "b": 3.0})
        np.testing.assert_allclose(found["a"]["a"], 6 * np.eye(2))
        np.testing.assert_allclose(found["a"]["b"], [2, 4])
        np.testing.assert_allclose(found["b"]["a"], [2, 4])
        np.testing.assert_allclose(found["b"]["b"], 0)

    def test_holomorphic(self):
        z = np.array([1 + 1j, 2 - 1j])
        for jacobian in (td.jacfwd, td.jacrev):
            np.testing.assert_allclose(self.evaluate(jacobian(lambda z: z**2, holomorphic=True), z), np.diag(2 * z))
        self.refuses(TypeError, "td.jacfwd: an argument of .* complex128.*set holomorphic", td.jacfwd(lambda z: abs(z)), z)
        self.refuses(TypeError, "td.jacrev: a result of .* complex128", td.jacrev(lambda x: x * 1j), z.real)

    def test_no_elements(self):
        for jacobian in (td.jacfwd, td.jacrev):
            self.assertEqual(self.evaluate(jacobian(lambda x: x[1:]), np.zeros(1)).shape, (0, 1))
            self.assertEqual(self.evaluate(jacobian(lambda x: x.sum()), np.zeros(0)).shape, (0,))

    def test_sizes_are_known(self):
        with self.assertRaisesRegex(TypeError, "td.jacfwd makes nodes for each element.* known only when the program runs"):
            self.compile(td.jacfwd(lambda x: x * x), td.spec("n"))


class Refusals(DerivativeTest):
    def test_results(self):
        x = np.array([1.0, 2.0])
        self.refuses(TypeError, r"td.grad takes a function that returns one real number, and square returns float64\[2\].*td.sum",
                     td.grad(np.square), x)  # fmt: skip
        self.refuses(TypeError, "value_and_grad .*has_aux=True", td.value_and_grad(lambda x: (x.sum(), x)), x)
        self.refuses(TypeError, r"complex128\[\]: take td.real", td.grad(lambda x: (x * 1j).sum()), x)
        self.refuses(TypeError, r"int64\[\]", td.grad(lambda x: (x > 0).sum()), x)
        self.refuses(TypeError, "with has_aux: .* returns a pair", td.grad(lambda x: x.sum(), has_aux=True), x)
        self.refuses(TypeError, "one complex number", td.grad(lambda x: x.sum(), holomorphic=True), x)

    def test_arguments(self):
        x = np.array([1, 2])
        self.refuses(TypeError, r"td.grad differentiates with respect to floats.*int64\[2\].*argnums",
                     td.grad(lambda x: (x * 1.5).sum()), x)  # fmt: skip
        self.refuses(TypeError, "argument that is differentiated holds 'mode'", lambda x: td.grad(lambda m: x)("mode"), x)
        self.refuses(ValueError, "argnums is 2, and the function was given 1 ", td.grad(lambda x: x, 2), 1.0)
        self.refuses(ValueError, "names an argument twice", td.grad(lambda x, y: x, (0, -2)), 1.0, 2.0)
        self.refuses(TypeError, "argnums is an integer", td.grad(lambda x: x, "x"), 1.0)

    def test_directions(self):
        x = np.array([1.0, 2.0])
        self.refuses(ValueError, "a tangent for each primal", lambda x: td.jvp(np.sin, (x,), ()), x)
        self.refuses(TypeError, r"takes primals as a tuple.*\(primals,\)", lambda x: td.jvp(np.sin, x, x), x)
        self.refuses(ValueError, r"a float64\[2\] takes one of the same type, not float64\[1\]",
                     lambda x: td.jvp(np.sin, (x,), (x[:1],)), x)  # fmt: skip
        self.refuses(TypeError, "takes one of the same type", lambda x: td.vjp(np.sin, x)[1](x.astype("float32")), x)
        self.refuses(TypeError, "in their structure", lambda x: td.vjp(lambda x: (x, x), x)[1](x), x)

    def test_outside_of_a_trace(self):
        with self.assertRaisesRegex(RuntimeError, r"td.evaluate\(td.grad\(function\), x\)"):
            td.grad(np.sin)(1.0)

    def test_an_operation_without_a_derivative(self):
        with self.assertRaises(td.Unimplemented) as refused:
            self.evaluate(td.grad(lambda a: abs(td.linalg.eig(a)[1]).sum()), np.diag([1.0, 2.0]))
        self.assertEqual(refused.exception.op, "tensord.linalg.v1.Eig")
        self.assertTrue(refused.exception.node.startswith("eig_"), refused.exception.node)

    def test_another_algebra(self):
        with self.assertRaises(td.Unimplemented):
            self.evaluate(td.grad(lambda x: (x * x).sum()), np.ones(3), algebra="max_plus")

    def test_a_failure_leaves_the_trace_whole(self):
        def recovers(x):
            try:
                td.grad(lambda w: td.sum(w * x) + undefined)(x)  # noqa: F821
            except NameError:
                return x + 1

        np.testing.assert_array_equal(self.evaluate(recovers, np.ones(2)), [2, 2])

    def test_an_argument_that_escapes(self):
        def escapes(x):
            found = []
            td.grad(lambda w: found.append(w) or w.sum())(x)
            return found[0] + 1

        self.refuses(ValueError, "stood for an argument of a function that is differentiated", escapes, np.ones(2))

    def test_a_mode_that_is_none(self):
        with self.assertRaisesRegex(ValueError, "'jvp', 'vjp' or 'grad'"):
            self.client.differentiate(td.make_graph(np.sin, 1.0).graph, "gradient")


class Servers(DerivativeTest):
    def test_large_constants_stay_here(self):
        big = np.random.default_rng(0).normal(size=(100, 100))
        with unittest.mock.patch.object(self.client, "differentiate", wraps=self.client.differentiate) as asked:
            slope = self.evaluate(td.grad(lambda x: (big @ x).sum()), np.ones(100))
        np.testing.assert_allclose(slope, big.sum(0), rtol=1e-12)
        (graph, *_), _ = asked.call_args
        self.assertLess(graph.ByteSize(), 2000)

    def test_the_default_client_serves_a_trace_without_one(self):
        with unittest.mock.patch("tensord.derivatives.derivative.default_client", return_value=self.client) as asked:
            traced = td.make_graph(td.grad(np.sin), 1.0)
        asked.assert_called_once_with()
        (value,), _ = self.client.execute(traced.graph, [np.float64(0.0)])
        self.assertEqual(value, 1)

    def test_parameters_that_stay_on_the_server(self):
        parameters, x, y = network()

        def step(parameters, x, y):
            value, slopes = td.value_and_grad(loss)(parameters, x, y)
            return {name: one - 0.1 * slopes[name] for name, one in parameters.items()}, value

        expected = parameters
        with self.client.session() as session:
            resident = {name: session.put(one) for name, one in parameters.items()}
            program = self.compile(step, resident, x, y)
            kept = ({name: True for name in resident}, False)
            for _ in range(3):
                donated = {name: one.donate() for name, one in resident.items()}
                resident, value = program(donated, x, y, keep=kept)
                slopes = self.evaluate(td.grad(loss), expected, x, y)
                np.testing.assert_allclose(value, loss(expected, x, y), rtol=1e-12)
                expected = {name: one - 0.1 * slopes[name] for name, one in expected.items()}
            for name, one in resident.items():
                np.testing.assert_allclose(one.fetch(), expected[name], rtol=1e-12)

    def test_resident_tensors_are_evaluated(self):
        x = np.array([1.0, 2.0])
        with self.client.session() as session:
            w = session.put(x)
            np.testing.assert_allclose(self.evaluate(td.grad(lambda w, x: (w * w * x).sum()), w, x), 2 * x * x)
            slope = td.evaluate(td.grad(lambda w: (w * w).sum()), w.donate())  # by the session's client
            np.testing.assert_allclose(slope, 2 * x)
            with self.assertRaisesRegex(ValueError, "deleted or donated"):
                w.fetch()

    def test_a_resident_tensor_is_no_constant(self):
        with self.client.session() as session:
            w = session.put(np.ones(2))
            self.refuses(TypeError, "on the server, and no constant.*argument of the program",
                         td.grad(lambda x: (x * w).sum()), np.ones(2))  # fmt: skip

    def test_constants_are_read_as_the_compilation_reads_them(self):
        weights = np.arange(6.0).reshape(2, 3)
        graph = td.make_graph(lambda x: (x * weights).sum(), td.spec((2, 3))).graph
        for node in graph.nodes:
            if node.WhichOneof("op") == "constant":
                node.constant.value.ClearField("order")
        slope = self.client.differentiate(graph, "grad")
        (found,), _ = self.client.execute(slope, [np.zeros((2, 3))])
        np.testing.assert_array_equal(found, weights)

    def test_derivatives_of_derivatives_by_the_call(self):
        graph = td.make_graph(lambda x, y: (x**3 * y).sum(), np.ones(2), np.ones(2)).graph
        first = self.client.differentiate(graph, "grad", ["x"], keep_outputs=True)
        self.assertEqual([one.name for one in first.inputs], ["x", "y"])
        self.assertEqual(len(first.outputs), 2)
        second = self.client.differentiate(first, "jvp", ["y"])
        x, y, t = np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([1.0, -1.0])
        found, _ = self.client.execute(second, [x, y, t])
        np.testing.assert_allclose(found[0], (x**3 * t).sum())
        np.testing.assert_allclose(found[1], 3 * x**2 * t)


if __name__ == "__main__":
    unittest.main()
