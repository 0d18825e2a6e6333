"""`tensordctl bench` and `tensordctl top` against a real server, `top` on a terminal too.

Needs TENSORD_BINARY and TENSORDCTL_BINARY.
"""

import fcntl
import json
import os
import pathlib
import pty
import struct
import subprocess
import sys
import tempfile
import termios
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


class TopOnATerminal:
    """`tensordctl top` on a terminal of 12 rows of 60."""

    ROWS, COLUMNS = 12, 60

    def __init__(self, *words):
        self._pid, self._screen = pty.fork()
        if self._pid == 0:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", self.ROWS, self.COLUMNS, 0, 0))
            os.execv(os.environ["TENSORDCTL_BINARY"], ["tensordctl", "top", *words])
        self._unread = b""

    def view(self):
        """The lines of the next view."""
        while b"\x1b[J" not in self._unread:
            self._unread += os.read(self._screen, 65536)
        drawn, _, self._unread = self._unread.partition(b"\x1b[J")
        return drawn.decode().partition("\x1b[H")[2].replace("\x1b[K", "").split("\r\n")

    def view_with(self, words):
        """The next view whose first line has these words."""
        while True:
            view = self.view()
            if words in view[0]:
                return view

    def type(self, keys):
        os.write(self._screen, keys)

    def is_raw(self):
        modes = termios.tcgetattr(self._screen)[3]
        return not modes & termios.ICANON and not modes & termios.ECHO

    def wait(self):
        try:
            while os.read(self._screen, 65536):
                pass
        except OSError:  # nobody has the other end
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def close(self):
        os.close(self._screen)


class TerminalTest(unittest.TestCase):
    def setUp(self):
        if "TENSORDCTL_BINARY" not in os.environ:
            self.skipTest("TENSORDCTL_BINARY is not set: nothing to show a server")
        folder = tempfile.TemporaryDirectory(prefix="tensord-")
        self.addCleanup(folder.cleanup)
        self.target = f"unix:{folder.name}/s"
        self.server = self.start("127.0.0.1:0")
        self.metrics = self.server.metrics_address()

    def start(self, metrics):
        server = ServerProcess(f"--metrics={metrics}", f"--listen={self.target}", "--log-level=warning")
        self.addCleanup(server.stop)
        return server

    def top(self):
        top = TopOnATerminal(f"--target={self.target}", f"--metrics={self.metrics}", "--interval=20ms")
        self.addCleanup(top.close)
        return top

    def test_its_views_fit_and_outlive_the_server(self):
        top = self.top()
        for _ in range(3):
            view = top.view_with("ready")
            self.assertTrue(view[0].startswith("tensord "), view)
            self.assertLessEqual(len(view), TopOnATerminal.ROWS)
            self.assertLessEqual(max(map(len, view)), TopOnATerminal.COLUMNS)
        self.server.stop()
        self.assertEqual(len(top.view_with("no view: ")), 1)
        self.start(self.metrics)
        top.view_with("ready")
        top.type(b"xq")
        self.assertEqual(top.wait(), 0)

    def test_keys_end_it_and_leave_the_terminal_as_it_was(self):
        for keys in b"q", b"\x03":
            with self.subTest(keys):
                top = self.top()
                top.view()
                self.assertTrue(top.is_raw())
                top.type(keys)
                self.assertEqual(top.wait(), 0)
                self.assertFalse(top.is_raw())


if __name__ == "__main__":
    unittest.main()
