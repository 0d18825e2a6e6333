"""Hours of use in short: mixed load whose calls are cancelled, come too late, or lose their connection at random times,
beside users of sessions who leave them open.

Between rounds of load the server rests, and is looked at: memory, descriptors, threads, tensors kept, calls in flight.
The first rounds fill caches; from then on nothing may grow, so that the last rounds are compared with those in the
middle.

Needs TENSORD_BINARY and TENSORDCTL_BINARY; TENSORD_SOAK_SECONDS says how long (default 20).
"""

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from server_process import ServerProcess  # noqa: E402

SECONDS = float(os.environ.get("TENSORD_SOAK_SECONDS", "20"))
# Two that warm up, two in the middle, two at the end.
ROUNDS = 6
# The server's time to notice that nobody is there any more; it takes a fraction of that.
REST_SECONDS = 60
# At rest the number of descriptors is the same in so many looks, which are so far apart.
REST_LOOKS = 10
LOOK_SECONDS = 0.1
# The refusals that clients may get in such a load. Everything else is a bug.
EXPECTED_CODES = {"RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED"}

# Patient users of everything, some of whom leave; a crowd whose deadlines are short, for some calls shorter than any
# machine is fast; and calls that come when they are due, some over connections that break.
LOADS = (
    ["--workload=tiny*20,matmul:128*4,busy:20*2,upload:1Mi*1,download:1Mi*1", "--concurrency=8", "--connections=4",
     "--cancel-percent=5", "--disconnect-percent=2"],
    ["--workload=busy:2000,tiny", "--concurrency=16", "--connections=2", "--deadline=4ms", "--cancel-percent=10"],
    ["--workload=tiny*3,upload:64Ki*1", "--rate=500", "--max-outstanding=200", "--disconnect-percent=1"],
)

# Users who keep tensors on the server, and do not always take them away.
SESSION_USERS = 2

# Metrics of what is held or under way; the server is at rest when all of them are 0.
UNTIL_NONE = ("rpc_in_flight", "rpc_in_flight_bytes", "queue_depth", "sessions", "resident_tensors", "resident_bytes")
SAMPLE = re.compile(r"^(\w+)(\{.*\})? (\S+)$", re.MULTILINE)


@dataclasses.dataclass
class Rest:
    """The server's resources while nobody calls it."""

    resident_bytes: int
    descriptors: int
    threads: int
    gauges: dict  # sums of the metrics that count what is held or under way, by name


def tensordctl(server, *words):
    return subprocess.Popen([os.environ["TENSORDCTL_BINARY"], "bench", f"--target={server.target}", "--json", *words],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def session_user(server, seconds, seed):
    script = pathlib.Path(__file__).with_name("session_user.py")
    return subprocess.Popen([sys.executable, str(script), server.target, f"{seconds:.3f}", str(seed)],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def gauges_of(server):
    with urllib.request.urlopen(f"http://{server.metrics_address()}/metrics", timeout=REST_SECONDS) as page:
        text = page.read().decode()
    gauges = {}
    for name, labels, value in SAMPLE.findall(text):
        name = name.removeprefix("tensord_")
        if name in UNTIL_NONE or (name == "memory_bytes" and 'state="in_use"' in labels):
            gauges[name] = gauges.get(name, 0) + float(value)
    return gauges


def look_at(server):
    status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
    field = lambda name: int(re.search(rf"^{name}:\s+(\d+)", status, re.MULTILINE).group(1))
    return Rest(resident_bytes=field("VmRSS") * 1024, descriptors=len(os.listdir(f"/proc/{server.pid}/fd")),
                threads=field("Threads"), gauges=gauges_of(server))


class SoakTest(unittest.TestCase):
    def setUp(self):
        if "TENSORDCTL_BINARY" not in os.environ:
            self.skipTest("TENSORDCTL_BINARY is not set: nothing to make load with")
        self.server = ServerProcess("--metrics=127.0.0.1:0", "--log-level=warning")
        self.addCleanup(self.server.stop)

    def run_load(self, round_number):
        """One round of all loads; what became of their calls."""
        seconds = max(0.5, SECONDS / (ROUNDS + 1))
        words = [f"--duration={seconds:.3f}s", "--warmup=0s", f"--seed={round_number + 1}"]
        processes = [tensordctl(self.server, *load, *words) for load in LOADS]
        users = [session_user(self.server, seconds, 10 * round_number + i) for i in range(SESSION_USERS)]
        runs = []
        for load, process in zip(LOADS, processes):
            out, err = process.communicate()
            self.assertIn("runs", out, f"{load}: {err}{self.server.log()}")
            runs += json.loads(out)["runs"]
        for user in users:
            out, err = user.communicate()
            self.assertEqual(user.returncode, 0, err + self.server.log())
            did = json.loads(out)
            self.assertGreater(did["closed"] + did["left"] + did["expired"], 0, did)
        return runs

    def rest(self, descriptors_before=None):
        """Waits until no call is in flight and no session is left, and descriptors neither come nor go; and none is
        left of those that came since `descriptors_before`. Looks then."""
        deadline = time.monotonic() + REST_SECONDS
        looks = []
        while True:
            seen = look_at(self.server)
            is_quiet = all(seen.gauges[name] == 0 for name in UNTIL_NONE)
            looks = [*looks, seen.descriptors][-REST_LOOKS:] if is_quiet else []
            is_settled = len(looks) == REST_LOOKS and len(set(looks)) == 1
            if is_settled and (descriptors_before is None or seen.descriptors <= descriptors_before):
                return seen
            self.assertLess(time.monotonic(), deadline, f"the server does not come to rest: {seen}, it had "
                                                        f"{descriptors_before} descriptors before")
            time.sleep(LOOK_SECONDS)

    def test_nothing_grows(self):
        # The first calls make threads and pools, with descriptors that stay.
        self.run_load(ROUNDS)
        first = self.rest()
        rests, counts = [], {"ok": 0, "cancelled": 0, "disconnected": 0, "refused": 0, "failed": 0}
        for round_number in range(ROUNDS):
            for run in self.run_load(round_number):
                self.assertGreater(run["ok"] + run["failed"] + run["refused"], 0, run)
                self.assertLessEqual({failure["code"] for failure in run["failures"]}, EXPECTED_CODES, run["failures"])
                self.assertEqual(run["failed_dials"], 0, run)
                for name in counts:
                    counts[name] += run[name]
            rests.append(self.rest(first.descriptors))
        for seen in rests:
            print(f"{seen.resident_bytes / 2**20:.1f} MiB, {seen.descriptors} descriptors, {seen.threads} threads, "
                  f"{seen.gauges}")
        print(counts)
        for name in ("ok", "cancelled", "disconnected"):
            self.assertGreater(counts[name], 0, f"the load was none: {counts}")
        # A server that knows that it would be late refuses; one that does not know fails.
        self.assertGreater(counts["failed"] + counts["refused"], 0, f"no call came too late: {counts}")

        middle, end = rests[2:4], rests[4:]
        most = lambda seen, name: max(getattr(rest, name) for rest in seen)
        self.assertLessEqual(most(end, "resident_bytes"), 1.1 * most(middle, "resident_bytes") + 2**24, rests)
        self.assertLessEqual(most(end, "descriptors"), most(middle, "descriptors"), rests)
        # gRPC starts and ends threads as it likes, a few at a time.
        self.assertLessEqual(most(end, "threads"), most(middle, "threads") + 4, rests)
        for name, value in end[-1].gauges.items():
            self.assertLessEqual(value, middle[0].gauges[name], f"{name}: {rests}")
        self.assertEqual(self.server.stop(), 0, "the server did not drain")


if __name__ == "__main__":
    unittest.main()
