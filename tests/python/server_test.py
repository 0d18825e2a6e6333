"""A test case with a server of its own and a client of it."""

import unittest

import checkout  # noqa: F401  finds the package
from server_process import ServerProcess
import tensord as td


class ServerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ServerProcess()
        cls.addClassCleanup(cls.server.stop)
        cls.client = td.Client(cls.server.target, timeout=120)
        cls.addClassCleanup(cls.client.close)
        cls.client.wait_until_ready(30)

    def compile(self, function, *specs, **options):
        return td.compile(function, *specs, client=self.client, **options)
