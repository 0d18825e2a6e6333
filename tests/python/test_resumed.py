"""Tensors over connections that break."""

import os
import tempfile
import unittest

import numpy as np

from breaking_proxy import BreakingProxy
from server_test import ServerTest
import tensord as td

MIB = 1 << 20


class Resumed(ServerTest):
    def behind(self, *budgets):
        """A client behind a proxy that breaks its connections, and the proxy."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        proxy = BreakingProxy(os.path.join(folder.name, "p"), self.server.target.removeprefix("unix:"), budgets)
        self.addCleanup(proxy.close)
        client = td.Client(proxy.target, timeout=120)
        self.addCleanup(client.close)
        return client, proxy

    def test_uploads_and_downloads_go_on(self):
        array = np.random.default_rng(1).random(4 * MIB)  # 32 MiB
        client, proxy = self.behind(24 * MIB, MIB, 30 * MIB)
        with client.session() as session:
            remote = session.put(array)
            self.assertGreaterEqual(proxy.connections, 3)
            self.assertLess(proxy.bytes, 45 * MIB)
            np.testing.assert_array_equal(remote.fetch(), array)
            self.assertEqual(proxy.connections, 4)
            self.assertLess(proxy.bytes, 85 * MIB)

    def test_attempts_end(self):
        client, proxy = self.behind(*[300_000] * 20)
        with self.client.session() as session:
            remote = session.put(np.zeros(MIB))
            session.client = client
            with self.assertRaises((td.Unavailable, td.DeadlineExceeded)):
                session.put(np.zeros(MIB), timeout=0.3)
            self.assertLess(proxy.connections, 5)
            session.client = self.client
            np.testing.assert_array_equal(remote.fetch(), np.zeros(MIB))


if __name__ == "__main__":
    unittest.main()
