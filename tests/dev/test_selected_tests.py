"""The runs and the output of ./dev test PATTERN: the tests that a pattern finds, the unittest cases that run, the
slowest cases."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIND = ROOT / "deploy/dev/find_tests.py"
SLOWEST = ROOT / "deploy/dev/slowest_tests.py"
RUN = ROOT / "tests/testlib/run_unittests.py"

GTEST_SOURCE = """
TEST(CacheTest, Evicts) {}
TEST(CacheTest, Fills) {}
TEST_F(SharedTest, Waits) {}
TEST_P(
    SettingsTest, Loads) {}
TYPED_TEST(SumTest, Adds) {}
TYPED_TEST(SumTest, Evicts) {}
// TEST(Commented, Out)
"""
UNITTEST_SOURCE = """
import unittest


class ColourTest(unittest.TestCase):
    def test_red(self):
        pass

    def test_green(self):
        self.fail("is not green")


class ShadeTest(ColourTest):
    pass
"""


def run(script, *arguments, **environment):
    outer = {name: value for name, value in os.environ.items() if name not in ("TENSORD_CASES", "TENSORD_REPORTS")}
    return subprocess.run([sys.executable, str(script), *map(str, arguments)], capture_output=True, text=True, check=False,
                          env={**outer, "PYTHONDONTWRITEBYTECODE": "1", **environment})


class FolderTestCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path


class FindTest(FolderTestCase):
    """A build folder as CMake leaves it, before anything is built."""

    def setUp(self):
        super().setUp()
        source = self.write("cache_test.cc", GTEST_SOURCE)
        script = self.write("test_colour.py", UNITTEST_SOURCE)
        self.write("tests.txt", f"engine_test gtest {source}\nclient_test unittest {script}\n")
        self.write("CTestTestfile.cmake", """
add_test(engine_test "/nowhere/engine_test")
add_test(client_test "/nowhere/client_test")
add_test(replay_fuzz "/nowhere/replay_fuzz")
set_tests_properties(engine_test PROPERTIES LABELS "sanitize")
""")

    def find(self, pattern, *arguments):
        found = run(FIND, self.folder, pattern, *arguments)
        self.assertEqual(found.returncode, 0, found.stderr)
        return found.stdout.splitlines()

    def test_names_of_tests_come_before_cases(self):
        self.assertEqual(self.find("ENGINE"), ["test engine_test"])
        self.assertEqual(self.find("_test$"), ["test engine_test", "test client_test"])
        self.assertEqual(self.find("replay"), ["test replay_fuzz"])

    def test_without_pattern_the_arguments_of_ctest_select(self):
        self.assertEqual(self.find("", "-R", "fuzz"), ["test replay_fuzz"])

    def test_a_suite_is_found_whole(self):
        self.assertEqual(self.find("cachetest"), ["test engine_test", "gtest CacheTest.*"])
        self.assertEqual(self.find("SettingsTest"), ["test engine_test", "gtest */SettingsTest.*"])

    def test_cases_are_found_one_by_one(self):
        self.assertEqual(self.find("evicts"), ["test engine_test", "gtest CacheTest.Evicts:SumTest/*.Evicts"])
        self.assertEqual(self.find(r"sharedtest\.w"), ["test engine_test", "gtest SharedTest.Waits"])
        self.assertEqual(self.find("loads"), ["test engine_test", "gtest */SettingsTest.Loads/*"])

    def test_cases_of_unittest_are_found_by_file_class_and_method(self):
        for pattern in ("test_colour", "shadetest", "ColourTest.test_red", "test_green"):
            with self.subTest(pattern=pattern):
                self.assertEqual(self.find(pattern), ["test client_test", f"unittest {pattern}"])

    def test_says_that_nothing_matches_and_what_is_near(self):
        found = run(FIND, self.folder, "CashTest")
        self.assertEqual((found.returncode, found.stdout), (2, ""))
        self.assertIn("nothing matches 'CashTest'", found.stderr)
        self.assertIn("near it are CacheTest", found.stderr)

    def test_says_which_arguments_left_nothing(self):
        found = run(FIND, self.folder, "ColourTest", "-L", "sanitize")
        self.assertEqual(found.returncode, 2)
        self.assertIn("nothing matches 'ColourTest' among those that '-L sanitize' leaves", found.stderr)

    def test_refuses_what_is_no_regular_expression(self):
        for pattern in "Cache(", "a{99999999999}", "(" * 3000 + ")" * 3000:
            with self.subTest(pattern[:20]):
                found = run(FIND, self.folder, pattern)
                self.assertEqual(found.returncode, 2)
                self.assertIn(f"'{pattern}' is no regular expression", found.stderr)


class SourcesTest(unittest.TestCase):
    def test_every_macro_that_declares_a_case_is_known(self):
        known = {"TEST", "TEST_F", "TEST_P", "TYPED_TEST"}
        others = {"TYPED_TEST_SUITE", "INSTANTIATE_TEST_SUITE_P"}
        for path in (ROOT / "tests").rglob("*_test.cc"):
            macros = set(re.findall(r"^([A-Z_]*TEST[A-Z_]*)\(", path.read_text(encoding="utf-8"), re.MULTILINE))
            self.assertLessEqual(macros, known | others, path)


class RunTest(FolderTestCase):
    def test_runs_the_cases_that_match(self):
        script = self.write("test_colour.py", UNITTEST_SOURCE)
        done = run(RUN, script, TENSORD_CASES="colourtest.*RED", TENSORD_REPORTS=str(self.folder))
        self.assertEqual(done.returncode, 0, done.stderr)
        (report,) = self.folder.glob("*.json")
        (suite,) = json.loads(report.read_text(encoding="utf-8"))["testsuites"]
        self.assertEqual([(case["classname"], case["name"]) for case in suite["testsuite"]],
                         [("test_colour.ColourTest", "test_red")])
        self.assertRegex(suite["testsuite"][0]["time"], r"^\d+\.\d+s$")

    def test_fails_with_its_cases(self):
        done = run(RUN, self.write("test_colour.py", UNITTEST_SOURCE))
        self.assertEqual(done.returncode, 1)
        self.assertIn("Ran 4 tests", done.stderr)
        self.assertIn("is not green", done.stderr)

    def test_fails_where_no_case_is_left(self):
        done = run(RUN, self.write("test_colour.py", UNITTEST_SOURCE), TENSORD_CASES="blue")
        self.assertEqual(done.returncode, 1)
        self.assertIn("matches 'blue'", done.stderr)

    def test_fails_where_a_file_cannot_be_imported(self):
        done = run(RUN, self.write("test_broken.py", "import no_such_module\n"), TENSORD_CASES="anything")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no_such_module", done.stderr)


class SlowestTest(FolderTestCase):
    def slowest(self, cases, tests):
        self.write("tests.txt", "engine_test gtest a_test.cc\n")
        rows = [{"classname": "Suite", "name": name, "time": f"{seconds}s"} for name, seconds in cases.items()]
        self.write("engine_test.json", json.dumps({"testsuites": [{"testsuite": rows}]}))
        junit = "".join(f'<testcase name="{name}" time="{seconds}"/>' for name, seconds in tests.items())
        return run(SLOWEST, self.folder, self.folder, self.write("ctest.xml", f"<testsuite>{junit}</testsuite>"))

    def test_five_are_printed_the_slowest_first(self):
        cases = {f"Case{number}": number / 10 for number in range(8)}
        done = self.slowest(cases, {"engine_test": 3.0, "replay_fuzz": 0.45})
        self.assertEqual(done.returncode, 0, done.stderr)
        head, *rows = done.stdout.splitlines()
        self.assertEqual(head, "== 9 cases ran; the slowest:")
        self.assertEqual([row.split()[-1] for row in rows], ["Suite.Case7", "Suite.Case6", "Suite.Case5", "replay_fuzz", "Suite.Case4"])

    def test_a_filter_that_leaves_nothing_is_a_failure(self):
        self.assertEqual(self.slowest({}, {"engine_test": 0.1}).returncode, 1)


if __name__ == "__main__":
    unittest.main()
