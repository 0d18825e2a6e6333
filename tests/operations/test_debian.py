"""The scripts of the Debian package, on a machine whose systemd is a program of this test."""
import os
import pathlib
import subprocess
import tempfile
import unittest

from metrics_page import read

SYSTEMD = "/run/systemd/system"


class ScriptsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tensord-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.programs = self.folder / "bin"
        self.programs.mkdir()
        self.systemd = self.folder / "systemd"
        self.systemd.mkdir()
        self.calls = self.folder / "calls"
        self.calls.touch()
        self.program("systemd-sysusers", "")

    def program(self, name, text):
        path = self.programs / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.calls}\n{text}')
        path.chmod(0o755)

    def run_script(self, script, *words):
        """As dpkg does. The script asks for systemd by its folder."""
        text = read(f"deploy/debian/{script}")
        self.assertIn(SYSTEMD, text)
        path = self.folder / script
        path.write_text(text.replace(SYSTEMD, str(self.systemd)))
        environment = {"PATH": f"{self.programs}:{os.defpath}"}
        return subprocess.run(["/bin/sh", path, *words], env=environment, capture_output=True, text=True, check=False)

    def called(self):
        return self.calls.read_text().splitlines()

    def test_what_is_done(self):
        self.program("systemctl", "")
        for script, word, calls in (("postinst", "configure", ["systemd-sysusers tensord.conf", "systemctl daemon-reload",
                                                               "systemctl try-restart tensord.service"]),
                                    ("postinst", "abort-upgrade", []), ("prerm", "upgrade", []),
                                    ("prerm", "remove", ["systemctl disable --now tensord.service"])):
            with self.subTest(script=script, word=word):
                self.calls.write_text("")
                result = self.run_script(script, word)
                self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
                self.assertEqual(self.called(), calls)

    def test_a_service_that_does_not_follow_leaves_the_package_whole(self):
        for script, word, verb in (("postinst", "configure", "daemon-reload"), ("postinst", "configure", "try-restart"),
                                   ("prerm", "remove", "disable")):
            with self.subTest(script=script, verb=verb):
                self.calls.write_text("")
                self.program("systemctl", f'[ "$1" != {verb} ]\n')
                result = self.run_script(script, word)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertRegex(result.stderr, r"^tensord: .*; see systemctl status tensord\n$")
                self.assertTrue(any(f"systemctl {verb}" in call for call in self.called()))

    def test_without_systemd_nothing_is_asked(self):
        self.systemd.rmdir()
        self.program("systemctl", "exit 1\n")
        for script, word in (("postinst", "configure"), ("prerm", "remove")):
            self.assertEqual(self.run_script(script, word).returncode, 0)
        self.assertEqual(self.called(), ["systemd-sysusers tensord.conf"])

    def test_without_its_user_the_package_is_not_configured(self):
        self.program("systemctl", "")
        self.program("systemd-sysusers", "exit 1\n")
        self.assertNotEqual(self.run_script("postinst", "configure").returncode, 0)


if __name__ == "__main__":
    unittest.main()
