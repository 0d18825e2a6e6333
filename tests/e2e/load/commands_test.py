"""`tensordctl bench` and `tensordctl top` against a real server.

Needs TENSORD_BINARY and TENSORDCTL_BINARY.
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from server_process import ServerProcess  # noqa: E402

QUICK = ("--duration=300ms", "--warmup=50ms")


class CommandsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if "TENSORDCTL_BINARY" not in os.environ:
            raise unittest.SkipTest("TENSORDCTL_BINARY is not set: nothing to make load with")
        cls.server = ServerProcess("--metrics=127.0.0.1:0", "--log-level=warning")
        cls.addClassCleanup(cls.server.stop)

    def tensordctl(self, *words, status=0):
        """The output of the command, which is JSON."""
        command = [os.environ["TENSORDCTL_BINARY"], words[0], f"--target={self.server.target}", "--json", *words[1:]]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        self.assertEqual(done.returncode, status, f"{words}: {done.stderr}")
        return json.loads(done.stdout)

    def test_every_workload_runs(self):
        words = "tiny,busy:3,matmul:16,upload:64Ki,download:64Ki"
        for dtype in ("f32", "f64", "c64", "bf16"):
            with self.subTest(dtype):
                done = self.tensordctl("bench", f"--workload={words}", f"--dtypes={dtype}", "--concurrency=4", *QUICK)
                run, = done["runs"]
                self.assertEqual(run["failed"] + run["refused"] + run["unfinished"], 0, run["failures"])
                self.assertEqual(len(run["workloads"]), 5)
                self.assertGreater(run["ok"], 0)  # more in this time is the machine's matter

    def test_the_split_adds_up(self):
        run, = self.tensordctl("bench", "--workload=busy:200", "--concurrency=1", *QUICK)["runs"]
        parts = sum(run[part]["mean"] for part in ("unsent_ms", "queue_ms", "compile_ms", "run_ms", "rest_ms"))
        self.assertAlmostEqual(parts, run["latency_ms"]["mean"], delta=0.01 * run["latency_ms"]["mean"])
        self.assertGreater(run["run_ms"]["p50"], 0)

    def test_overload_and_gates(self):
        missed = self.tensordctl("bench", "--workload=busy:20", "--overload=2", "--concurrency=4", "--min-goodput=1000",
                                 *QUICK, status=1)
        run, = missed["runs"]
        self.assertAlmostEqual(run["rate"], 2 * run["peak_goodput"], delta=1e-3)
        self.assertEqual(len(missed["missed"]), 1)

    def test_top_sees_the_load(self):
        load = subprocess.Popen([os.environ["TENSORDCTL_BINARY"], "bench", f"--target={self.server.target}",
                                 "--workload=busy:20", "--concurrency=2", "--duration=1h"], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        self.addCleanup(load.wait)
        self.addCleanup(load.kill)
        while True:  # until it has begun
            view = self.tensordctl("top", "--once", "--interval=200ms", f"--metrics={self.server.metrics_address()}")
            execute = view["methods"].get("Execute", {})
            if execute.get("calls_per_second", 0) > 0 and "p50_ms" in execute:
                break
            self.assertIsNone(load.poll(), "the load ended by itself")
        self.assertTrue(view["ready"])
        self.assertGreater(view["cached_programs"], 0)
        device = view["devices"]["cpu:0"]
        self.assertGreater(device["executors"], 0)
        self.assertGreaterEqual(execute["p99_ms"], execute["p50_ms"])
        load.send_signal(2)  # Ctrl-C
        self.assertEqual(load.wait(60), 1)


if __name__ == "__main__":
    unittest.main()
