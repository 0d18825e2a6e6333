"""Three servers behind HAProxy, with the recipe of deploy/haproxy and the clients as they are.

Needs TENSORD_BINARY and TENSORDCTL_BINARY; skipped where there is no haproxy. Prints what each case came to.
"""

import collections
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import threading
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from haproxy_process import HaproxyProcess, binary_or_skip  # noqa: E402
from server_process import ServerProcess  # noqa: E402
import checkout  # noqa: E402, F401  finds the package
import numpy as np  # noqa: E402
import tensord as td  # noqa: E402

PROGRAMS = 30
CALLS = 600
THREADS = 6
GRACE_MS = 3000  # longer than the recipe needs to see that a server ends
X = np.linspace(0, 1, 64, dtype=np.float32)


def compile_all(client):
    return [td.compile(lambda x, k=k: td.tanh(x * (k + 1.25)) + k, X, client=client) for k in range(PROGRAMS)]


def is_right(k, result):
    return np.allclose(result, np.tanh(X * np.float32(k + 1.25)) + k, rtol=1e-5)


class Load:
    """Threads, each with a client of its own, that call programs until they are told to stop."""

    def __init__(self, target):
        self.calls, self.failures = 0, collections.Counter()
        self._lock, self._stops = threading.Lock(), threading.Event()
        self._begun = threading.Barrier(THREADS + 1)
        self._threads = [threading.Thread(target=self._run, args=(target, seed)) for seed in range(THREADS)]
        for thread in self._threads:
            thread.start()
        self._begun.wait(60)

    def _run(self, target, seed):
        draw = random.Random(seed)
        with td.Client(target, timeout=60) as client:
            programs = compile_all(client)
            self._begun.wait(60)
            while not self._stops.is_set():
                self._call(programs, draw.randrange(PROGRAMS))

    def _call(self, programs, k):
        try:
            outcome = None if is_right(k, programs[k](X)) else "wrong"
        except td.Error as error:
            outcome = str(error)
        with self._lock:
            self.calls += 1
            if outcome:
                self.failures[outcome] += 1

    def run_for(self, calls):
        """Returns when so many more have been made."""
        end = self.calls + calls
        while self.calls < end and any(thread.is_alive() for thread in self._threads):
            self._stops.wait(0.005)

    def stop(self):
        self._stops.set()
        for thread in self._threads:
            thread.join()


class BalancerTest(unittest.TestCase):
    changed = ()  # of the recipe

    def setUp(self):
        binary_or_skip()
        flags = ("--listen=127.0.0.1:0", "--metrics=127.0.0.1:0", "--log-level=warning")
        self.servers = [self.start(*flags, f"--set=drain.grace_ms={GRACE_MS}") for _ in range(3)]
        self.proxy = HaproxyProcess(self.servers, self.changed)
        self.addCleanup(self.proxy.stop)
        self.client = self.connect()

    def start(self, *flags):
        server = ServerProcess(*flags)
        self.addCleanup(server.stop)
        self.addCleanup(server.kill)  # before that: nobody waits for its grace
        return server

    def connect(self):
        client = td.Client(self.proxy.target, timeout=60)
        self.addCleanup(client.close)
        return client

    def counts(self, pattern):
        """The sum of the counters that match, by server."""
        counts = []
        for server in self.servers:
            page = urllib.request.urlopen(f"http://{server.metrics_address()}/metrics", timeout=60).read().decode()
            counts.append(int(sum(float(value) for value in re.findall(rf"(?m)^{pattern} (\S+)$", page))))
        return counts

    def compiled(self):
        return self.counts(r'tensord_compile_requests_total\{[^}]*result="miss"[^}]*\}')

    def say(self, **figures):
        print(f"{self.id().rpartition('.')[2]}: {json.dumps(figures)}", flush=True)

    def call_at_random(self):
        """CALLS calls of PROGRAMS programs by one client; what failed."""
        programs, draw = compile_all(self.client), random.Random(1)
        failures = collections.Counter()
        for _ in range(CALLS):
            k = draw.randrange(PROGRAMS)
            try:
                self.assertTrue(is_right(k, programs[k](X)))
            except td.Error as error:
                failures[str(error)] += 1
        return failures


class BehindABalancer(BalancerTest):
    def test_each_program_is_compiled_once(self):
        failures = self.call_at_random()
        other = self.connect()
        for k, program in enumerate(compile_all(other)):  # finds what the first has compiled
            self.assertTrue(is_right(k, program(X)))
        compiled = self.compiled()
        self.say(calls=CALLS, failures=failures, compiled=compiled)
        self.assertEqual(failures, {})
        self.assertEqual(sum(compiled), PROGRAMS)
        self.assertGreater(min(compiled), 0)

    def test_sessions_find_their_tensors(self):
        step = self.compile_step(self.client)
        for _ in range(20):
            client = self.connect()
            with client.session() as session:
                state = session.put(np.zeros(8, np.float32))
                state, total = self.compile_step(client)(state.donate(), keep=(True, False))
                self.assertEqual(float(total), 0)
                with session.pipeline() as pipeline:  # of a program that was compiled by another server
                    for _ in range(3):
                        state, total = pipeline.run(step, state.donate(), keep=(True, False))
                    self.assertEqual(float(total.result()), 24)
                np.testing.assert_array_equal(state.fetch(), np.full(8, 4, np.float32))
        opened = self.counts(r'tensord_rpc_handled_total\{[^}]*method="OpenSession"[^}]*\}')
        self.say(sessions=20, opened=opened)
        self.assertEqual(sum(opened), 20)
        self.assertGreater(sum(count > 0 for count in opened), 1)

    def compile_step(self, client):
        return td.compile(lambda x: (x + 1, x.sum()), td.spec((8,), "float32"), client=client)

    def test_sessions_stay_when_servers_go_and_come(self):
        def open_some():
            return [self.client.session() for _ in range(12)]

        def use(sessions):
            for session in sessions:
                np.testing.assert_array_equal(session.put(X).fetch(), X)

        before = open_some()
        use(before)
        for name in "ab":
            self.proxy.command(f"set server servers/{name} state maint")
        during = open_some()
        use(before)  # also those on servers that get nothing new
        use(during)
        for name in "ab":
            self.proxy.command(f"set server servers/{name} state ready")
        use(before)
        use(during)
        opened = self.counts(r'tensord_rpc_handled_total\{[^}]*method="OpenSession"[^}]*\}')
        self.say(opened=opened)
        self.assertGreaterEqual(opened[2], 12)
        self.assertEqual(sum(opened), 24)

    def test_no_call_fails_where_a_server_ends(self):
        load = Load(self.proxy.target)
        self.addCleanup(load.stop)
        load.run_for(500)
        self.servers[0].terminate()
        self.assertEqual(self.servers[0].wait(), 0)
        load.run_for(500)
        load.stop()
        self.servers.pop(0)
        self.say(calls=load.calls, failures=load.failures, compiled_by_the_others=self.compiled())
        self.assertEqual(load.failures, {})

    def test_a_killed_server_loses_no_more_than_what_was_under_way(self):
        load = Load(self.proxy.target)
        self.addCleanup(load.stop)
        load.run_for(500)
        self.servers[1].kill()
        self.servers[1].wait()
        load.run_for(1000)
        load.stop()
        self.servers.pop(1)
        self.say(calls=load.calls, failures=load.failures, compiled_by_the_others=self.compiled())
        self.assertLessEqual(sum(load.failures.values()), THREADS)

    def test_tensordctl(self):
        def tensordctl(*words):
            command = [os.environ["TENSORDCTL_BINARY"], words[0], f"--target={self.proxy.target}", "--json", *words[1:]]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(done.returncode, 0, f"{words}: {done.stdout} {done.stderr}")
            return json.loads(done.stdout)

        words = "tiny,busy:3,matmul:16,matmul:24,matmul:32"
        run, = tensordctl("bench", f"--workload={words}", "--concurrency=4", "--duration=300ms", "--warmup=0ms")["runs"]
        self.say(calls=run["ok"], failures=run["failures"], compiled=self.compiled())
        self.assertEqual(run["failed"] + run["refused"], 0, run["failures"])
        self.assertEqual(sum(self.compiled()), 5)

    def test_who_answers_when_all_servers_are_gone(self):
        for server in self.servers:
            server.kill()
            server.wait()
        with self.assertRaisesRegex(td.Unavailable, "a proxy at .* answered for a tensord server, with HTTP 503"):
            self.client.server_info()


class BehindABalancerThatKnowsNoKeys(BalancerTest):
    changed = (("balance hdr(x-tensord-route)", "balance roundrobin"),)

    def test_what_is_not_found_goes_along(self):
        failures, compiled = self.call_at_random(), self.compiled()
        self.say(calls=CALLS, failures=failures, compiled=compiled)
        self.assertEqual(failures, {})
        self.assertGreater(sum(compiled), PROGRAMS)
        self.assertLessEqual(sum(compiled), 3 * PROGRAMS)


if __name__ == "__main__":
    unittest.main()
