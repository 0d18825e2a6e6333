"""Starts the tensord binary that the environment variable TENSORD_BINARY names, on a unix socket of its own."""

import os
import selectors
import subprocess
import tempfile
import time
import unittest

START_SECONDS = 60.0


def binary_or_skip():
    binary = os.environ.get("TENSORD_BINARY")
    if not binary:
        raise unittest.SkipTest("TENSORD_BINARY is not set: no server to test against")
    if not os.access(binary, os.X_OK):
        raise AssertionError(f"TENSORD_BINARY={binary} is no executable file")
    return binary


class ServerProcess:
    """A running server; AssertionError where it does not start. Owns process and folder; stop() ends both."""

    def __init__(self, *flags):
        binary = binary_or_skip()
        self._folder = tempfile.TemporaryDirectory(prefix="tensord-")
        self.target = f"unix:{self._folder.name}/socket"
        self._log = open(os.path.join(self._folder.name, "stderr"), "w+b")
        command = [binary, f"--listen={self.target}", *flags]
        self._printed = b""
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, cwd=self._folder.name)
        try:
            self._wait_until_listening()
        except BaseException:
            self.stop()
            raise

    def _wait_until_listening(self):
        self._read_until(b"listening grpc")

    def _read_until(self, words):
        """The server's output so far, once it has printed `words`."""
        deadline = time.monotonic() + START_SECONDS
        seen = self._printed
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while words not in seen:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise AssertionError(f"the server did not listen within {START_SECONDS:g} s: {self.log()}")
                piece = os.read(self._process.stdout.fileno(), 4096)
                if not piece:
                    raise AssertionError(f"the server ended with {self._process.wait()}: {self.log()}")
                seen += piece
        self._printed = seen
        return seen

    @property
    def pid(self):
        return self._process.pid

    def metrics_address(self):
        """host:port of a server that was started with --metrics."""
        return self._address_after(b"listening metrics ")

    def tcp_target(self):
        """host:port of a server that was started with --listen=127.0.0.1:0."""
        return "127.0.0.1:" + self._address_after(b"listening grpc 127.0.0.1:")

    def _address_after(self, words):
        printed = self._read_until(words)
        while not printed.endswith(b"\n"):
            printed = self._printed = printed + os.read(self._process.stdout.fileno(), 4096)
        return printed.partition(words)[2].split()[0].decode()

    def log(self):
        self._log.flush()
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def terminate(self):
        """Asks the server to drain, and does not wait for that."""
        self._process.terminate()

    def kill(self):
        self._process.kill()

    def wait(self, seconds=START_SECONDS):
        """The exit status of a server that ends."""
        return self._process.wait(seconds)

    def stop(self):
        """Asks the server to drain and returns its exit status; kills it after 30 seconds."""
        if self._process.stdout.closed:
            return self._process.returncode
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process.stdout.close()
        self._log.close()
        self._folder.cleanup()
        return self._process.returncode
