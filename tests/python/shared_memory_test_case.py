"""A test case with a server that shares memory with its client."""

import os
import tempfile
import unittest

import checkout  # noqa: F401  finds the package
from server_process import ServerProcess
import tensord as td

REGION_BYTES = 16 << 20  # of the largest region


def double(x):
    return x + x


class SharedMemoryTestCase(unittest.TestCase):
    """Has a server for all its tests, and for each a client of its own with shared memory."""

    region_bytes = REGION_BYTES

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tensord-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.socket = os.path.join(folder.name, "memory")
        cls.server = ServerProcess(
            f"--set=shared_memory.listen=unix:{cls.socket}", f"--set=shared_memory.region_bytes={cls.region_bytes}"
        )
        cls.addClassCleanup(cls.server.stop)

    def setUp(self):
        self.client = td.Client(self.server.target, timeout=120, shared_memory=True)
        self.addCleanup(self.client.close)
        self.memory = self.client.shared_memory

    def lose_regions(self, block_of):
        """The region of that array is one that the server does not know, as a new one would not."""
        address = block_of.__array_interface__["data"][0]
        region, *rest = self.memory._used[address]
        self.memory._used[address] = ("f" * len(region), *rest)
