"""Five incidents as an operator meets them: each is told by a command, a metric or a line in the log, as docs/operate/runbook.md says.

Needs TENSORD_BINARY and TENSORDCTL_BINARY.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "python"))
sys.path.insert(0, str(ROOT / "clients" / "python"))
import numpy as np  # noqa: E402
from server_process import ServerProcess, binary_or_skip  # noqa: E402
import tensord as td  # noqa: E402

PATIENCE_SECONDS = 60


def wide_sum(size):
    """exp(x) of x broadcast to [16, size], summed: as long as `size` is large, and no tensor of that size."""
    return lambda x: td.sum(td.exp(td.broadcast_to(td.reshape(x, (16, 1)), (16, size))), axis=1)


class IncidentsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        binary_or_skip()
        if "TENSORDCTL_BINARY" not in os.environ:
            raise unittest.SkipTest("TENSORDCTL_BINARY is not set: no operator's tool")

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tensord-incident-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, *settings):
        self.admin = f"unix:{self.folder}/admin"
        server = ServerProcess("--metrics=127.0.0.1:0", f"--set=admin.listen={self.admin}",
                               *(f"--set={setting}" for setting in settings))
        self.addCleanup(server.stop)
        self.client = td.Client(server.target, timeout=600)
        self.addCleanup(self.client.close)
        return server

    def tensordctl(self, *words, target=None, status=0):
        where = f"--target={target}" if target else f"--admin={self.admin}"
        done = subprocess.run([os.environ["TENSORDCTL_BINARY"], words[0], where, "--json", *words[1:]],
                              capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
        self.assertEqual(done.returncode, status, f"{words}: {done.stderr}")
        return json.loads(done.stdout) if status == 0 else done.stderr

    def metric(self, server, name, **labels):
        """The sum of the metric's series that have these labels."""
        with urllib.request.urlopen(f"http://{server.metrics_address()}/metrics", timeout=PATIENCE_SECONDS) as page:
            lines = page.read().decode().splitlines()
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        found = [line for line in lines if line.startswith((name + "{", name + " "))]
        return sum(float(line.rsplit(" ", 1)[1]) for line in found if all(label in line for label in wanted))

    def until(self, what, look):
        end = time.monotonic() + PATIENCE_SECONDS
        while not (found := look()):
            self.assertLess(time.monotonic(), end, what)
        return found

    def test_out_of_memory(self):
        server = self.start("cpu.memory_bytes=67108864")
        program = td.compile(lambda x: td.broadcast_to(x, (64, 1 << 20)) + x, td.spec((1 << 20,), "float32"), client=self.client)
        with self.assertRaises(td.Error) as refused:
            program(np.zeros(1 << 20, np.float32))
        self.assertIn("cpu.memory_bytes", str(refused.exception))
        self.assertEqual(self.metric(server, "tensord_out_of_memory_total", pool="runs"), 1)
        recorded = self.tensordctl("flight-recorder")["entries"]
        self.assertIn("OUT_OF_MEMORY", [entry.get("reason") for entry in recorded])

    def test_one_run_holds_the_device(self):
        server = self.start("cpu.executors=1", "cpu.queue_length=1")
        endless = td.compile(wide_sum(1 << 36), td.spec((16,), "float32"), client=self.client)
        other = td.compile(wide_sum(1 << 16), td.spec((16,), "float32"), client=self.client)
        ones = np.ones(16, np.float32)
        outcomes = {}

        def run(program):
            try:
                outcomes[program] = program(ones)
            except td.Error as error:
                outcomes[program] = error

        def listed(stage):
            return [call for call in self.tensordctl("calls").get("calls", []) if call["stage"] == stage]

        threads = [threading.Thread(target=run, args=(program,)) for program in (endless, other)]
        threads[0].start()
        holder, = self.until("nobody holds the device", lambda: listed("compute"))
        threads[1].start()
        self.until("nobody waits", lambda: listed("queue"))
        with self.assertRaises(td.Error) as refused:
            other(ones)
        self.assertIn("QUEUE_FULL", str(refused.exception))
        self.assertGreater(self.metric(server, "tensord_queue_oldest_age_seconds"), 0)
        self.assertEqual((holder["fingerprint"], holder["device"]), (endless.fingerprint, "cpu:0"))
        self.assertRegex(holder["peer"], rf"^unix:pid={os.getpid()},uid={os.getuid()}$")
        self.tensordctl("calls", f"--cancel={holder['id']}")
        for thread in threads:
            thread.join()
        self.assertIn("an operator ended the call", str(outcomes[endless]))
        np.testing.assert_allclose(outcomes[other], np.full(16, np.e * (1 << 16)), rtol=1e-3)

    def test_a_certificate_that_ends(self):
        key, certificate = self.folder / "server.key", self.folder / "server.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-days", "3", "-subj", "/CN=server", "-keyout", key, "-out", certificate],
                       check=True, capture_output=True)  # fmt: skip
        key.chmod(0o600)
        server = self.start("listen=127.0.0.1:0", f"tls.certificate={certificate}", f"tls.key={key}")
        ends = self.metric(server, "tensord_tls_certificate_expiry_timestamp_seconds", certificate="server")
        self.assertAlmostEqual(ends, time.time() + 3 * 86400, delta=3600)

    def test_a_damaged_cache(self):
        programs = self.folder / "programs"
        server = self.start(f"program_cache.disk_path={programs}")
        program = td.compile(wide_sum(64), td.spec((16,), "float32"), client=self.client)
        fingerprint = program.fingerprint
        self.until("it is not on disk", lambda: self.tensordctl("programs")["programs"][0].get("on_disk"))
        server.stop()
        damaged, = (path for path in programs.rglob("*") if path.is_file() and fingerprint in path.name)
        content = bytearray(damaged.read_bytes())
        content[len(content) // 2] ^= 0xFF
        damaged.write_bytes(content)
        server = self.start(f"program_cache.disk_path={programs}")
        self.until("nothing tells of it", lambda: self.metric(server, "tensord_program_cache_load_errors_total") > 0)
        self.assertFalse(damaged.exists(), "it is deleted")
        self.assertIn("cannot be used: its bytes are not what", server.log())
        program = td.compile(wide_sum(64), td.spec((16,), "float32"), client=self.client)
        np.testing.assert_allclose(program(np.zeros(16, np.float32)), np.full(16, 64.0))

    def test_a_slow_program(self):
        server = self.start()
        program = td.compile(wide_sum(1 << 20), td.spec((16,), "float32"), client=self.client)
        for _ in range(20):
            program(np.zeros(16, np.float32))
        entry, = self.tensordctl("programs")["programs"]
        self.assertEqual(entry["tenant"], "default")
        self.assertGreater(float(entry["mean_run_time"].removesuffix("s")), 0)
        prefix = entry["program"]["fingerprint"][:12]
        self.assertIn("cpu:0", self.tensordctl("explain", prefix, target=server.target)["text"])
        self.assertGreater(self.metric(server, "tensord_segment_seconds_count"), 0)
        self.assertGreater(self.metric(server, "tensord_execute_stage_seconds_count", stage="compute"), 0)


if __name__ == "__main__":
    unittest.main()
