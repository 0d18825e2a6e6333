"""The findings of ./dev check docs in a tree of pages."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = "docs/"  # apart from what follows it, so that the check does not look for these pages

PAGES = {
    DOCS + "README.md": "[errors](use/errors.md) [packages](extend/dependencies.md) [why](why/README.md)\n"
                        "[gains](use/benchmarks/gains.md)\n",
    DOCS + "use/errors.md": "# Errors\n\n## What a client does, at once\n\nSee [above](#errors).\n",
    DOCS + "extend/dependencies.md": "# Dependencies\n\n`libfirst-dev`\n",
    DOCS + "why/README.md": "[0001](0001-first.md)\n",
    DOCS + "why/0001-first.md": f"# 0001\n\n[errors](../use/errors.md#what-a-client-does-at-once)\n",
    DOCS + "use/benchmarks/gains.md": "",
    "CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n",
    "deploy/dev/packages.txt": "build libfirst-dev first\n",
    "engine/first.h": f"// As {DOCS}use/errors.md and {DOCS}why/0001 say.\n",
}


class DocsCheckTest(unittest.TestCase):
    def check(self, changed):
        """The findings in a tree of PAGES in which some have another text."""
        pages = {**PAGES, **changed}
        with tempfile.TemporaryDirectory() as folder:
            for path, text in pages.items():
                file = pathlib.Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            scripts = pathlib.Path(folder, "deploy/dev")
            for script in ("check_docs.py", "project_files.py"):
                shutil.copy(ROOT / "deploy/dev" / script, scripts)
            done = subprocess.run([sys.executable, "-B", str(scripts / "check_docs.py")], capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.returncode, 1 if done.stdout else 0)
        return done.stdout.splitlines()

    def assert_found(self, pages, place, message):
        found = self.check(pages)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(place + ": docs: "), found)
        self.assertIn(message, found[0])

    def test_a_whole_tree_has_no_findings(self):
        self.assertEqual(self.check({}), [])

    def test_links_lead_to_files(self):
        self.assert_found({"README.md": f"\n[errors]({DOCS}errors.md)\n"}, "README.md:2", "errors.md does not exist")

    def test_links_lead_to_headings(self):
        self.assert_found({"README.md": f"[errors]({DOCS}use/errors.md#what-a-client-does)\n"}, "README.md:1",
                          "use/errors.md has no heading '#what-a-client-does'")
        self.assert_found({DOCS + "why/0001-first.md": "[here](#here)\n"}, DOCS + "why/0001-first.md:1", "no heading '#here'")

    def test_links_in_code_are_none(self):
        self.assertEqual(self.check({"README.md": "```\n[errors](nowhere.md)\n```\n"}), [])

    def test_prose_has_a_hundred_columns(self):
        long = "word " * 20 + "end"
        self.assert_found({"README.md": "word " * 20 + "\n\n- " + long + "\n"}, "README.md:3", "105 columns, at most 100")
        self.assertEqual(self.check({"README.md": f"# {long}\n\n| {long} |\n\n```\n{long}\n```\n\n" + "x" * 200 + "\n"}), [])

    def test_code_names_pages_that_exist(self):
        self.assert_found({"engine/first.h": f"// {DOCS}use/errors.md\n// {DOCS}errors.md.\n"}, "engine/first.h:2",
                          "errors.md does not exist")
        self.assert_found({"engine/first.h": f"// {DOCS}why/0002.\n"}, "engine/first.h:1", "why/0002 does not exist")

    def test_pages_lie_in_their_folders_and_are_indexed(self):
        self.assert_found({DOCS + "use/numerics.md": ""}, DOCS + "use/numerics.md:1", "README.md does not link it")
        index = PAGES[DOCS + "README.md"] + "[numerics](numerics.md)\n"
        self.assert_found({DOCS + "README.md": index, DOCS + "numerics.md": ""}, DOCS + "numerics.md:1", "Move it")

    def test_a_decision_has_a_number_of_its_own(self):
        index = PAGES[DOCS + "why/README.md"] + "[0001](0001-other.md)\n"
        self.assert_found({DOCS + "why/README.md": index, DOCS + "why/0001-other.md": ""}, DOCS + "why/0001-other.md:1",
                          "has the number of")

    def test_a_version_of_the_changelog_is_short(self):
        version = "## [0.1.0]\n" + "- a change\n" * 39
        self.assertEqual(self.check({"CHANGELOG.md": version + "\n" + version}), [])
        self.assert_found({"CHANGELOG.md": version + "\n" + version + "\n- one more\n"}, "CHANGELOG.md:42",
                          "[0.1.0] has 42 lines, at most 40")

    def test_packages_have_their_reason(self):
        self.assert_found({"deploy/dev/packages.txt": "build libfirst-dev first\nbuild libother-dev other\ntest libtest tests\n"},
                          "deploy/dev/packages.txt:2", "does not name `libother-dev`")


if __name__ == "__main__":
    unittest.main()
