"""The systemd unit."""
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

from metrics_page import ROOT, read


class UnitTest(unittest.TestCase):
    def setUp(self):
        text = re.sub(r"\\\n\s*", "", read("deploy/systemd/tensord.service"))
        self.lines = [line for line in text.splitlines() if "=" in line and not line.startswith("#")]
        self.settings = dict(line.split("=", 1) for line in self.lines)

    def test_what_is_checked_is_what_is_started(self):
        checked, started = (self.settings[key].split() for key in ("ExecStartPre", "ExecStart"))
        self.assertEqual(checked, started + ["--check-config"])

    def test_an_installation_starts_its_own_programs(self):
        for prefix in ("/usr/local", "/opt/two words", '/opt/a "b" 100% $HOME \\'):
            with self.subTest(prefix), tempfile.TemporaryDirectory(prefix="tensord-") as folder:
                unit = os.path.join(folder, "tensord.service")
                subprocess.run(["cmake", f"-Dsource_folder={ROOT}", f"-Dbinary_folder={prefix}/bin",
                                f"-Dconfiguration={prefix}/etc/tensord.textproto", f"-Dunit_file={unit}", "-P",
                                os.path.join(ROOT, "deploy", "cmake", "service_unit.cmake")], check=True)
                with open(unit, encoding="utf-8") as file:
                    text = re.sub(r"\\\n\s*", "", file.read())
                for key in "ExecStartPre", "ExecStart":
                    line = re.search(rf"^{key}=(.*)$", text, re.MULTILINE)[1]
                    program, *words = [word.replace("%%", "%") for word in shlex.split(line)]
                    words = [program, *(word.replace("$$", "$") for word in words)]
                    self.assertEqual(words[:2], [f"{prefix}/bin/tensord", f"--config={prefix}/etc/tensord.textproto"])
                    self.assertTrue(all(word.startswith("--") for word in words[2:]), words)

    def test_memory_is_bounded_and_stays_there(self):
        self.assertRegex(self.settings["MemoryMax"], r"^\d+%$")
        self.assertEqual(self.settings["LimitCORE"], "0")

    def test_has_no_more_rights_than_it_needs(self):
        for line in ("PrivateUsers=yes", "NoNewPrivileges=yes", "CapabilityBoundingSet=", "ProtectSystem=strict"):
            self.assertIn(line, self.lines)
        filters = [line for line in self.lines if line.startswith("SystemCallFilter=")]
        self.assertEqual(filters, ["SystemCallFilter=@system-service", "SystemCallFilter=~@privileged"], "in this order")

    def test_with_gpus_it_may_use_their_devices_alone(self):
        drop_in = read("deploy/systemd/gpu.conf")
        lines = [line for line in drop_in.splitlines() if "=" in line and not line.startswith("#")]
        self.assertIn("DevicePolicy=closed", lines)
        self.assertEqual([line for line in lines if line.startswith("DeviceAllow=")], ["DeviceAllow=char-nvidia* rw"])
        self.assertEqual(sorted(line for line in lines if line.split("=")[0] in self.settings),
                         ["After=nvidia-persistenced.service", "PrivateDevices=no", "TimeoutStartSec=300"],
                         "all else is as it was")
        self.assertIn("gpu.conf", read("deploy/systemd/tensord.service"))

    def test_systemd_finds_little_exposed(self):
        tool = shutil.which("systemd-analyze")
        if tool is None:
            self.skipTest("there is no systemd-analyze")
        unit = os.path.join(ROOT, "deploy", "systemd", "tensord.service")
        result = subprocess.run([tool, "security", "--offline=true", "--threshold=16", unit], capture_output=True, text=True, check=False)
        if "unrecognized option" in result.stderr:
            self.skipTest("this systemd-analyze looks at no files")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main()
