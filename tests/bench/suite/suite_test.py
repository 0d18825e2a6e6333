"""The suite measures, checks and reports: a few small workloads without peers, whose figures nobody looks at."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

RUN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "run.py")
SMALL = ["G01b_sqrt_f32", "G10_bf16", "G11_f64_256", "G11_bf16_1024", "G11_f16_1024", "G12_64", "G13", "G13_wide", "G18",
         "G19_svd_4", "G19_qr_4", "G19_eigh_4", "G19_solve_4", "G20_lu", "G21_poisson_solver", "G21_spectrum", "G23_128",
         "G28_max_plus_f32_256", "G28_or_and_256", "G29_spin_glass_12", "G24_small"]
# A hyperedge, a label of one operand alone, an open one, and labels that are no letters of the alphabet.
NETWORK = {"format_string": "aé,abc,cdé,ea,d->bd", "shapes": [[3, 4], [3, 5, 6], [6, 7, 4], [2, 3], [7]],
           "paths": {"opt_flops": {"path": [[0, 3], [0, 2], [1, 2], [0, 1]]}}}


class SuiteTest(unittest.TestCase):
    def test_results_are_checked_and_reported(self):
        with tempfile.TemporaryDirectory() as folder:
            figures = os.path.join(folder, "figures.json")
            with open(os.path.join(folder, "small.json"), "w", encoding="utf-8") as f:
                json.dump(NETWORK, f)
            done = subprocess.run([sys.executable, RUN, "--bin=" + os.path.dirname(os.environ["BENCH_GRAPHS_BINARY"]), "--filter=" + ",".join(SMALL),
                                   "--threads=1", "--rounds=2", "--peers=none", "--networks=" + folder, "--json=" + figures],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertRegex(done.stdout, r"memory: \d+\.\d MB planned, \d+\.\d MB alive at once")
            with open(figures) as f:
                measured = json.load(f)
            self.assertEqual([row["workload"] for row in measured["workloads"]], SMALL)
            for row in measured["workloads"]:
                self.assertGreater(row["limit_ms"], 0)
                self.assertEqual(row["peers"], {})
            # Add a peer as if it had run as well.
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
            self.assertIn("| jax | 1 | 0.50 | 20 | 20 |", text)

    def test_what_is_behind_is_reported_with_its_reason(self):
        sys.path.insert(0, os.path.join(os.path.dirname(RUN), "report"))
        import report

        def row(workload, peer_ms, threads=1):
            return {"workload": workload, "threads": threads, "ours_ms": 1.0, "ns_per_element": 1.0, "limit": "functions",
                    "limit_ms": 0.1, "share": 0.1, "ours_compile_ms": 1.0, "peers": {"jax": peer_ms},
                    "peers_first_run_ms": {}}

        measured = {"workloads": [row("G01", 2.0), row("G01b_sqrt_f32", 0.5), row("G01b_sqrt_f32", 0.25, threads=2),
                                  row("G01b_exp_f32", 2.0), row("G01b_exp_f64", 0.75), row("G01b_log_f64", 1.0)]}
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "shortfalls.md"), "w", encoding="utf-8") as f:
                f.write("# Reasons\n\n## G01b_sqrt\n\nRoots wait for the divider.\n\n## G01b_exp_f32\n\nIt is not behind.\n")
            report.write(measured, folder)
            with open(os.path.join(folder, "report.md"), encoding="utf-8") as f:
                section = f.read().split("## Where it falls short\n\n")[1]
        self.assertEqual(section, "### G01b_sqrt_f32\n\n1 thread: jax 0.50; 2 threads: jax 0.25.\n\nRoots wait for the divider.\n\n"
                                  "### G01b_exp_f64\n\n1 thread: jax 0.75.\n")

    def test_memory_of_networks(self):
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        import suite
        self.assertIsNone(suite.memory_problem("G24_a", {"planned_bytes": 1150000, "alive_bytes": 1000000}))
        self.assertIsNone(suite.memory_problem("G24_a", {"planned_bytes": 4096, "alive_bytes": 64}))
        self.assertIn("1.20 times", suite.memory_problem("G24_a", {"planned_bytes": 1200000, "alive_bytes": 1000000}))

    def test_networks(self):
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        import networks
        import numpy
        network = networks.Network(NETWORK)
        random = numpy.random.default_rng(5)
        tensors = [random.uniform(size=shape) for shape in network.shapes]
        wanted = numpy.einsum("ax,abc,cdx,ea,d->bd", *tensors)
        numpy.testing.assert_allclose(network.contracted(tensors), wanted, rtol=1e-12)
        self.assertEqual([result for _, _, result in network.steps()][-1], network.output)
        # aé,ea; abc,d; aé,abcd; cdé,bcdé.
        self.assertEqual([flops for flops, _ in network.flops_and_bytes()],
                         [2 * 3 * 4 * 2, 3 * 5 * 6 * 7, 2 * 3 * 4 * 5 * 6 * 7, 2 * 4 * 5 * 6 * 7])
        # Elements of the mean of 1 are summed up to results near 1.
        small = network.contracted([numpy.full(shape, network.mean) for shape in network.shapes])
        numpy.testing.assert_allclose(small, numpy.ones_like(small), rtol=1e-12)
        floor = networks.step_floor_ms(network, {"cached_gb_per_s": 1, "copy_gb_per_s": 1e-9, "f64_gflops": 1e9})
        self.assertAlmostEqual(floor, sum(moved for _, moved in network.flops_and_bytes()) / 1e6)

    def test_wrong_results_are_refused(self):
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        import numpy
        import suite
        wanted = {"y": numpy.array([1.0, 2.0, numpy.nan])}
        about = {"outputs": [{"name": "y", "dtype": "f64", "shape": [3]}]}
        self.assertIsNone(suite.wrong_result("G01", about, wanted, lambda _: wanted["y"] * (1 + 1e-12), suite.TOLERANCE))
        self.assertEqual(suite.wrong_result("G01", about, wanted, lambda _: wanted["y"] * (1 + 1e-8), suite.TOLERANCE), "y")


if __name__ == "__main__":
    unittest.main()
