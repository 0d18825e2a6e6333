"""A test case with a client of a server in this process, that can be made to misbehave."""

import os
import tempfile
import unittest

from stand_in_server import StandInServer
import tensord as td


class StandInTestCase(unittest.TestCase):
    """Has a server and a client of its own for each test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.server = StandInServer(os.path.join(folder.name, "s"))
        self.addCleanup(self.server.close)
        self.client = td.Client(self.server.target, timeout=30)
        self.addCleanup(self.client.close)

    def compile(self, function, *specs, **options):
        return td.compile(function, *specs, client=self.client, **options)
