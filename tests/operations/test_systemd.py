"""The systemd unit."""
import re
import unittest

from metrics_page import read


class UnitTest(unittest.TestCase):
    def setUp(self):
        text = re.sub(r"\\\n\s*", "", read("deploy/systemd/tensord.service"))
        lines = (line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
        self.settings = {key: value for key, value in lines}

    def test_what_is_checked_is_what_is_started(self):
        checked, started = (self.settings[key].split() for key in ("ExecStartPre", "ExecStart"))
        self.assertEqual(checked, started + ["--check-config"])

    def test_memory_is_bounded_and_stays_there(self):
        self.assertRegex(self.settings["MemoryMax"], r"^\d+%$")
        self.assertEqual(self.settings["LimitCORE"], "0")


if __name__ == "__main__":
    unittest.main()
