"""`tensordctl top`, `bench` and `help` on terminals of two sizes, against a real server.

Needs TENSORD_BINARY and TENSORDCTL_BINARY.
"""

import http.server
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from screen_process import Screen, ScreenProcess  # noqa: E402
from server_process import ServerProcess  # noqa: E402

SIZES = ((24, 80), (12, 60))
GRAPH = {"inputs": [{"name": "x", "type": {"dtype": "DTYPE_F32", "shape": [{"size": 2}]}}],
         "outputs": [{"name": "y", "value": "x"}]}


class ScreenTest(unittest.TestCase):
    """The terminal of these tests is one."""

    def test_lines_that_are_too_long_go_on_in_the_next(self):
        screen = Screen(2, 3)
        screen.feed("abc")
        self.assertEqual((screen.lines(), screen.wrapped, screen.scrolled), (["abc", ""], 0, 0))
        screen.feed("d\r\ne")
        self.assertEqual((screen.lines(), screen.wrapped, screen.scrolled), (["d", "e"], 1, 1))

    def test_sequences(self):
        screen = Screen(3, 4)
        screen.feed("one\r\ntwo\r\nsix\x1b")
        screen.feed("[H\x1b[Kx\r\ny\x1b[J")
        self.assertEqual(screen.lines(), ["x", "y", ""])
        screen.feed("\x1b[Habcd\x1b[K")
        self.assertEqual(screen.lines()[0], "abc", "as terminals do")
        for unknown in "\x1b[2A", "\x1b[A", "\x07":
            with self.assertRaises(AssertionError):
                screen.feed(unknown)


class TerminalTest(unittest.TestCase):
    def setUp(self):
        if "TENSORDCTL_BINARY" not in os.environ:
            self.skipTest("TENSORDCTL_BINARY is not set: nothing to show a server")
        folder = tempfile.TemporaryDirectory(prefix="tensord-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.target = f"unix:{folder.name}/s"
        self.server = self.start("127.0.0.1:0")
        self.metrics = self.server.metrics_address()

    def start(self, metrics):
        server = ServerProcess(f"--metrics={metrics}", f"--listen={self.target}", "--log-level=warning")
        self.addCleanup(server.stop)
        return server

    def on_terminal(self, size, *words):
        process = ScreenProcess(*size, [os.environ["TENSORDCTL_BINARY"], *words])
        self.addCleanup(process.close)
        return process

    def top(self, size, *words, interval="20ms", metrics=None):
        return self.on_terminal(size, "top", f"--target={self.target}", f"--metrics={metrics or self.metrics}",
                                f"--interval={interval}", *words)

    def silent_page(self):
        """The address of a page that is never sent."""
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        return "{}:{}".format(*silent.getsockname())

    def last_page(self):
        """The address of an empty page, with which the server of calls hangs until SIGCONT."""
        server = self.server.pid

        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                os.kill(server, signal.SIGSTOP)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *arguments):
                pass

        pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
        self.addCleanup(pages.server_close)
        self.addCleanup(pages.shutdown)
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        return "{}:{}".format(*pages.server_address)

    def bench(self, size, *words):
        return self.on_terminal(size, "bench", f"--target={self.target}", "--warmup=0s", *words)

    def call_many_methods(self):
        graph = self.folder / "graph.json"
        graph.write_text(json.dumps(GRAPH))
        for words in (("health",), ("info",), ("compile", graph), ("explain", graph), ("einsum", "->", "-")):
            npy = b"\x93NUMPY\x01\x00\x3b\x00" + b"{'descr': '<f4', 'fortran_order': False, 'shape': (), }".ljust(
                58) + b"\n\x00\x00\x80\x3f"
            subprocess.run([os.environ["TENSORDCTL_BINARY"], f"--target={self.target}", *words], input=npy, check=True,
                           capture_output=True, timeout=300)

    def test_top_fits_and_shows_the_busy_first(self):
        self.call_many_methods()
        load = subprocess.Popen([os.environ["TENSORDCTL_BINARY"], "bench", f"--target={self.target}",
                                 "--workload=busy:20", "--concurrency=2", "--duration=1h"], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        self.addCleanup(load.wait)
        self.addCleanup(load.kill)
        for size in SIZES:
            with self.subTest(size):
                top = self.top(size)

                def is_busy(lines):
                    titles = [row for row, line in enumerate(lines) if line.startswith("method ")]
                    return bool(titles) and lines[titles[0] + 1].startswith("Execute ")

                lines = top.until(is_busy)
                self.assertTrue(lines[0].startswith("tensord "), lines)
                top.until(lambda lines: any(line.startswith("cpu:0 ") for line in lines))
                top.type(b"q")
                self.assertEqual(top.wait(), 0)
                self.assertEqual(top.screen.wrapped, 0)
                # The line's end behind the last view, where the shell goes on, moves a full screen by one.
                self.assertLessEqual(top.screen.scrolled, 1)

    def test_top_outlives_the_server(self):
        top = self.top(SIZES[1])
        top.until(lambda lines: lines[0].startswith("tensord ") and "ready" in lines[0])
        self.server.stop()
        top.until(lambda lines: lines[0].startswith("no view: ") and not any(lines[1:]))
        self.start(self.metrics)
        top.until(lambda lines: lines[0].startswith("tensord ") and "ready" in lines[0])
        top.type(b"xq")
        self.assertEqual(top.wait(), 0)
        self.assertEqual(top.screen.wrapped, 0)

    def test_keys_end_top_and_leave_the_terminal_as_it_was(self):
        for keys in b"q", b"\x03":
            with self.subTest(keys):
                top = self.top(SIZES[0])
                top.until(lambda lines: lines[0].startswith("tensord "))
                self.assertTrue(top.is_raw())
                top.type(keys)
                self.assertEqual(top.wait(), 0)
                self.assertFalse(top.is_raw())

    def test_signals_end_top_and_leave_the_terminal_as_it_was(self):
        for number in signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT:
            with self.subTest(number):
                top = self.top(SIZES[0])
                top.until(lambda lines: lines[0].startswith("tensord "))
                self.assertTrue(top.is_raw())
                top.signal(number)
                self.assertEqual(top.wait(), -number)
                self.assertFalse(top.is_raw())

    def test_a_look_that_would_take_an_hour_ends_at_once(self):
        self.addCleanup(os.kill, self.server.pid, signal.SIGCONT)
        for what, metrics in ("page", self.silent_page()), ("call", self.last_page()):
            for keys in b"q", b"\x03", b"\x03\x03\x03":
                with self.subTest(what, keys=keys):
                    os.kill(self.server.pid, signal.SIGCONT)
                    top = self.top(SIZES[0], "--deadline=1h", metrics=metrics)
                    top.until_raw()
                    if what == "call":
                        os.waitid(os.P_PID, self.server.pid, os.WSTOPPED | os.WNOWAIT)
                    top.type(keys)
                    # The second Ctrl-C ends top at once, unless the first one has done so before.
                    self.assertIn(top.wait(), (0, -signal.SIGINT) if len(keys) > 1 else (0,))
                    self.assertFalse(top.is_raw())

    def test_top_without_a_pause_hears_keys(self):
        top = self.top(SIZES[0], interval="1ns")
        top.until(lambda lines: lines[0].startswith("tensord "))
        top.type(b"xxxxq")
        self.assertEqual(top.wait(), 0)
        self.assertFalse(top.is_raw())

    def test_bench_shows_its_progress_in_one_line(self):
        for size in SIZES:
            with self.subTest(size):
                bench = self.bench(size, "--concurrency=2", "--duration=1h")
                lines = bench.until(lambda lines: " ok, 0 not: tiny f32, closed loop of 2" in lines[0])
                self.assertRegex(lines[0], r"^[0-9ms]+ of 1h, [0-9.]+[kM]? ok, ")
                self.assertFalse(any(lines[1:]), lines)
                bench.interrupt()
                self.assertEqual(bench.wait(), 1)
                lines = bench.screen.lines()
                if bench.screen.scrolled == 0:
                    self.assertTrue(lines[0].startswith("tiny f32, closed loop of 2 on 1 connection"), lines)
                self.assertTrue(any(line.startswith("  latency  p50 ") for line in lines), lines)
                self.assertFalse(any(" not: " in line for line in lines), "the progress is gone")
                self.assertEqual(bench.screen.wrapped, 0)

    def test_bench_ends_when_the_server_does(self):
        bench = self.bench(SIZES[1], "--duration=1h", "--give-up=300ms")
        bench.until(lambda lines: " ok, 0 not: " in lines[0])
        self.server.kill()
        self.assertEqual(bench.wait(), 1)
        text = "".join(bench.screen.lines()).replace(" ", "")
        self.assertIn("UNAVAILABLE: no call has reached the server for 300ms".replace(" ", ""), text)

    def test_help_breaks_its_lines_at_words(self):
        done = subprocess.run([os.environ["TENSORDCTL_BINARY"], "help"], check=True, capture_output=True, text=True)
        listed = done.stdout.partition("Commands:\n")[2].partition("\n\n")[0]
        commands = re.findall(r"^  ([a-z-]+) ", listed, re.MULTILINE)
        self.assertIn("bench", commands)
        for size in SIZES:
            for words in (("help",), *(("help", command) for command in commands)):
                with self.subTest(size=size, words=words):
                    shown = self.on_terminal(size, *words)
                    self.assertEqual(shown.wait(), 0)
                    self.assertEqual(shown.screen.wrapped, 0)


if __name__ == "__main__":
    unittest.main()
