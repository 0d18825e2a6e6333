"""What is told at the end of a run whose tests failed."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

FAILED = pathlib.Path(__file__).resolve().parents[2] / "deploy/dev/failed_tests.py"

LOG = """Start testing: Jan 01 00:00 UTC
1/3 Testing: good_test
1/3 Test: good_test
Output:
tests/a_test.cc:3: Failure
it was retried
Test Passed.
2/3 Testing: sums_test
2/3 Test: sums_test
Output:
{"level":"warning"}
tests/sums_test.cc:12: Failure
Expected: 3
  Actual: 4
{"1":0}
{"2":0}
{"3":0}
{"4":0}
{"5":0}
{"6":0}
{"7":0}
[  FAILED  ] SumsTest.Add (3 ms)
Test Failed.
3/3 Testing: stuck_test
3/3 Test: stuck_test
Output:
waits
"""


class FailedTestsTest(unittest.TestCase):
    def printed(self, log):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "Testing/Temporary/LastTest.log"
            path.parent.mkdir(parents=True)
            path.write_text(log, encoding="utf-8")
            ran = subprocess.run([sys.executable, str(FAILED), folder, folder + "/none"], capture_output=True, text=True,
                                 check=True)
        return ran.stdout.replace(folder, "FOLDER").splitlines()

    def test_tells_place_and_case_without_what_is_around(self):
        printed = self.printed(LOG)
        self.assertEqual(printed[:4], ["== FOLDER: sums_test failed (Test Failed)", "tests/sums_test.cc:12: Failure",
                                       "Expected: 3", "  Actual: 4"])
        self.assertIn("[  FAILED  ] SumsTest.Add (3 ms)", printed)
        self.assertNotIn('{"level":"warning"}', printed)
        self.assertNotIn('{"7":0}', printed)

    def test_tells_the_end_of_a_test_that_says_nothing_of_failures(self):
        self.assertEqual(self.printed(LOG)[-4:], ["== FOLDER: stuck_test failed (the test did not end)", "Output:", "waits",
                                                  "the test did not end"])

    def test_a_long_account_is_cut(self):
        failures = "".join(f"tests/sums_test.cc:{line}: Failure\n" for line in range(99))
        self.assertEqual(self.printed(f"1/1 Test: sums_test\n{failures}Test Failed.\n")[-1], "… and 40 more lines")


if __name__ == "__main__":
    unittest.main()
