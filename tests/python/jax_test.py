"""A test case beside JAX, in double precision; skipped where JAX is not installed."""

import importlib.util
import unittest

from server_test import ServerTest


@unittest.skipUnless(importlib.util.find_spec("jax"), "JAX is not installed")
class JaxTest(ServerTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        import jax

        before = jax.config.jax_enable_x64
        jax.config.update("jax_enable_x64", True)
        cls.addClassCleanup(jax.config.update, "jax_enable_x64", before)
        cls.jax = jax
