"""Calls, recovery and exceptions, against a server in this process that can be made to misbehave."""

import os
import pickle
import tempfile
import threading
import unittest
import unittest.mock

import grpc
import numpy as np

from stand_in_test_case import StandInTestCase
import tensord as td
from tensord import contract
from tensord.calls import attempts
from tensord.calls.crc32c import by_lanes, crc32c


class Pickles(StandInTestCase):
    def test_a_client_connects_anew(self):
        client = td.Client(self.server.target, timeout=7, metadata=[("x-team", "a")], shared_memory=True)
        self.addCleanup(client.close)
        again = pickle.loads(pickle.dumps(client))
        self.addCleanup(again.close)
        self.assertEqual((again.target, again.timeout), (client.target, 7))
        again.server_info()
        client.close()
        again.server_info()
        self.assertIn(("x-team", "a"), again._metadata)

    def test_access_travels_where_it_was_given(self):
        with_token = td.Client(self.server.target, access=td.Access(token="secret"))
        self.addCleanup(with_token.close)
        bare = pickle.dumps(self.client)
        with unittest.mock.patch.dict(os.environ, {"TENSORD_TOKEN": "of-that-place"}):
            for pickled, token in ((pickle.dumps(with_token), "secret"), (bare, "of-that-place")):
                client = pickle.loads(pickled)
                self.addCleanup(client.close)
                self.assertIn(("authorization", f"Bearer {token}"), client._metadata)
        own = td.Client("localhost:1", credentials=grpc.ssl_channel_credentials())
        self.addCleanup(own.close)
        with self.assertRaisesRegex(TypeError, "give it access"):
            pickle.dumps(own)

    def test_a_program_is_called_where_it_is_unpickled(self):
        program = self.compile(lambda x: {"y": x + 1}, td.spec("n"))
        program(np.zeros(2))
        pickled = pickle.dumps(program)
        for known in (True, False):
            if not known:
                self.server.programs.clear()
            again = pickle.loads(pickled)
            self.addCleanup(again._client.close)
            np.testing.assert_array_equal(again(np.zeros(3))["y"], np.ones(3))
            self.assertEqual((again.call_count, again.compile_count), (1, 0 if known else 1))
            self.assertEqual(again.fingerprint, program.fingerprint)

    def test_errors_travel_whole(self):
        with self.assertRaises(td.Error) as caught:
            self.client.unary("CloseSession", contract.CloseSessionRequest(session="none"), None, None)
        failure = caught.exception
        self.assertIsNone(failure.__context__, "what gRPC raised does not pickle")
        again = pickle.loads(pickle.dumps(failure))
        self.assertIs(type(again), type(failure))
        self.assertEqual((str(again), vars(again)), (str(failure), vars(failure)))

    def test_what_is_bound_to_its_process_says_so(self):
        with self.client.session() as session:
            with self.assertRaisesRegex(TypeError, "a session does not pickle"):
                pickle.dumps(session.put(np.zeros(2)))

    def test_the_blocks_own_failure_is_the_one_that_is_raised(self):
        with self.assertRaisesRegex(KeyError, "mine"):
            with self.client.session() as session:
                self.client.unary("CloseSession", contract.CloseSessionRequest(session=session.id), None, None)
                raise KeyError("mine")


class Programs(StandInTestCase):
    def test_compiles_once_and_calls_by_fingerprint(self):
        program = self.compile(lambda x, y: {"sum": x + y, "product": x @ y}, td.spec((3, 3)), td.spec((3, 3)))
        x, y = np.arange(9.0).reshape(3, 3), np.eye(3)
        for _ in range(3):
            result = program(x, y)
            np.testing.assert_array_equal(result["sum"], x + y)
            np.testing.assert_array_equal(result["product"], x)
        methods = [method for method, _ in self.server.calls]
        self.assertEqual(methods, ["Compile"] + ["Execute"] * 3)
        self.assertEqual(self.server.last_request.WhichOneof("program"), "fingerprint")
        self.assertEqual((program.call_count, program.compile_count, program.source), (3, 1, "compiled"))
        self.assertEqual((program.stats.source, program.stats.device), ("memory", "cpu:0"))
        self.assertAlmostEqual(program.stats.run_time, 0.003)
        self.assertGreater(program.stats.round_trip_time, 0)

    def test_options_reach_the_server(self):
        compiled = []
        original = self.server.Compile
        self.server.Compile = lambda request, context: compiled.append(request) or original(request, context)
        self.compile(lambda x: x, td.spec(2), device="cuda:0", disabled_passes=["fusion"], name="named")
        request = contract.CompileRequest.FromString(compiled[0])
        self.assertEqual((request.graph.name, request.options.device), ("named", "cuda:0"))
        self.assertEqual(list(request.options.disabled_passes), ["fusion"])
        self.assertEqual(request.options.order, contract.ROW_MAJOR)

    def test_a_forgotten_program_is_compiled_again(self):
        program = self.compile(lambda x: x + 1, td.spec("n"))
        program(np.zeros(2))
        self.server.programs.clear()
        np.testing.assert_array_equal(program(np.zeros(3)), np.ones(3))
        self.assertEqual((program.compile_count, program.call_count, program.stats.source), (2, 2, "compiled"))

    def test_a_program_that_stays_unknown_is_an_error(self):
        program = self.compile(lambda x: x + 1, td.spec("n"))
        detail = contract.ErrorDetail(reason="PROGRAM_NOT_FOUND")
        self.server.failure = (grpc.StatusCode.FAILED_PRECONDITION, "gone", detail)
        with self.assertRaises(td.FailedPrecondition):
            program(np.zeros(2))

    def test_results_are_aligned_read_only_views(self):
        program = self.compile(lambda x: x, td.spec("n"))
        for _ in range(2):
            result = program(np.arange(5.0))
        self.assertFalse(result.flags.writeable)
        self.assertFalse(result.flags.owndata)
        self.assertTrue(result.flags.aligned)

    def test_arguments_are_checked_before_anything_is_sent(self):
        program = self.compile(lambda x: x, td.spec((2, 3), "float32"))
        calls = len(self.server.calls)
        with self.assertRaises(ValueError):
            program(np.zeros((3, 2), np.float32))
        with self.assertRaises(TypeError):
            program(np.zeros((2, 3)))
        self.assertEqual(len(self.server.calls), calls)

    def test_layouts_and_byte_orders(self):
        program = self.compile(lambda x: x * 2, td.spec(("n", "m")))
        x = np.arange(12.0).reshape(3, 4)
        for argument in (x, x.T, x[::-1, ::2], np.asfortranarray(x), x.astype(">f8"), x[:, :0]):
            np.testing.assert_array_equal(program(argument), argument * 2)

    def test_evaluate_carries_the_graph(self):
        result, stats = td.evaluate(lambda x: x.sum(), np.arange(4.0), client=self.client, with_stats=True)
        self.assertEqual(float(result), 6.0)
        self.assertEqual((stats.source, [method for method, _ in self.server.calls]), ("compiled", ["Execute"]))
        self.assertEqual(float(td.evaluate(lambda x: x * 2, 1.5, client=self.client)), 3.0)

    def test_a_program_inside_a_trace(self):
        program = self.compile(lambda x: x, td.spec(2))
        with self.assertRaisesRegex(TypeError, "call the function itself"):
            td.make_graph(lambda x: program(x), td.spec(2))

    def test_threads_share_a_program(self):
        program = self.compile(lambda x: x * x, td.spec("n"))
        wrong = []

        def work(value):
            for size in range(1, 20):
                if not np.array_equal(program(np.full(size, value)), np.full(size, value * value)):
                    wrong.append((value, size))

        threads = [threading.Thread(target=work, args=(float(value),)) for value in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((wrong, program.call_count), ([], 76))


class Sessions(StandInTestCase):
    def test_state_stays_on_the_server(self):
        program = self.compile(lambda x, y: {"sum": x + y, "total": (x + y).sum()}, td.spec("n"), td.spec("n"))
        with self.client.session(lease=2.5) as session:
            self.assertEqual(session.lease, 2.5)
            state = session.put(np.zeros(3))
            self.assertEqual((state.dtype, state.shape), (td.float64, (3,)))
            for step in range(1, 4):
                result = program(state.donate(), np.ones(3), keep={"sum": True, "total": False})
                self.assertEqual(float(result["total"]), 3.0 * step)
                with self.assertRaisesRegex(ValueError, "deleted or donated"):
                    program(state, np.ones(3))
                state = result["sum"]
            self.assertEqual(len(self.server.sessions[session.id]), 1)
            np.testing.assert_array_equal(state.fetch(), np.full(3, 3.0))
            both = program(state, state, keep=True)
            np.testing.assert_array_equal(both["sum"].fetch(), np.full(3, 6.0))
            both["sum"].delete()
            self.assertEqual(len(self.server.sessions[session.id]), 2)
        self.assertEqual(self.server.sessions, {})
        session.close()

    def test_types_are_checked_as_those_of_arrays(self):
        program = self.compile(lambda x: x, td.spec((2, 3), "float32"))
        with self.client.session() as session, self.client.session() as other:
            with self.assertRaisesRegex(TypeError, "'x' is float64"):
                program(session.put(np.zeros((2, 3))))
            with self.assertRaisesRegex(ValueError, "has shape"):
                program(session.put(np.zeros((3, 2), np.float32)))
            with self.assertRaisesRegex(ValueError, "belongs to"):
                program(session.put(np.zeros((2, 3), np.float32)), session=other)
            with self.assertRaisesRegex(ValueError, "keep needs a session"):
                program(np.zeros((2, 3), np.float32), keep=True)
            kept = program(np.zeros((2, 3), np.float32), keep=True, session=session)
            self.assertIs(kept.session, session)

    def test_a_handle_that_the_server_lost(self):
        program = self.compile(lambda x: x, td.spec(2))
        with self.client.session() as session:
            remote = session.put(np.zeros(2))
            self.server.sessions[session.id].clear()
            with self.assertRaises(td.FailedPrecondition) as context:
                program(remote)
        self.assertEqual(context.exception.reason, "HANDLE_UNKNOWN")


class Transfers(StandInTestCase):
    def test_arrays_come_back(self):
        big = np.arange(1_000_003, dtype=np.float32)
        arrays = [big, np.float64(3), np.zeros((0, 3)), np.array([[True], [False]]), np.ones((3, 5), np.complex128).T]
        with self.client.session() as session:
            for self.server.chunk_bytes in (1 << 20, 1000):
                for array in arrays:
                    back = session.put(array).fetch()
                    self.assertEqual((back.dtype, back.shape), (np.asarray(array).dtype, np.asarray(array).shape))
                    np.testing.assert_array_equal(back, array)

    def test_what_is_damaged_on_the_way(self):
        with self.client.session() as session:
            remote = session.put(np.arange(10))
            self.server.checksum_error = 1
            with unittest.mock.patch.object(attempts, "FIRST_PAUSE", 0.001):
                with self.assertRaisesRegex(td.DataLoss, "checksum"):
                    remote.fetch()
            downloads = [method for method, _ in self.server.calls if method == "GetTensor"]
            self.assertEqual(len(downloads), attempts.MOST_ATTEMPTS)

    def test_what_is_gone(self):
        with self.client.session() as session:
            remote = session.put(np.arange(10))
            self.server.sessions[session.id].clear()
            with self.assertRaises(td.FailedPrecondition) as context:
                remote.fetch()
            self.assertEqual(context.exception.reason, "HANDLE_UNKNOWN")
            remote.mark_gone()
            with self.assertRaisesRegex(ValueError, "deleted or donated"):
                remote.fetch()

    def test_checksums(self):
        published = {
            b"": 0, b"123456789": 0xE3069283, bytes(32): 0x8A9136AA, b"\xff" * 32: 0x62A8AB43,
            bytes(range(32)): 0x46DD794E,
        }  # fmt: skip
        for data, checksum in published.items():
            self.assertEqual([crc32c(data), by_lanes(data)], [checksum] * 2)
        data = np.random.default_rng(1).integers(0, 256, 5000, np.uint8).tobytes()
        for length in [*range(9), 255, 256, 257, 511, 513, 5000]:
            state = 0xFFFFFFFF
            for byte in data[:length]:
                state ^= byte
                for _ in range(8):
                    state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
            expected = state ^ 0xFFFFFFFF
            self.assertEqual(by_lanes(data[:length]), expected, length)
            self.assertEqual(crc32c(memoryview(bytearray(data))[:length]), expected, length)


class Server(StandInTestCase):
    def test_questions(self):
        self.assertEqual(self.client.health(), "SERVING")
        self.assertIs(self.client.wait_until_ready(5), self.client)
        self.assertEqual(self.client.server_info().version, "0.0.1")
        self.assertEqual(self.client.get_program("ff").fingerprint, "ff")
        self.assertEqual(self.client.explain("ff"), "fingerprint")
        self.assertEqual(self.compile(lambda x: x, td.spec(2)).explain(), "graph")

    def test_metadata(self):
        with td.Client(self.server.target, metadata=[("authorization", "Bearer t")]) as client:
            client.health()
        self.assertEqual(self.server.calls[-1][1]["authorization"], "Bearer t")

    def test_connect_sets_the_default(self):
        with td.connect(self.server.target) as client:
            self.assertIs(td.default_client(), client)
            self.assertEqual(float(td.evaluate(lambda x: x + 1, 1.0)), 2.0)

    def test_default_target(self):
        with unittest.mock.patch.dict(os.environ, {"XDG_RUNTIME_DIR": "/run/user/7"}):
            os.environ.pop("TENSORD_TARGET", None)
            self.assertEqual(td.default_target(), "unix:/run/user/7/tensord.sock")
            del os.environ["XDG_RUNTIME_DIR"]
            self.assertEqual(td.default_target(), f"unix:/tmp/tensord-{os.getuid()}/tensord.sock")
            os.environ["TENSORD_TARGET"] = "host:1"
            self.assertEqual(td.default_target(), "host:1")


class Errors(StandInTestCase):
    def raised(self, code, message, detail=None):
        self.server.failure = (code, message, detail)
        with self.assertRaises(td.Error) as context:
            td.evaluate(lambda x: x, 1.0, client=self.client)
        return context.exception

    def test_every_code_has_its_class(self):
        kinds = [td.InvalidArgument, td.Unimplemented, td.Unavailable, td.FailedPrecondition, td.ResourceExhausted]
        kinds += [td.DeadlineExceeded, td.DataLoss, td.Internal, td.NotFound, td.PermissionDenied]
        for name, kind in [(kind.code, kind) for kind in kinds] + [("ABORTED", td.Error)]:
            error = self.raised(getattr(grpc.StatusCode, name), "text")
            self.assertIs(type(error), kind)
            self.assertEqual((error.code, error.reason, error.limit_value), (name, "", None))

    def test_only_a_server_that_stops_cancels_without_a_word(self):
        error = self.raised(grpc.StatusCode.CANCELLED, "CANCELLED")
        self.assertIs(type(error), td.Unavailable)
        error = self.raised(grpc.StatusCode.CANCELLED, "the operator did", contract.ErrorDetail(reason="CANCELLED"))
        self.assertIs(type(error), td.Cancelled)
        self.assertEqual((error.code, error.reason), ("CANCELLED", "CANCELLED"))

    def test_details(self):
        detail = contract.ErrorDetail(reason="SHAPE_MISMATCH", node="add_3", op="add")
        error = self.raised(grpc.StatusCode.INVALID_ARGUMENT, "sizes differ, 2 and 3", detail)
        self.assertEqual(
            (error.message, error.reason, error.node, error.op),
            ("sizes differ, 2 and 3", "SHAPE_MISMATCH", "add_3", "add"),
        )
        self.assertEqual(str(error), "INVALID_ARGUMENT: sizes differ, 2 and 3 [SHAPE_MISMATCH; node add_3; op add]")
        self.assertIsInstance(error, ValueError)

    def test_limits(self):
        detail = contract.ErrorDetail(reason="QUEUE_FULL", limit="queue.length", limit_value=64, actual_value=65)
        detail.retry_after.nanos = 250_000_000
        error = self.raised(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", detail)
        self.assertEqual(
            (error.limit, error.limit_value, error.actual_value, error.retry_after), ("queue.length", 64, 65, 0.25)
        )
        self.assertIn("limit queue.length = 64, asked for 65", str(error))

    def test_nobody_listens(self):
        with td.Client(self.server.target + "-absent", timeout=5) as client:
            with self.assertRaisesRegex(td.Unavailable, "no answer from a tensord server at unix:"):
                client.health()
            with self.assertRaisesRegex(td.Unavailable, "within 0.2 s"):
                client.wait_until_ready(0.2)

    def test_deadline(self):
        self.server.hold.clear()
        with self.assertRaises(td.DeadlineExceeded) as context:
            td.evaluate(lambda x: x, 1.0, client=self.client, timeout=0.05)
        self.assertIsInstance(context.exception, TimeoutError)

    def test_answers_that_cannot_be_read(self):
        for answer in (b"\x12\xff", b"\x12\x02\x0a\x05", b"\xff" * 20):
            self.server.answer = answer
            with self.assertRaises(td.DataLoss):
                td.evaluate(lambda x: x, 1.0, client=self.client)

    def test_an_error_inside_a_response(self):
        message = contract.ExecuteResponse()
        message.error.code, message.error.message, message.error.detail.reason = 3, "wrong", "OP_UNKNOWN"
        self.server.answer = message.SerializeToString()
        with self.assertRaises(td.InvalidArgument) as context:
            td.evaluate(lambda x: x, 1.0, client=self.client)
        self.assertEqual(context.exception.reason, "OP_UNKNOWN")

    def test_a_closed_client(self):
        self.client.close()
        with self.assertRaises(td.Cancelled):
            self.client.health()


if __name__ == "__main__":
    unittest.main()
