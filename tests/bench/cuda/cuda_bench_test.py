"""The benchmark of a GPU, on the CUDA device that the processor plays: that all of it works, not how fast it is."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import peers  # noqa: E402
import same_bits  # noqa: E402
import table  # noqa: E402

FIGURES = {"device": "a GPU", "workloads": [
    {"workload": "negate_f32", "bytes": 8_000_000_000, "flops": 0, "is_chain": False, "device_ms": 2.0, "run_ms": 2.1, "digest": "a"},
    {"workload": "product_f32", "bytes": 0, "flops": 1e12, "is_chain": False, "device_ms": 20.0, "run_ms": 20.1, "digest": "b"},
    {"workload": "one_small_map_f32", "bytes": 0, "flops": 0, "is_chain": True, "device_ms": 0.002, "run_ms": 0.02, "digest": "c"}]}


class TableTest(unittest.TestCase):
    def test_rates_ratios_and_the_quickest_peer(self):
        quick = {"library": "quick", "workloads": {"negate_f32": {"device_ms": 1.0, "run_ms": 9.0},
                                                   "one_small_map_f32": {"device_ms": 9.0, "run_ms": 0.04}}}
        slow = {"library": "slow", "workloads": {"negate_f32": {"device_ms": 8.0, "run_ms": 8.0}}}
        head, *rows = table.rows(FIGURES, [quick, slow])
        self.assertEqual(head, ["workload", "GPU ms", "rate", "of copy", "run ms", "quick", "slow", "best / ours"])
        self.assertEqual(rows[0], ["negate_f32", "2.0000", "4000 GB/s", "1.00", "2.1000", "1.0000", "8.0000", "0.50"])
        self.assertEqual(rows[1], ["product_f32", "20.0000", "50 TF/s", "", "20.1000", "", "", ""])
        self.assertEqual(rows[2], ["one_small_map_f32", "0.0020", "", "", "0.0200", "0.0400", "", "2.00"], "by the time of a call")


class HostDeviceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        binary = os.environ.get("BENCH_CUDA_BINARY")
        if binary is None:
            raise unittest.SkipTest("BENCH_CUDA_BINARY is not set")
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        libraries = os.path.join(os.path.dirname(os.path.dirname(binary)), "hostcuda")
        cls.paths = [os.path.join(cls.folder.name, name) for name in ("first", "again")]
        cls.said = [subprocess.run([binary, "--libraries=" + libraries, "--divide=1048576", "--milliseconds=1", "--filter=" + begin,
                                    "--json=" + path], capture_output=True, text=True, check=True).stdout
                    for begin, path in zip(("", "ne"), cls.paths)]

    def test_every_workload_runs_and_peers_know_it(self):
        with open(self.paths[0], encoding="utf-8") as file:
            figures = json.load(file)
        self.assertEqual(figures["device"], "host CUDA device")
        names = [workload["workload"] for workload in figures["workloads"]]
        self.assertGreater(len(names), 20)
        self.assertEqual(set(names), set(peers.graphs(peers.Library())))
        for workload in figures["workloads"]:
            with self.subTest(workload["workload"]):
                self.assertGreater(workload["device_ms"], 0)
                self.assertGreaterEqual(workload["run_ms"], 0)
                self.assertLessEqual({i["dtype"] for i in workload["inputs"]}, set(peers.DTYPES))

    def test_bits_of_two_processes_are_compared(self):
        first, again = (same_bits.digests(path) for path in self.paths)
        self.assertEqual(again, {"negate_f32": first["negate_f32"]})
        script = os.path.join(HERE, "same_bits.py")
        well = subprocess.run([sys.executable, script, self.paths[0], self.paths[0]], capture_output=True, text=True, check=False)
        self.assertEqual(well.returncode, 0, well.stderr)
        other = subprocess.run([sys.executable, script, *self.paths], capture_output=True, text=True, check=False)
        self.assertEqual(other.returncode, 1)
        self.assertIn("softmax_1024_f32", other.stderr)


if __name__ == "__main__":
    unittest.main()
