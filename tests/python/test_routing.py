"""Life behind a balancer: the key that calls have for it, programs that another server compiled, calls that are made again."""

import collections
import os
import tempfile
import unittest
import unittest.mock

import grpc
import numpy as np

from server_process import ServerProcess
from stand_in_test_case import StandInTestCase
import tensord as td
from tensord import contract
from tensord.calls import attempts
from tensord.calls.routing import METADATA_KEY


class RoutingTest(StandInTestCase):
    def setUp(self):
        super().setUp()
        quick = unittest.mock.patch.object(attempts, "FIRST_PAUSE", 0.001)
        quick.start()
        self.addCleanup(quick.stop)

    def methods(self):
        return [method for method, _ in self.server.calls]

    def keys(self):
        """The keys of all calls so far, each once."""
        return {metadata.get(METADATA_KEY) for _, metadata in self.server.calls}


class Keys(RoutingTest):
    def test_calls_of_a_program_have_one_key(self):
        program = self.compile(lambda x: x + 1, td.spec("n"))
        program(np.zeros(2))
        program.explain()
        self.server.programs.clear()
        program(np.zeros(2))
        self.client.execute(program.graph, [(np.zeros(2), td.float64)])
        key, = self.keys()
        self.assertRegex(key, "^[0-9a-f]{32}$")

    def test_another_client_has_the_same_key_and_another_program_has_not(self):
        self.compile(lambda x: x + 1, td.spec("n"), name="one")
        with td.Client(self.server.target, timeout=30) as other:
            td.compile(lambda x: x + 1, td.spec("n"), name="one", client=other)
        self.assertEqual(len(self.keys()), 1)
        self.compile(lambda x: x + 2, td.spec("n"), name="one")
        self.assertEqual(len(self.keys()), 2)
        self.compile(lambda x: x + 2, td.spec("n"), name="one", disabled_passes=["cse"])
        self.assertEqual(len(self.keys()), 3)

    def test_calls_of_a_session_have_its_key(self):
        program = self.compile(lambda x: x + 1, td.spec("n"))
        self.server.calls.clear()
        with self.client.session() as session:
            state = session.put(np.zeros(3))
            state = program(state.donate(), keep=True)
            state.fetch()
            state.delete()
        expected = ["OpenSession", "PutTensor", "Execute", "GetTensor", "DeleteTensors", "CloseSession"]
        self.assertEqual(self.methods(), expected)
        self.assertEqual(self.keys(), {session.route})
        self.assertRegex(session.route, "^session-[0-9a-f]{32}$")
        with self.client.session() as another, self.client.session(route="session-mine") as mine:
            self.assertNotEqual(another.route, session.route)
            self.assertEqual(mine.route, "session-mine")
        self.assertIn("session-mine", self.keys())

    def test_what_the_caller_says_wins(self):
        with td.Client(self.server.target, timeout=30, metadata=[(METADATA_KEY, "here")]) as client:
            program = td.compile(lambda x: x + 1, td.spec("n"), client=client)
            with client.session() as session:
                program(session.put(np.zeros(2)), keep=True)
        self.assertEqual(self.keys(), {"here"})


class ProgramsElsewhere(RoutingTest):
    def test_the_graph_goes_along_once(self):
        program = self.compile(lambda x: x + 1, td.spec("n"))
        self.server.programs.clear()
        np.testing.assert_array_equal(program(np.zeros(3)), np.ones(3))
        self.assertEqual(self.methods(), ["Compile", "Execute", "Execute"])
        self.assertEqual(self.server.last_request.WhichOneof("program"), "graph")
        self.assertEqual(self.server.last_request.options.order, contract.ROW_MAJOR)
        self.assertEqual((program.compile_count, program.call_count, program.stats.source), (2, 1, "compiled"))

    def test_in_a_session(self):
        program = self.compile(lambda x: x + 1, td.spec("n"))
        with self.client.session() as session:
            state = session.put(np.zeros(3))
            self.server.programs.clear()
            kept = program(state.donate(), keep=True)
            np.testing.assert_array_equal(kept.fetch(), np.ones(3))
            self.assertEqual(list(self.server.sessions[session.id]), [kept.handle])

    def test_who_is_unknown_again_and_again_learns_its_fingerprint(self):
        program = self.compile(lambda x: x + 1, td.spec("n"))
        program.fingerprint = "as another version had it"
        for _ in range(3):
            np.testing.assert_array_equal(program(np.zeros(3)), np.ones(3))
        expected = ["Compile", "Execute", "Execute", "Execute", "Compile", "Execute", "Execute"]
        self.assertEqual(self.methods(), expected)

    def test_a_program_that_stays_unknown_is_an_error(self):
        program = self.compile(lambda x: x + 1, td.spec("n"))
        detail = contract.ErrorDetail(reason="PROGRAM_NOT_FOUND")
        self.server.failure = (grpc.StatusCode.FAILED_PRECONDITION, "gone", detail)
        with self.assertRaises(td.FailedPrecondition):
            program(np.zeros(2))
        self.assertEqual(self.methods(), ["Compile", "Execute", "Execute"])

    def test_pipelines_of_a_session_on_another_server(self):
        first, second = ServerProcess(), ServerProcess()
        self.addCleanup(first.stop)
        self.addCleanup(second.stop)
        with td.Client(first.target, timeout=60) as here, td.Client(second.target, timeout=60) as there:
            here.wait_until_ready(30)
            there.wait_until_ready(30)
            step = td.compile(lambda x: (x + 1, x.sum()), td.spec("n"), client=here)
            with there.session() as session, session.pipeline() as pipeline:
                state, sums = session.put(np.zeros(4)), []
                for _ in range(3):
                    state, total = pipeline.run(step, state.donate(), keep=(True, False))
                    sums.append(total)
                self.assertEqual([float(total.result()) for total in sums], [0, 4, 8])
                np.testing.assert_array_equal(state.fetch(), np.full(4, 3.0))

    def test_pipelines_of_a_session_whose_programs_were_evicted(self):
        server = ServerProcess("--set=program_cache.bytes=8192")
        self.addCleanup(server.stop)
        with td.Client(server.target, timeout=60) as client:
            client.wait_until_ready(30)
            step = td.compile(lambda x: x + 1, td.spec("n"), client=client)
            with client.session() as session:
                state = session.put(np.zeros(4))
                for turn in range(2):
                    with session.pipeline() as pipeline:
                        state = pipeline.run(step, state.donate(), keep=True)
                    for number in range(40):  # which leaves no room for it
                        td.compile(lambda x: x * (40 * turn + number), td.spec("n"), client=client)
                    request = contract.GetProgramRequest(fingerprint=step.fingerprint)
                    with self.assertRaisesRegex(td.FailedPrecondition, "PROGRAM_NOT_FOUND"):
                        client.unary("GetProgram", request, contract.Program, None)
                np.testing.assert_array_equal(state.fetch(), np.full(4, 2.0))


class Repeats(RoutingTest):
    NOT_SENT = "failed to connect to all addresses; last error: UNKNOWN: Connection refused"

    def fail_first(self, count, method, message="broken"):
        """The next `count` calls of the method fail."""
        original, left = getattr(self.server, method), [count]

        def respond(request, context):
            if left[0]:
                left[0] -= 1
                context.abort(grpc.StatusCode.UNAVAILABLE, message)
            return original(request, context)

        setattr(self.server, method, respond)

    def test_what_may_run_twice_is_made_again(self):
        self.fail_first(3, "Compile", self.NOT_SENT)
        program = self.compile(lambda x: x + 1, td.spec("n"))
        self.fail_first(3, "Execute", self.NOT_SENT)
        np.testing.assert_array_equal(program(np.zeros(3)), np.ones(3))
        for method, call in (
            ("Explain", program.explain),
            ("GetProgram", lambda: self.client.get_program("ff")),
            ("GetServerInfo", self.client.server_info),
        ):
            self.fail_first(1, method)
            call()
        seen = collections.Counter(self.methods())
        self.assertEqual(seen, {"Compile": 4, "Execute": 4, "Explain": 2, "GetProgram": 2, "GetServerInfo": 2})

    def test_no_more_than_four_times(self):
        program = self.compile(lambda x: x + 1, td.spec("n"))
        draining = contract.ErrorDetail(reason="SERVER_DRAINING")
        for message, detail in (
            (self.NOT_SENT, None),
            ("Received http2 header with status: 503", None),
            ("going", draining),
        ):
            self.server.calls.clear()
            self.server.failure = (grpc.StatusCode.UNAVAILABLE, message, detail)
            with self.assertRaises(td.Unavailable):
                program(np.zeros(3))
            self.assertEqual(self.methods(), ["Execute"] * 4)

    def test_what_servers_may_have_died_of_is_made_again_once(self):
        program = self.compile(lambda x: x + 1, td.spec("n"))
        self.fail_first(1, "Execute", "Socket closed")
        np.testing.assert_array_equal(program(np.zeros(3)), np.ones(3))
        for method, call in (("Execute", lambda: program(np.zeros(3))), ("Explain", program.explain)):
            self.server.calls.clear()
            self.fail_first(2, method, "Socket closed")
            with self.assertRaises(td.Unavailable):
                call()
            self.assertEqual(self.methods(), [method] * 2)

    def test_nor_past_the_deadline(self):
        program = self.compile(lambda x: x + 1, td.spec("n"))
        self.server.failure = (grpc.StatusCode.UNAVAILABLE, "broken", None)
        with unittest.mock.patch.object(attempts, "FIRST_PAUSE", 60), self.assertRaises(td.Unavailable):
            program(np.zeros(3), timeout=30)
        self.assertEqual(self.methods(), ["Compile", "Execute"])

    def test_what_may_not_run_twice_is_not(self):
        program = self.compile(lambda x: x + 1, td.spec("n"))
        with self.client.session() as session:
            state = session.put(np.zeros(3))
            self.server.calls.clear()
            self.server.failure = (grpc.StatusCode.UNAVAILABLE, "broken", None)
            for call in (
                lambda: program(state.donate()),
                lambda: program(np.zeros(3), session=session, keep=True),
                self.client.session,
                state.delete,
            ):
                with self.assertRaises(td.Unavailable):
                    call()
            self.assertEqual(self.methods(), ["Execute", "Execute", "OpenSession", "DeleteTensors"])
            self.server.failure = None

    def test_other_failures_are_not(self):
        program = self.compile(lambda x: x + 1, td.spec("n"))
        self.server.failure = (grpc.StatusCode.RESOURCE_EXHAUSTED, "full", contract.ErrorDetail(reason="QUEUE_FULL"))
        with self.assertRaises(td.ResourceExhausted):
            program(np.zeros(3))
        self.assertEqual(self.methods(), ["Compile", "Execute"])


class Proxies(RoutingTest):
    def test_an_answer_of_a_proxy_says_so(self):
        for status, words in ((503, "HTTP 503: no server behind it takes calls"), (502, "HTTP 502"), (418, "HTTP 418$")):
            self.server.failure = (grpc.StatusCode.UNAVAILABLE, f"Received http2 header with status: {status}", None)
            with self.assertRaisesRegex(td.Unavailable, f"a proxy at unix:.* answered for a tensord server, with {words}"):
                self.client.server_info()


if __name__ == "__main__":
    unittest.main()
