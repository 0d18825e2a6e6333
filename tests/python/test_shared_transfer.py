"""Tensors of sessions through memory that the client shares with a real server. Needs TENSORD_BINARY; skipped without."""

import os
import unittest
from unittest import mock

import numpy as np

import checkout  # noqa: F401  finds the package
from shared_memory_test_case import SharedMemoryTestCase, double
from stand_in_server import StandInServer
import tensord as td
from tensord import contract, dtypes, errors
from tensord.calls import resumed, transfer
from tensord.calls.shared_memory import SharedMemory


class SharedTransferTest(SharedMemoryTestCase):
    def setUp(self):
        super().setUp()
        self.session = self.client.session()
        self.addCleanup(self.session.close)

    def in_messages(self):
        """Tell whether tensors went there since: (up, down)."""
        up = mock.patch.object(resumed, "upload", wraps=resumed.upload)
        down = mock.patch.object(resumed, "download", wraps=resumed.download)
        spies = up.start(), down.start()
        self.addCleanup(mock.patch.stopall)
        return lambda: tuple(spy.called for spy in spies)

    def check_same(self, there, array):
        self.assertEqual((there.dtype, there.shape), (array.dtype, array.shape))
        self.assertEqual(there.tobytes(), array.tobytes())

    def test_tensors_come_and_go_there(self):
        went_in_messages = self.in_messages()
        arrays = [(np.arange(1 << 17) % 2).astype(dtype) for dtype in ("float64", "int32", "bool", "complex128")]
        arrays += [np.asfortranarray(np.random.default_rng(1).random((300, 400))), np.random.random((512, 512))[::2]]
        for array in arrays:
            there = self.session.put(array).fetch()
            self.check_same(there, array)
            self.assertIsNotNone(self.memory.place_of(there))
            there[0] = 1  # the caller's own, as ever
        self.assertEqual(went_in_messages(), (False, False))

    def test_arrays_there_are_sent_where_they_lie(self):
        whole = self.memory.copy(np.random.default_rng(1).random((64, 4096), np.float32))
        used = set(self.memory._used)
        with mock.patch.object(SharedMemory, "block", side_effect=AssertionError("a copy")):
            remotes = [self.session.put(whole), self.session.put(whole[8:])]
        self.assertEqual(set(self.memory._used), used)
        expected = whole.copy()
        whole[...] = 0
        for remote, array in zip(remotes, (expected, expected[8:])):
            self.check_same(remote.fetch(), array)

    def test_results_that_are_kept_come_there(self):
        program = td.compile(double, td.spec(("n",), "float32"), client=self.client)
        remote = program(np.ones(1 << 16, np.float32), session=self.session, keep=True)
        with self.session.pipeline() as pipeline:
            again = pipeline.run(program, remote, keep=True)
        there = again.fetch()
        self.check_same(there, np.full(1 << 16, 4, np.float32))
        self.assertIsNotNone(self.memory.place_of(there))

    def test_what_is_small_or_finds_no_memory_goes_in_messages(self):
        for array in (np.float64(3), np.zeros((0, 3)), np.ones(8191), np.ones(5 << 20, np.float32)):
            went_in_messages = self.in_messages()
            there = self.session.put(array).fetch()
            self.check_same(there, np.asarray(array))
            self.assertIsNone(self.memory.place_of(there))
            self.assertEqual(went_in_messages(), (True, True))
            mock.patch.stopall()

    def test_refusals_are_told(self):
        remote = self.session.put(np.ones(1 << 16))
        self.session.client.unary(
            "DeleteTensors",
            contract.DeleteTensorsRequest(session=self.session.id, handles=[remote.handle]),
            contract.DeleteTensorsResponse,
            None,
        )
        with self.assertRaises(errors.FailedPrecondition) as caught:
            remote.fetch()
        self.assertEqual(caught.exception.reason, "HANDLE_UNKNOWN")
        with self.assertRaises(errors.InvalidArgument) as caught:
            self.session.put(np.full(1 << 16, 2, np.uint8).view(bool))
        self.assertEqual(caught.exception.reason, "DATA_INVALID")
        self.assertFalse(self.memory.lost)

    def test_a_server_that_is_started_again_does_not_know_the_regions(self):
        array = self.memory.copy(np.random.default_rng(2).random(1 << 16))
        self.lose_regions(array)
        went_in_messages = self.in_messages()
        remote = self.session.put(array)
        self.assertTrue(self.memory.lost)
        self.check_same(remote.fetch(), array)
        self.assertEqual(went_in_messages(), (True, True))

    def test_a_download_into_a_region_that_is_gone_comes_in_messages(self):
        array = np.random.default_rng(3).random(1 << 16)
        remote = self.session.put(array)
        block = self.memory.block

        def gone(*arguments):
            made = block(*arguments)
            self.lose_regions(np.asarray(made))
            made.region = self.memory._used[made.address][0]
            return made

        with mock.patch.object(self.memory, "block", gone):
            self.check_same(remote.fetch(), array)
        self.assertTrue(self.memory.lost)

    def lose_answer(self, change=lambda: None):
        """The answer to the next PutTensor does not come, after `change`; True once that has happened."""
        call, lost = self.client._call, []

        def lose(method, *arguments, **options):
            answer = call(method, *arguments, **options)
            if method == "PutTensor" and not lost:
                lost.append(method)
                change()
                raise errors.Unavailable("connection reset")
            return answer

        self.client._call = lose
        return lambda: bool(lost)

    def test_an_upload_whose_answer_is_lost_is_compared(self):
        array = np.random.default_rng(4).random(1 << 16)
        has_lost = self.lose_answer()
        remote = self.session.put(array)
        self.assertTrue(has_lost())
        self.check_same(remote.fetch(), array)

    def test_another_tensor_there_is_the_refusal(self):
        array = np.ones(1 << 16)

        def replace():
            handles = contract.DeleteTensorsRequest(session=self.session.id, handles=["t1"])
            self.client.unary("DeleteTensors", handles, contract.DeleteTensorsResponse, None)
            self.client.upload(*transfer.put_header(self.session.id, "t1", 0 * array, dtypes.as_dtype("float64")), 60)

        has_lost = self.lose_answer(replace)
        with self.assertRaises(errors.FailedPrecondition) as caught:
            self.session.put(array)
        self.assertTrue(has_lost())
        self.assertEqual(caught.exception.reason, "HANDLE_DUPLICATE")

    def test_a_server_that_does_not_offer_it_for_tensors_gets_messages(self):
        old = StandInServer(os.path.join(self.folder, "old"))
        self.addCleanup(old.close)
        old.info.shared_memory.socket = self.socket
        with td.Client(old.target, timeout=30, shared_memory=True) as client:
            array = client.shared_memory.copy(np.arange(1 << 16))
            with client.session() as session:
                self.check_same(session.put(array).fetch(), array)

    def test_a_repeated_execution_has_what_is_left_of_the_deadline(self):
        clock, timeouts = [100.0], []
        call = self.client._call

        def forget(method, request, timeout, **options):
            if method != "Execute":
                return call(method, request, timeout, **options)
            timeouts.append(timeout)
            if len(timeouts) > 1:
                return call(method, request, 60, **options)
            clock[0] += 7
            raise errors.FailedPrecondition("no such region", reason="REGION_UNKNOWN")

        program = td.compile(double, td.spec((1 << 16,), "float32"), client=self.client)
        x = np.ones(1 << 16, np.float32)
        self.client._call = forget
        with mock.patch("tensord.calls.deadline.monotonic", lambda: clock[0]):
            (y,), _ = self.client.execute(program.fingerprint, [x], timeout=10)
            self.assertEqual(timeouts, [10, 3])
            self.memory.lost = False
            timeouts.clear()
            self.client.timeout = None
            self.client.execute(program.fingerprint, [x])
        self.check_same(y, x + x)
        self.assertEqual(timeouts, [None, None])


if __name__ == "__main__":
    unittest.main()
