"""td.linalg, td.fft and td.einsum on a server against NumPy, over dtypes, shapes and all options. TENSORD_SEED is another draw."""

import itertools
import os
import unittest

import numpy as np

import checkout  # noqa: F401
import tensord as td
from server_test import ServerTest
from tensord import contract

DTYPES = ("float32", "float64", "complex64", "complex128")
BATCHES = ((), (3,), (2, 2), (0,))
MATRICES = ((4, 4), (1, 1), (5, 3), (3, 5), (1, 4), (0, 3), (3, 0), (0, 0))
NORMS = (None, "backward", "ortho", "forward")
_CASES_OF_PROGRAM = 80


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


class Comparison(ServerTest):
    def setUp(self):
        self.rng = np.random.default_rng(int(os.environ.get("TENSORD_SEED", "1")))
        self.cases = []

    def random(self, dtype, *shape):
        values = self.rng.uniform(-1, 1, shape)
        if np.dtype(dtype).kind == "c":
            values = values + 1j * self.rng.uniform(-1, 1, shape)
        return values.astype(dtype)

    def square(self, dtype, *shape):
        """Far from singular."""
        return self.random(dtype, *shape) + (2 * shape[-1] * np.eye(shape[-1])).astype(dtype)

    def add(self, name, function, *arrays, wanted=None):
        """`function`, of Arrays or of NumPy arrays, is expected to give what it gives in NumPy, or `wanted` of those."""
        self.cases.append((name, function, arrays, wanted or function))

    def compare(self):
        """Runs the cases, many in a program."""
        self.assertGreater(len(self.cases), 0)
        for first in range(0, len(self.cases), _CASES_OF_PROGRAM):
            cases = self.cases[first : first + _CASES_OF_PROGRAM]
            got = td.evaluate(
                lambda *groups: [function(*group) for (_, function, _, _), group in zip(cases, groups)],
                *[arrays for _, _, arrays, _ in cases],
                client=self.client,
            )
            for (name, _, arrays, wanted), results in zip(cases, got):
                with self.subTest(name, shapes=[array.shape for array in arrays], dtype=arrays[0].dtype.name):
                    with np.errstate(all="ignore"):
                        self.check(results, wanted(*arrays), arrays[0].dtype)

    def check(self, got, wanted, dtype):
        if isinstance(wanted, (tuple, list)):
            self.assertEqual(len(got), len(wanted))
            for one_got, one_wanted in zip(got, wanted):
                self.check(one_got, one_wanted, dtype)
            return
        got, wanted = np.asarray(got), np.asarray(wanted)
        self.assertEqual(got.shape, wanted.shape)
        self.assertEqual(got.dtype.kind, wanted.dtype.kind)
        is_single = np.dtype(dtype).itemsize == (4 if np.dtype(dtype).kind == "f" else 8)
        if got.dtype.kind in "fc":
            self.assertEqual(np.finfo(got.dtype).bits, 32 if is_single else 64)
        tolerance = 2e-4 if is_single else 1e-10
        scale = max(1.0, np.abs(wanted[np.isfinite(wanted)]).max(initial=0))
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance * scale)

    def test_square_matrices(self):
        for dtype, batch, size in itertools.product(DTYPES, BATCHES, (1, 4, 0)):
            a = self.square(dtype, *batch, size, size)
            hermitian = a + adjoint(a)
            b = self.random(dtype, *batch, size, 2)
            self.add("inv", lambda a: np.linalg.inv(a), a)
            self.add("det", lambda a: np.linalg.det(a), a)
            self.add("slogdet", lambda a: tuple(np.linalg.slogdet(a)), a)
            self.add("solve", lambda a, b: np.linalg.solve(a, b), a, b)
            if not batch:
                self.add("solve of a vector", lambda a, b: np.linalg.solve(a, b[:, 0]), a, b)
            self.add("cholesky", lambda a: np.linalg.cholesky(a), hermitian)
            self.add("cholesky upper", lambda a: td.linalg.cholesky(a, upper=True), hermitian,
                     wanted=lambda a: adjoint(np.linalg.cholesky(a)))  # fmt: skip
            for triangle in ("L", "U"):
                self.add("eigvalsh", lambda a, t=triangle: np.linalg.eigvalsh(a, UPLO=t), a)
                self.add(
                    "eigh",
                    lambda a, t=triangle: (lambda w, v: (w, (v * w[..., None, :]) @ td.conj(td.matrix_transpose(v))))(
                        *td.linalg.eigh(a, t)
                    ),
                    a,
                    wanted=lambda a, t=triangle: (lambda w, v: (w, (v * w[..., None, :]) @ adjoint(v)))(*np.linalg.eigh(a, t)),
                )
            self.add("eigvals", lambda a: td.linalg.eigvals(a).sum(-1), a,
                     wanted=lambda a: np.trace(a, axis1=-2, axis2=-1) + 0j)  # fmt: skip
            self.add("eig", lambda a: (lambda w, v: a @ v - v * w[..., None, :])(*td.linalg.eig(a)), a, wanted=lambda a: 0j * a)
            for power in (-2, -1, 0, 1, 3):
                self.add(f"matrix_power {power}", lambda a, n=power: np.linalg.matrix_power(a, n), a / 4)
            if size and batch != (0,):
                for order in (None, 1, -1, 2, -2, np.inf, -np.inf, "fro", "nuc"):
                    # NumPy has some of complex matrices as complex numbers.
                    self.add(f"cond {order}", lambda a, p=order: np.linalg.cond(a, p), a,
                             wanted=lambda a, p=order: np.real(np.linalg.cond(a, p)))  # fmt: skip
        self.compare()

    def test_large_matrices_of_which_factors_are_not_read(self):
        for dtype, shape in itertools.product(DTYPES, ((150, 150), (200, 140), (140, 200), (40, 40))):
            a = self.random(dtype, *shape)
            self.add("qr r", lambda a: np.linalg.qr(a, mode="r"), a)
            if shape[0] == shape[1]:
                self.add("slogdet", lambda a: tuple(np.linalg.slogdet(a)), a)
                self.add("sign", lambda a: np.linalg.slogdet(a)[0], a)
        self.compare()

    def test_matrices_of_any_shape(self):
        for dtype, batch, shape in itertools.product(DTYPES, BATCHES, MATRICES):
            a = self.random(dtype, *batch, *shape)
            is_empty = 0 in a.shape
            for mode in ("reduced", "complete", "r", "raw"):
                if is_empty and batch and mode != "raw":
                    continue  # NumPy leaves what it has not computed in the results
                self.add(f"qr {mode}", lambda a, m=mode: (lambda r: tuple(r) if m != "r" else r)(np.linalg.qr(a, mode=m)), a)
            for full in (False, True):
                self.add(f"svd {full}", lambda a, f=full: (lambda u, s, vh: (s, u.shape, vh.shape))(*td.linalg.svd(a, f)), a,
                         wanted=lambda a, f=full: (lambda u, s, vh: (s, u.shape, vh.shape))(*np.linalg.svd(a, f)))  # fmt: skip
            self.add("svd product", lambda a: (lambda u, s, vh: (u * s[..., None, :]) @ vh)(*td.linalg.svd(a, False)), a,
                     wanted=lambda a: a)  # fmt: skip
            self.add("svdvals", lambda a: td.linalg.svdvals(a), a, wanted=lambda a: np.linalg.svd(a, compute_uv=False))
            self.add("singular values", lambda a: np.linalg.svd(a, compute_uv=False), a)
            if not is_empty:
                self.add("pinv", lambda a: np.linalg.pinv(a, 1e-3), a)
                self.add("matrix_rank", lambda a: np.linalg.matrix_rank(a), a)
                self.add("matrix_rank of a product", lambda a: np.linalg.matrix_rank(a, 0.5), a)
                self.add("pinv of each", lambda a: np.linalg.pinv(a, np.full(a.shape[:-2], 0.3)), a)
                for order in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
                    for keep in (False, True):
                        self.add(f"norm {order} {keep}",
                                 lambda a, o=order, k=keep: np.linalg.norm(a, o, axis=(-2, -1), keepdims=k), a)  # fmt: skip
                for order in (None, 0, 1, -1, 2, -2, 3, 0.5, np.inf, -np.inf):
                    self.add(f"norm {order}", lambda a, o=order: np.linalg.norm(a, o, axis=-1), a)
            if not batch and shape[0] and shape[1]:
                b = self.random(dtype, shape[0], 2)
                for rcond in (None, -1, 1e-2):
                    self.add(f"lstsq {rcond}", lambda a, b, r=rcond: tuple(td.linalg.lstsq(a, b, r)), a, b,
                             wanted=lambda a, b, r=rcond: tuple(np.linalg.lstsq(a, b, r)))  # fmt: skip
        self.compare()

    def test_hermitian_flags(self):
        for dtype, batch in itertools.product(DTYPES, BATCHES[:3]):
            a = self.square(dtype, *batch, 4, 4)
            a = a + adjoint(a)
            self.add("svd", lambda a: np.linalg.svd(a, compute_uv=False, hermitian=True), a)
            self.add("pinv", lambda a: np.linalg.pinv(a, 1e-4, hermitian=True), a)
            self.add("matrix_rank", lambda a: np.linalg.matrix_rank(a, hermitian=True), a)
        self.compare()

    def test_products_and_tensors(self):
        for dtype in DTYPES:
            a, b, c = self.random(dtype, 3, 4), self.random(dtype, 4, 2), self.random(dtype, 2, 5)
            self.add("multi_dot", lambda *x: np.linalg.multi_dot(x), a, b, c)
            self.add("multi_dot of vectors", lambda a, b, c: np.linalg.multi_dot([a[0], b, c, c[0]]), a, b, c)
            t = self.square(dtype, 6, 6).reshape(2, 3, 6)
            self.add("tensorsolve", lambda t, b: np.linalg.tensorsolve(t, b), t, self.random(dtype, 2, 3))
            self.add("tensorsolve axes", lambda t, b: np.linalg.tensorsolve(t.transpose(2, 0, 1), b, axes=(0,)), t,
                     self.random(dtype, 2, 3))  # fmt: skip
            self.add("tensorinv", lambda t: np.linalg.tensorinv(t, ind=2), t)
            self.add("outer", lambda x, y: td.linalg.outer(x, y), a[0], b[0], wanted=lambda x, y: np.outer(x, y))
            self.add("vecdot", lambda x, y: td.linalg.vecdot(x, y), a, a[0], wanted=lambda x, y: (x.conj() * y).sum(-1))
            self.add("cross", lambda x, y: td.linalg.cross(x, y, axis=0), a, a[:, :1] + 1, wanted=lambda x, y: np.cross(x, y, axis=0))
        self.compare()

    def test_transforms_along_an_axis(self):
        for dtype, batch, n, norm in itertools.product(DTYPES, ((2,), (0,)), (None, 3, 6, 9), NORMS):
            x = self.random(dtype, *batch, 6)
            for name in ("fft", "ifft", "irfft", "hfft", "rfft", "ihfft"):
                if name in ("rfft", "ihfft") and x.dtype.kind == "c":
                    continue
                self.add(f"{name} {n} {norm}", lambda x, f=name, o=(n, -1, norm): getattr(np.fft, f)(x, *o), x)
                if x.size:
                    self.add(f"{name} axis 0 {norm}", lambda x, f=name, o=(n or 2, 0, norm): getattr(np.fft, f)(x, *o), x)
        self.compare_transforms()

    def test_transforms_of_several_axes(self):
        for dtype, norm in itertools.product(DTYPES, NORMS):
            x = self.random(dtype, 2, 4, 5)
            for kind in ("fft", "ifft", "rfft", "irfft"):
                if kind == "rfft" and x.dtype.kind == "c":
                    continue
                for options in (
                    {}, {"s": (3, 6), "axes": (1, 2)}, {"s": (4, 2), "axes": (0, 2)}, {"axes": (0, 1)}, {"s": (2, 3), "axes": (-1, 0)},
                ):  # fmt: skip
                    for end in ("2", "n"):
                        self.add(f"{kind}{end} {options} {norm}",
                                 lambda x, f=kind + end, o=options: getattr(np.fft, f)(x, norm=norm, **o), x)  # fmt: skip
            for function in ("fftshift", "ifftshift"):
                for axes in (None, 1, (0, 2)):
                    self.add(f"{function} {axes}", lambda x, f=function, a=axes: getattr(np.fft, f)(x, a), x)
        self.compare_transforms()

    def compare_transforms(self):
        """NumPy 1 transforms in double precision."""
        def narrowed(wanted):
            def function(x):
                result = wanted(x)
                if x.dtype.name in ("float32", "complex64"):
                    return result.astype(np.complex64 if result.dtype.kind == "c" else np.float32)
                return result

            return function

        self.cases = [(name, function, arrays, narrowed(wanted)) for name, function, arrays, wanted in self.cases]
        self.compare()

    def test_einsums(self):
        for dtype, number in itertools.product(DTYPES, range(30)):
            count = int(self.rng.integers(1, 5))
            sizes = {label: int(self.rng.integers(0 if number % 10 == 0 else 1, 4)) for label in "abcde"}
            terms = ["".join(self.rng.choice(list(sizes), self.rng.integers(0, 4))) for _ in range(count)]
            used = sorted(set("".join(terms)))
            output = "".join(self.rng.choice(used, min(len(used), 2), replace=False)) if used else ""
            # A size of 1 repeats, where no other axis of its operand has the label.
            arrays = [
                self.random(dtype, *[1 if term.count(x) == 1 and self.rng.integers(8) == 0 else sizes[x] for x in term])
                for term in terms
            ]
            equation = ",".join(terms) + ("->" + output if number % 3 else "")
            path = ["einsum_path", *[(0, 1)] * (count - 1)] if count > 1 else ["einsum_path", (0,)]
            for optimize in (False, True, "greedy", "optimal", path, ("greedy", 10**6)):
                self.add(f"einsum {equation} {optimize}",
                         lambda *x, e=equation, o=optimize: td.einsum(e, *x, optimize=o), *arrays,
                         wanted=lambda *x, e=equation: np.einsum(e, *x))  # fmt: skip
        self.compare()


class Failures(ServerTest):
    """Failures that only the run finds out."""

    def test_matrices_that_have_no_such_thing(self):
        singular, negative = np.zeros((3, 3)), -np.eye(3)
        for call in (
            lambda a, b: np.linalg.inv(a),
            lambda a, b: np.linalg.solve(a, b),
            lambda a, b: np.linalg.matrix_power(a, -2),
            lambda a, b: np.linalg.tensorinv(a, ind=1),
            lambda a, b: np.linalg.tensorsolve(a, b[0]),
            lambda a, b: np.linalg.cholesky(b),
        ):
            with self.subTest(call.__code__.co_firstlineno):
                with self.assertRaises(np.linalg.LinAlgError):
                    call(singular, negative)
                with self.assertRaises(np.linalg.LinAlgError) as context:
                    td.evaluate(call, singular, negative, client=self.client)
                error = context.exception
                self.assertIsInstance(error, td.linalg.LinAlgError)
                self.assertIn(error.reason, ("MATRIX_SINGULAR", "MATRIX_NOT_POSITIVE_DEFINITE"))
                self.assertIn(error.message, str(error))
                self.assertTrue(error.node and error.op.startswith("tensord.linalg.v1."), error)

    def test_the_matrix_of_a_stack_is_named(self):
        stack = np.stack([np.eye(2), np.zeros((2, 2)), np.eye(2)])
        with self.assertRaisesRegex(np.linalg.LinAlgError, r"\b1\b"):
            td.evaluate(np.linalg.inv, stack, client=self.client)

    def test_graphs_that_the_server_refuses(self):
        """Tracing finds these before anything is sent; here the graph is made wrong afterwards."""
        for reason, said, spoil in (
            ("SHAPE_MISMATCH", "differ in size", lambda graph: setattr(graph.inputs[0].type.shape[0], "size", 5)),
            ("RANK_MISMATCH", "names 2 axes", lambda graph: graph.inputs[0].type.shape.pop()),
            ("ATTRIBUTE_INVALID", "terms", lambda graph: set_equation(graph, "ij->i")),
            ("ATTRIBUTE_INVALID", "no operand has", lambda graph: set_equation(graph, "ij,ij->k")),
        ):
            graph = td.make_graph(lambda x, y: td.einsum("ij,ij->i", x, y), np.ones((4, 3)), np.ones((4, 3))).graph
            spoil(graph)
            with self.subTest(reason, said=said), self.assertRaises(ValueError) as context:
                self.client.compile(graph)
            self.assertEqual(context.exception.reason, reason)
            self.assertIn(said, str(context.exception))
            self.assertEqual(context.exception.op, "tensord.einsum.v1.Einsum")


def set_equation(graph, equation):
    message = contract.message_class("tensord.einsum.v1.Einsum")(equation=equation)
    graph.nodes[0].extension.op.value = message.SerializeToString()


if __name__ == "__main__":
    unittest.main()
