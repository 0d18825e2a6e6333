"""Tensors over connections that break."""

import os
import tempfile
import unittest
import unittest.mock

import grpc
import numpy as np

from breaking_proxy import BreakingProxy
from server_test import ServerTest
from stand_in_test_case import StandInTestCase
import tensord as td
from tensord import contract, dtypes
from tensord.calls import attempts, resumed, transfer
from tensord.calls.crc32c import crc32c

MIB = 1 << 20


class Resumed(ServerTest):
    def behind(self, *budgets):
        """A client behind a proxy that breaks its connections, and the proxy."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        proxy = BreakingProxy(os.path.join(folder.name, "p"), self.server.target.removeprefix("unix:"), budgets)
        self.addCleanup(proxy.close)
        client = td.Client(proxy.target, timeout=120)
        self.addCleanup(client.close)
        return client, proxy

    def test_uploads_and_downloads_go_on(self):
        array = np.random.default_rng(1).random(4 * MIB)  # 32 MiB
        client, proxy = self.behind(24 * MIB, MIB, 30 * MIB)
        with client.session() as session:
            remote = session.put(array)
            self.assertGreaterEqual(proxy.connections, 3)
            self.assertLess(proxy.bytes, 45 * MIB)
            np.testing.assert_array_equal(remote.fetch(), array)
            self.assertEqual(proxy.connections, 4)
            self.assertLess(proxy.bytes, 85 * MIB)

    def test_attempts_end(self):
        client, proxy = self.behind(*[300_000] * 20)
        with self.client.session() as session:
            remote = session.put(np.zeros(MIB))
            session.client = client
            with self.assertRaises((td.Unavailable, td.DeadlineExceeded)):
                session.put(np.zeros(MIB), timeout=0.3)
            self.assertLess(proxy.connections, 5)
            session.client = self.client
            np.testing.assert_array_equal(remote.fetch(), np.zeros(MIB))

    def test_what_stayed_of_an_upload_that_was_refused_in_the_middle_is_taken_away(self):
        with self.client.session() as session:
            bools = np.zeros(3 * MIB, np.uint8)
            bools[2 * MIB + 5] = 2
            with self.assertRaises(td.InvalidArgument) as caught:
                self.put(session, "t", bools.view(bool))
            self.assertEqual(caught.exception.reason, "DATA_INVALID")
            # For a tensor of another type this would be a refusal.
            self.put(session, "t", np.ones(3, np.float32))

    def put(self, session, handle, array):
        header, data = transfer.put_header(session.id, handle, array, dtypes.as_dtype(array.dtype))
        self.client.upload(header, data, 120)


class LostAnswers(StandInTestCase):
    """Uploads that were sent to the last byte, and whose answer never came."""

    def setUp(self):
        super().setUp()
        self.session = self.client.session()

    def lose(self, change=lambda kept: None):
        """The answer to a PutTensor is lost, after `change` of the session's tensors."""

        def after_put(kept):
            change(kept)
            return grpc.StatusCode.UNAVAILABLE, "connection reset"  # what gRPC says where a connection breaks

        self.server.after_put = after_put

    def test_the_same_tensor_there_is_success(self):
        for array in (np.arange(300_000.0), np.float32(3), np.zeros((0, 3)), np.array([[1 + 2j, np.nan]])):
            self.lose()
            remote = self.session.put(array)
            np.testing.assert_array_equal(remote.fetch(), array)

    def test_another_tensor_there_is_the_refusal(self):
        array = np.arange(300_000.0)
        last = array.copy()
        last[-1] = 0
        for other in (last, array.view(np.int64), array.reshape(3, -1), array[:-1], np.zeros(0)):
            self.lose(lambda kept: kept.update({handle: other for handle in kept}))
            with self.assertRaises(td.FailedPrecondition) as caught:
                self.session.put(array)
            self.assertEqual(caught.exception.reason, "HANDLE_DUPLICATE")


class LostMessages(unittest.TestCase):
    """Calls that end well without all of their answer, which gRPC may have let go of."""

    def test_downloads_go_on(self):
        array = np.arange(3000, dtype=np.uint8).view(bool)
        first = contract.GetTensorResponse()
        first.header.dtype, first.header.order = dtypes.as_dtype("bool").wire, contract.ROW_MAJOR
        first.header.shape.append(3000)
        data = array.view(np.uint8).tobytes()
        offsets, lengths = [], [-1, 0, 1000, 3000]

        def call(message, timeout, read):
            offset = contract.GetTensorRequest.FromString(message).offset
            offsets.append(offset)
            messages = [first.SerializeToString()]
            end = lengths[len(offsets) - 1]
            for at in range(offset, end, 1000):
                chunk = contract.GetTensorResponse()
                chunk.chunk.offset, chunk.chunk.data = at, data[at : at + 1000]
                chunk.chunk.crc32c = crc32c(chunk.chunk.data)
                messages.append(chunk.SerializeToString())
            read(iter(messages if end >= 0 else []))

        with unittest.mock.patch.object(attempts, "FIRST_PAUSE", 0.001):
            there = resumed.download(call, contract.GetTensorRequest(), 60)
            self.assertEqual(there.tobytes(), data)
            self.assertEqual(offsets, [0, 0, 0, 1000])
            lengths[:] = [-1] * (4 + attempts.MOST_ATTEMPTS)
            with self.assertRaises(transfer.EndedEarly):
                resumed.download(call, contract.GetTensorRequest(), 60)
        self.assertEqual(len(offsets), 4 + attempts.MOST_ATTEMPTS)

    def test_an_answer_is_not_there(self):
        client = td.Client("unix:/does/not/exist")
        self.addCleanup(client.close)
        client._calls["/tensord.v1.Compute/Explain"] = lambda *_, **__: None
        with self.assertRaisesRegex(td.Unavailable, "answer was lost"):
            client.explain("f" * 64)


class UploadId(unittest.TestCase):
    def test_is_that_of_all_calls_of_an_upload_and_of_no_other(self):
        header, data = transfer.put_header("s", "t", np.zeros(1), dtypes.as_dtype("float64"))
        ids, answers = [], []

        def call(messages, timeout):
            ids.append(contract.PutTensorRequest.FromString(next(messages)).header.upload_id)
            list(messages)
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return contract.PutTensorResponse(byte_count=answer).SerializeToString()

        with unittest.mock.patch.object(attempts, "FIRST_PAUSE", 0.001):
            for _ in range(2):
                answers[:] = [td.Unavailable("broken"), 0, 8]
                resumed.upload(call, None, header, data, 60)
        self.assertTrue(all(ids))
        self.assertEqual((len(set(ids[:3])), len(set(ids[3:])), len(set(ids))), (1, 1, 2))


class CleanUp(unittest.TestCase):
    def test_goes_on_until_the_server_has_noticed_that_the_upload_is_over(self):
        incomplete = td.FailedPrecondition("is being uploaded by another call", reason="HANDLE_INCOMPLETE")
        answers = [td.DeadlineExceeded("late"), incomplete, incomplete, td.InvalidArgument("ended after 0 of 8 bytes")]
        header, data = transfer.put_header("s", "t", np.zeros(1), dtypes.as_dtype("float64"))
        calls = []

        def call(messages, timeout):
            first = contract.PutTensorRequest.FromString(next(messages))
            calls.append((first.header.resumable, len(list(messages))))
            raise answers.pop(0)

        with self.assertRaises(td.DeadlineExceeded):
            resumed.upload(call, None, header, data, 60)
        self.assertEqual(calls, [(True, 1), (False, 0), (False, 0), (False, 0)])


if __name__ == "__main__":
    unittest.main()
