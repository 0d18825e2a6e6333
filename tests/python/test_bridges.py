"""Compiled programs as functions of JAX and PyTorch. Each library's tests are skipped where it is not installed.

Needs TENSORD_BINARY, the path of the tensord binary; skipped without.
"""

import importlib.util
import unittest

import numpy as np

import checkout  # noqa: F401
from jax_test import JaxTest
from server_test import ServerTest
import tensord as td


def layer(parameters, x):
    return np.tanh(x @ parameters["w"] + parameters["b"]), (x > 0).sum()


def arguments():
    random = np.random.default_rng(4)
    return {"w": random.normal(size=(3, 2)), "b": random.normal(size=2)}, random.normal(size=(5, 3))


class Backward(ServerTest):
    def test_a_program_without_a_derivative(self):
        program = self.compile(lambda x: x + 1, td.spec(3, "int64"))
        with self.assertRaisesRegex(ValueError, "has no derivative: it has no arguments, or no results"):
            td.derivatives.programs.backward_program(program)

    def test_a_program(self):
        parameters, x = arguments()
        program = self.compile(layer, parameters, x)
        backward = td.derivatives.programs.backward_program(program)
        ct = np.arange(10.0).reshape(5, 2)
        found = backward(parameters["w"], parameters["b"], x, ct)
        slope = ct * (1 - np.tanh(x @ parameters["w"] + parameters["b"]) ** 2)
        for one, expected in zip(found, (x.T @ slope, slope.sum(0), slope @ parameters["w"].T), strict=True):
            np.testing.assert_allclose(one, expected, rtol=1e-12)


class Jax(JaxTest):
    def test_values_and_gradients(self):
        jax, (parameters, x) = self.jax, arguments()
        remote = td.to_jax(self.compile(layer, parameters, x))

        def local(parameters, x):
            return jax.numpy.tanh(x @ parameters["w"] + parameters["b"]), (x > 0).sum()

        for wrapped in (lambda function: function, jax.jit):
            values = wrapped(remote)(parameters, x)
            for one, other in zip(values, local(parameters, x), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12)
            slopes = wrapped(jax.grad(lambda *a: (remote(*a)[0] ** 2).sum(), argnums=(0, 1)))(parameters, x)
            expected = jax.grad(lambda *a: (local(*a)[0] ** 2).sum(), argnums=(0, 1))(parameters, x)
            for one, other in zip(jax.tree_util.tree_leaves(slopes), jax.tree_util.tree_leaves(expected), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-10)

    def test_second_derivatives_sizes_and_batches(self):
        jax = self.jax
        remote = td.to_jax(self.compile(lambda x: np.sin(x).sum(), td.spec("n")))
        for x in (np.array([0.3]), np.array([0.3, 1.0, 2.0])):
            product = jax.grad(lambda x: jax.grad(remote)(x).sum())(x)
            np.testing.assert_allclose(product, -np.sin(x), rtol=1e-12)
        np.testing.assert_allclose(jax.vmap(remote)(np.arange(6.0).reshape(2, 3)), np.sin(np.arange(6.0).reshape(2, 3)).sum(1))

    def test_complex_numbers_are_as_in_jax(self):
        jax, z = self.jax, np.array([1 + 2j, 3 - 1j])
        remote = td.to_jax(self.compile(lambda z: td.real(z * z * (2 + 1j)).sum(), z))
        expected = jax.grad(lambda z: (z * z * (2 + 1j)).real.sum())(z)
        np.testing.assert_allclose(jax.grad(remote)(z), expected)

    def test_integers_have_no_cotangent(self):
        remote = td.to_jax(self.compile(lambda x, n: (x * n).sum(), np.ones(2), np.array([1, 2])))
        slope = self.jax.grad(remote)(np.ones(2), np.array([3, 4]))
        np.testing.assert_allclose(slope, [3, 4])

    def test_refusals(self):
        remote = td.to_jax(self.compile(lambda x: x * 2, td.spec(2)))
        with self.assertRaisesRegex(TypeError, "argument 'x' is float32, the program was compiled for float64"):
            remote(np.ones(2, np.float32))
        counted = td.to_jax(self.compile(lambda x, n: x[:n], td.spec(2), 1))
        with self.assertRaisesRegex(TypeError, "sizes that its run decides"):
            counted(np.ones(2), 1)


@unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
class Torch(ServerTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        import torch

        cls.torch = torch

    def tensors(self, *arrays, grad=True):
        made = [self.torch.tensor(one) for one in arrays]
        return [one.requires_grad_() if grad and (one.is_floating_point() or one.is_complex()) else one for one in made]

    def test_values_and_gradients(self):
        parameters, x = arguments()
        remote = td.to_torch(self.compile(layer, parameters, x))
        w, b, x = self.tensors(parameters["w"], parameters["b"], x)
        value, count = remote({"w": w, "b": b}, x)
        expected = self.torch.tanh(x @ w + b)
        np.testing.assert_allclose(value.detach(), expected.detach(), rtol=1e-12)
        self.assertFalse(count.requires_grad)
        found = self.torch.autograd.grad((value**2).sum(), (w, b, x))
        for one, other in zip(found, self.torch.autograd.grad((expected**2).sum(), (w, b, x)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10)

    def test_gradcheck(self):
        remote = td.to_torch(self.compile(lambda x, z: td.sin(x) * abs(z), td.spec("n"), td.spec("n", complex)))
        x, z = self.tensors(np.array([0.3, 1.0]), np.array([1 + 2j, 0.5 - 1j]))
        self.assertTrue(self.torch.autograd.gradcheck(remote, (x, z)))
        self.assertTrue(self.torch.autograd.gradgradcheck(remote, (x, z)))

    def test_complex_numbers_are_as_in_torch(self):
        remote = td.to_torch(self.compile(lambda z: td.real(z * z * (2 + 1j)).sum(), td.spec(2, complex)))
        (z,) = self.tensors(np.array([1 + 2j, 3 - 1j]))
        (found,) = self.torch.autograd.grad(remote(z), z)
        (expected,) = self.torch.autograd.grad((z * z * (2 + 1j)).real.sum(), z)
        np.testing.assert_allclose(found, expected)

    def test_narrow_floats_and_integers(self):
        program = self.compile(lambda x, n: (x * n.astype("bfloat16")).sum(), td.spec(2, "bfloat16"), np.array([1, 2]))
        x = self.torch.tensor([1.0, 2.0], dtype=self.torch.bfloat16, requires_grad=True)
        value = td.to_torch(program)(x, self.torch.tensor([3, 4]))
        value.backward()
        self.assertEqual((value.item(), x.grad.tolist(), x.grad.dtype), (11, [3, 4], self.torch.bfloat16))

    def test_refusals(self):
        remote = td.to_torch(self.compile(lambda x: x * 2, td.spec(2)))
        with self.assertRaisesRegex(TypeError, "argument 'x' is torch.float32, the program was compiled for float64"):
            remote(self.torch.ones(2))


if __name__ == "__main__":
    unittest.main()
