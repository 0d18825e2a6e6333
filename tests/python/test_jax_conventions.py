"""td.grad and its like give what JAX's functions of those names give, in the same structures.

Skipped where JAX is not installed, and without TENSORD_BINARY, the path of the tensord binary.
"""

import unittest

import numpy as np

import checkout  # noqa: F401
from jax_test import JaxTest
import tensord as td


def several(tree_of, y, z):
    """A function of a structure, of arrays, with a structure of results; of Arrays and of JAX's arrays."""
    w, b = tree_of["w"], tree_of["b"]
    hidden = (w @ y) * b
    return {"a": (hidden * hidden).sum() * z, "c": [hidden / (1 + hidden * hidden), (w * z).sum(0)]}


def number(tree_of, y, z):
    results = several(tree_of, y, z)
    return results["a"] + results["c"][0].sum() + (results["c"][1] ** 3).sum()


def arguments():
    random = np.random.default_rng(8)
    return {"w": random.normal(size=(2, 3)), "b": random.normal(size=2)}, random.normal(size=3), np.float64(0.7)


class Conventions(JaxTest):
    def agree(self, make, *values):
        """The function that `make` makes of td and of JAX has one result, in one structure."""
        ours = td.evaluate(make(td), *values, client=self.client)
        theirs = make(self.jax)(*self.jax.tree_util.tree_map(self.jax.numpy.asarray, values))
        (left, structure), (right, same) = map(self.jax.tree_util.tree_flatten, (ours, theirs))
        self.assertEqual(structure, same)
        for one, other in zip(left, right, strict=True):
            self.assertEqual((one.shape, one.dtype), (other.shape, other.dtype))
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)

    def test_gradients(self):
        for argnums in (0, 1, -1, (0,), (2, 0), (0, 1, 2)):
            self.agree(lambda p, argnums=argnums: p.grad(number, argnums), *arguments())
            self.agree(lambda p, argnums=argnums: p.value_and_grad(number, argnums=argnums), *arguments())

    def test_aux(self):
        def with_aux(*values):
            return number(*values), several(*values)

        self.agree(lambda p: p.grad(with_aux, has_aux=True), *arguments())
        self.agree(lambda p: p.value_and_grad(with_aux, (0, 1), has_aux=True), *arguments())
        for name in ("jacfwd", "jacrev", "hessian"):
            self.agree(lambda p, name=name: getattr(p, name)(with_aux, 1, has_aux=True), *arguments())

    def test_jacobians(self):
        for argnums in (0, 1, (2, 0)):
            for name in ("jacfwd", "jacrev"):
                self.agree(lambda p, name=name, argnums=argnums: getattr(p, name)(several, argnums), *arguments())

    def test_hessians(self):
        self.agree(lambda p: p.hessian(number), *arguments())
        self.agree(lambda p: p.hessian(number, argnums=(1, 2)), *arguments())
        self.agree(lambda p: p.jacrev(p.grad(number, 1), 0), *arguments())
        self.agree(lambda p: p.grad(lambda *values: p.grad(number, 2)(*values) ** 2, 1), *arguments())

    def test_directions(self):
        values, tangents = arguments(), arguments()
        cotangents = several(*values)
        self.agree(lambda p: lambda x, t: p.jvp(several, x, t), values, tangents)
        self.agree(lambda p: lambda x, t: p.jvp(lambda *a: (several(*a), a[1]), x, t, has_aux=True), values, tangents)
        self.agree(lambda p: lambda x, ct: p.vjp(several, *x)[1](ct), values, cotangents)
        self.agree(lambda p: lambda x: p.vjp(lambda *a: (several(*a), a[1]), *x, has_aux=True)[2], values)

    def test_holomorphic_functions(self):
        z = np.array([1 + 2j, 0.5 - 1j])
        for name in ("jacfwd", "jacrev", "hessian"):
            self.agree(lambda p, name=name: getattr(p, name)(lambda z: (z * z * (1 + 1j)).sum(), holomorphic=True), z)
        self.agree(lambda p: p.grad(lambda z: (z**3).sum(), holomorphic=True), z)

    def test_gradients_of_complex_numbers_are_conjugates_of_those(self):
        z = np.array([1 + 2j, 0.5 - 1j])

        def make(p):
            slope = p.grad(lambda z: (z * z * (2 + 1j)).real.sum())
            return slope if p is td else lambda z: slope(z).conj()

        self.agree(make, z)


if __name__ == "__main__":
    unittest.main()
