"""HAProxy with the recipe of deploy/haproxy, in front of servers of a test."""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import unittest

RECIPE = pathlib.Path(__file__).resolve().parents[3] / "deploy" / "haproxy" / "haproxy.cfg"


def binary_or_skip():
    binary = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if binary is None:
        raise unittest.SkipTest("there is no haproxy: ./dev test installs it")
    return binary


class HaproxyProcess:
    """Runs the recipe with the addresses of the servers instead of its own, and with `changed` texts in place of others.
    Calls may come at once: the socket listens before HAProxy does. Owns its process and its folder."""

    def __init__(self, servers, changed=()):
        binary = binary_or_skip()
        self._folder = tempfile.TemporaryDirectory(prefix="tensord-haproxy-")
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        self.target = "127.0.0.1:%d" % listener.getsockname()[1]
        self._control = os.path.join(self._folder.name, "control")
        file = os.path.join(self._folder.name, "haproxy.cfg")
        with open(file, "w", encoding="utf-8") as config:
            config.write(self._config(servers, changed, listener.fileno()))
        self._log = open(os.path.join(self._folder.name, "log"), "w+b")
        self._process = subprocess.Popen(
            [binary, "-db", "-f", file], pass_fds=[listener.fileno()], stdout=self._log, stderr=self._log
        )
        listener.close()

    def _config(self, servers, changed, listener):
        text = RECIPE.read_text(encoding="utf-8")
        for old, new in (
            (r"(?m)^global$", f"global\n    stats socket {self._control} level admin"),
            (r"(?m)^    bind .*$", f"    bind fd@{listener} proto h2"),
            ("timeout check 1s", "timeout check 60s"),  # a machine that is busy is no server that is down
            (r"(?m)^    server [abc] \S+ port \d+", "{server}"),
            *((re.escape(old), new) for old, new in changed),
        ):
            text, count = re.subn(old, new, text)
            assert count == (len(servers) if new == "{server}" else 1), f"the recipe has {count} lines {old}"
        for name, server in zip("abc", servers):
            port = server.metrics_address().rpartition(":")[2]
            text = text.replace("{server}", f"    server {name} {server.tcp_target()} port {port}", 1)
        return text

    def command(self, text):
        """HAProxy's answer to a command for operators."""
        with socket.socket(socket.AF_UNIX) as control:
            while True:  # it makes the socket while it starts
                try:
                    control.connect(self._control)
                    break
                except (FileNotFoundError, ConnectionRefusedError):
                    if self._process.poll() is not None:
                        raise AssertionError(f"haproxy ended: {self.log()}") from None
            control.sendall(text.encode() + b"\n")
            answer = b""
            while piece := control.recv(4096):
                answer += piece
        return answer.decode()

    def log(self):
        self._log.flush()
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def stop(self):
        self._process.kill()
        self._process.wait()
        self._log.close()
        self._folder.cleanup()
