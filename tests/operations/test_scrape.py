"""The metrics of a server that has worked, as Prometheus' own checker reads them."""
import os
import subprocess
import sys
import unittest
import urllib.request

from metrics_page import ROOT, declared, promtool

sys.path.insert(0, os.path.join(ROOT, "tests", "python"))
from server_process import ServerProcess  # noqa: E402


class ScrapeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ServerProcess("--metrics=127.0.0.1:0", "--log-level=warning")
        cls.addClassCleanup(cls.server.stop)
        with urllib.request.urlopen(f"http://{cls.server.metrics_address()}/metrics", timeout=60) as answer:
            cls.page = answer.read().decode()

    def test_prometheus_has_nothing_to_say_against_it(self):
        tool = promtool()
        if tool is None:
            self.skipTest("there is no promtool; ./dev test unpacks it from Debian's package prometheus")
        checked = subprocess.run([tool, "check", "metrics"], input=self.page, capture_output=True, text=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_series_are_those_that_the_page_of_the_docs_declares(self):
        metrics = declared()
        for line in self.page.splitlines():
            if not line.startswith("#"):
                name = line.split("{")[0].split(" ")[0]
                self.assertIn(name, metrics)

    def test_series_have_a_bound(self):
        series = sum(not line.startswith("#") for line in self.page.splitlines())
        self.assertLess(series, 2000, "of a server that nobody has called")


if __name__ == "__main__":
    unittest.main()
