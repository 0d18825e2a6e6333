"""Derivatives of some 300 functions agree with JAX's: along tangents, backwards, and of second order.

JAX computes in double precision, of the same numbers. Skipped where JAX is not installed, and without TENSORD_BINARY,
the path of the tensord binary.
"""

import collections
import unittest

import numpy as np

import checkout  # noqa: F401
import derivative_cases
import derivative_program_cases
from jax_test import JaxTest
import tensord as td
from tensord.arguments import tree

CASES = [*derivative_cases.CASES, *derivative_program_cases.CASES]
DTYPES = {"f": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
# The most that a number may differ, relative to the largest number of its array and to 1.
TOLERANCES = {"f": 2e-3, "d": 1e-8, "c": 2e-3, "z": 1e-8}


class Renamed:
    """JAX's functions under td's names."""

    def __init__(self, package, **others):
        self._package, self._others = package, others

    def __getattr__(self, name):
        return self._others[name] if name in self._others else getattr(self._package, name)


def functions_of(jax):
    jnp, nn, lax = jax.numpy, jax.nn, jax.lax
    linalg = Renamed(jnp.linalg, solve_triangular=jax.scipy.linalg.solve_triangular)
    return Renamed(
        jnp, linalg=linalg, erf=jax.scipy.special.erf, rsqrt=lax.rsqrt, complex=lax.complex, logistic=nn.sigmoid,
        sigmoid=nn.sigmoid, softmax=nn.softmax, log_softmax=nn.log_softmax, logsumexp=nn.logsumexp, relu=nn.relu,
        silu=nn.silu, elu=nn.elu, softplus=nn.softplus, dynamic_slice=lax.dynamic_slice,
        gelu=lambda x, approximate=False: nn.gelu(x, approximate=approximate),
        dynamic_update_slice=lax.dynamic_update_slice, average=lambda x, **options: jnp.average(x, **options),
        put_along_axis=lambda x, i, v, axis: jnp.put_along_axis(x, i, v, axis, inplace=False),
    )  # fmt: skip


def directions(arrays, seed):
    random = np.random.default_rng(seed)

    def like(array):
        values = random.uniform(-1, 1, np.shape(array))
        return values + (1j * random.uniform(-1, 1, np.shape(array)) if np.iscomplexobj(array) else 0)

    return [like(array).astype(np.float32 if not np.iscomplexobj(array) else np.complex64) for array in arrays]


class Agreement(JaxTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        before = cls.jax.config.read("jax_disable_most_optimizations")  # they take most of the time
        cls.jax.config.update("jax_disable_most_optimizations", True)
        cls.addClassCleanup(cls.jax.config.update, "jax_disable_most_optimizations", before)

    def test_functions(self):
        names = [case.name for case in CASES]
        self.assertEqual([name for name, count in collections.Counter(names).items() if count > 1], [])
        p, compared = functions_of(self.jax), collections.Counter()
        for case in CASES:
            for kinds in ("fd", "cz"):
                kinds = [kind for kind in kinds if kind in case.kinds]
                if not kinds:
                    continue
                arguments = case.draw(is_complex="z" in kinds or "c" in kinds)
                expected = None
                for kind in kinds:
                    with self.subTest(case.name, kind=kind):
                        expected = expected or self.by_jax(case, p, arguments)
                        self.compare(case, kind, arguments, *expected)
                        compared[kind] += 1
                        compared["functions"] += kind == kinds[0]
        print(f"derivatives beside JAX: {len(CASES)} functions, {dict(compared)}")
        self.assertGreaterEqual(len(CASES), 300)

    def by_jax(self, case, p, arguments):
        """Tangents, cotangents and JAX's derivatives: results, their tangents, what is backwards, and its tangents."""
        jax = self.jax

        def function(*values):
            return tuple(jax.tree_util.tree_leaves(case.function(p, *values)))

        arguments = [jax.numpy.asarray(argument) for argument in arguments]
        results = jax.eval_shape(function, *arguments)
        tangents = directions(arguments, 1)
        cotangents = directions([np.zeros(one.shape, one.dtype) for one in results], 2)

        # JAX transposes, where cotangents here are adjoints.
        def backwards(*values):
            _, back = jax.vjp(function, *values)
            found = back(tuple(jax.numpy.conj(ct).astype(one.dtype) for ct, one in zip(cotangents, results)))
            return tuple(jax.numpy.conj(ct) for ct in found)

        def both(*values):
            slopes = tuple(t.astype(v.dtype) for t, v in zip(tangents, values))
            found = (*jax.jvp(function, values, slopes), backwards(*values))
            return (*found, jax.jvp(backwards, values, slopes)[1]) if case.order > 1 else found

        found = jax.jit(both)(*arguments)
        return tangents, cotangents, [[np.asarray(one) for one in part] for part in found]

    def compare(self, case, kind, arguments, tangents, cotangents, expected):
        def function(*values):
            return tuple(tree.flatten(case.function(td, *values))[0])

        def both(values, tangents, cotangents):
            def backwards(*inner):
                return td.vjp(function, *inner)[1](cotangents)

            found = (*td.jvp(function, values, tangents), backwards(*values))
            return (*found, td.jvp(backwards, values, tangents)[1]) if case.order > 1 else found

        def of_kind(arrays):
            wide = kind in "dz"
            return tuple(np.asarray(a, (np.complex128 if wide else np.complex64) if np.iscomplexobj(a)
                                    else np.float64 if wide else np.float32) for a in arrays)  # fmt: skip

        found = td.evaluate(both, of_kind(arguments), of_kind(tangents), of_kind(cotangents), client=self.client)
        parts = ("result", "tangent", "cotangent", "tangent of the cotangent")
        for part, ours, theirs in zip(parts[: len(expected)], found, expected, strict=True):
            for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
                title = f"{case.name}, {DTYPES[kind].__name__}: {part} {place}"
                self.assertEqual(one.shape, other.shape, title)
                self.assertEqual(one.dtype.kind, other.dtype.kind, title)
                scale = max(1.0, float(np.max(np.abs(other), initial=0.0)))
                np.testing.assert_allclose(one, other, rtol=0, atol=TOLERANCES[kind] * scale, err_msg=title)


if __name__ == "__main__":
    unittest.main()
