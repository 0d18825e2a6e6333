"""The suite measures, checks and reports: a few small workloads without peers, whose figures nobody looks at."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

RUN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "run.py")
SMALL = ["G01b_sqrt_f32", "G11_f64_256", "G12_64", "G13", "G21_spectrum", "G23_128"]


class SuiteTest(unittest.TestCase):
    def test_results_are_checked_and_reported(self):
        with tempfile.TemporaryDirectory() as folder:
            figures = os.path.join(folder, "figures.json")
            done = subprocess.run([sys.executable, RUN, "--bin=" + os.environ["TENSORD_BIN"], "--filter=" + ",".join(SMALL),
                                   "--threads=1", "--rounds=2", "--peers=none", "--json=" + figures],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout)
            with open(figures) as f:
                measured = json.load(f)
            self.assertEqual([row["workload"] for row in measured["workloads"]], SMALL)
            for row in measured["workloads"]:
                self.assertGreater(row["limit_ms"], 0)
                self.assertEqual(row["peers"], {})
            # As if a peer had run as well.
            for row in measured["workloads"]:
                row["peers"]["jax"] = row["ours_ms"] / 2
            measured["versions"] = {"jax": "0"}
            sys.path.insert(0, os.path.join(os.path.dirname(RUN), "report"))
            import report
            report.write(measured, folder)
            with open(os.path.join(folder, "report.md")) as f:
                text = f.read()
            for workload in SMALL[1:]:
                self.assertIn("### " + workload, text)
            self.assertIn("| jax | 1 | 0.50 | 5 | 5 |", text)

    def test_wrong_results_are_refused(self):
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        import numpy
        import suite
        wanted = {"y": numpy.array([1.0, 2.0, numpy.nan])}
        about = {"outputs": [{"name": "y", "dtype": "f64", "shape": [3]}]}
        self.assertIsNone(suite.wrong_result(about, wanted, lambda _: wanted["y"] * (1 + 1e-12), suite.TOLERANCE))
        self.assertEqual(suite.wrong_result(about, wanted, lambda _: wanted["y"] * (1 + 1e-8), suite.TOLERANCE), "y")


if __name__ == "__main__":
    unittest.main()
