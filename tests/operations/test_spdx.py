"""The list of what is part of the binary."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from metrics_page import ROOT, read

SCRIPT = os.path.join(ROOT, "deploy", "dev", "spdx.py")


class SpdxTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        build = os.path.dirname(os.path.dirname(os.path.abspath(os.environ["TENSORD_BINARY"])))
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run([sys.executable, SCRIPT, build, folder], capture_output=True, text=True, check=False)
            cls.notices = {name: os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)}
        if made.returncode != 0:
            raise AssertionError(made.stderr)
        cls.document = json.loads(made.stdout)
        cls.packages = {package["name"]: package for package in cls.document["packages"]}
        commands = subprocess.run(["ninja", "-C", build, "-t", "commands", "bin/tensord"], capture_output=True, text=True, check=True).stdout
        cls.link = commands.splitlines()[-1]

    def test_names_what_the_linker_takes(self):
        for part, archive in (("grpc", "/libgrpc.a"), ("abseil", "/libabsl_base.a"), ("upb", "/libupb.a")):
            with self.subTest(part=part):
                self.assertEqual(part in self.packages, archive in self.link)

    def test_names_what_is_built_from_sources(self):
        for line in read("deploy/dev/sources.txt").splitlines():
            if line and not line.startswith("#"):
                name, version, _, licence, _ = line.split()
                self.assertEqual(self.packages[name]["versionInfo"], version)
                self.assertEqual(self.packages[name]["licenseDeclared"], licence)

    def test_is_whole(self):
        self.assertEqual(self.document["spdxVersion"], "SPDX-2.3")
        related = {relation["relatedSpdxElement"] for relation in self.document["relationships"]}
        for name, package in self.packages.items():
            with self.subTest(package=name):
                self.assertTrue(package["versionInfo"])
                self.assertIn(name, read("docs/extend/dependencies.md").lower())
                if name != "tensord":
                    self.assertIn(package["SPDXID"], related)
                    self.assertTrue(package["externalRefs"])

    def test_every_part_leaves_its_notice(self):
        self.assertEqual({name.removesuffix(".txt") for name in self.notices}, set(self.packages) - {"tensord"})
        for name, size in self.notices.items():
            self.assertGreater(size, 500, name)

    def test_the_image_says_the_same_version(self):
        self.assertIn(f'org.opencontainers.image.version="{self.packages["tensord"]["versionInfo"]}"', read("Dockerfile"))


if __name__ == "__main__":
    unittest.main()
