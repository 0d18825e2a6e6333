"""One contestant's process, which answers a line with a line."""
import json
import os
import selectors
import signal
import subprocess

LONGEST_ANSWER_S = 150


def failed(answer):
    return isinstance(answer, dict) and "error" in answer


class Process:
    """Pinned to cores, and stopped whenever nothing is asked of it: the threads of some libraries wait for their next work by
    spinning, which would take a core from who is measured next. Ends with the first answer that does not come in time."""

    def __init__(self, command, cores, environment=None, errors=None):
        pinned = ["taskset", "-c", ",".join(map(str, cores))] + command
        self.process = subprocess.Popen(pinned, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                        env=environment)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)
        self.pending = b""

    def hear(self):
        while b"\n" not in self.pending:
            if not self.selector.select(LONGEST_ANSWER_S):
                self.process.kill()
                return {"error": "no answer within %d s" % LONGEST_ANSWER_S}
            part = os.read(self.process.stdout.fileno(), 1 << 16)
            if not part:
                return {"error": "the process ended"}
            self.pending += part
        self.process.send_signal(signal.SIGSTOP)
        line, self.pending = self.pending.split(b"\n", 1)
        return json.loads(line)

    def ask(self, line):
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"error": "the process ended"}
        return self.hear()

    def has_ended(self):
        return self.process.poll() is not None

    def close(self):
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait()
