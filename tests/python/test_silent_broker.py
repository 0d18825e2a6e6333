"""Shared memory from a server that takes the connection, and then says nothing, or says it late."""

import array
import fcntl
import os
import socket
import tempfile
import threading
import time
import unittest
import unittest.mock

import numpy as np

import checkout  # noqa: F401  finds the package
from server_process import ServerProcess
import tensord as td
from tensord import contract
from tensord.calls.shared_memory import MOST_WAIT, SharedMemory

SHORT = 0.05


class SilentBroker:
    """A socket that says what the test says. The system takes connections, whether the test looks at them or not."""

    def __init__(self, path):
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(path)
        self._listener.listen()
        self._connection = None

    def close(self):
        self._listener.close()
        if self._connection:
            self._connection.close()

    def read(self):
        """The next request: "allocate", or "free NAME"."""
        if self._connection is None:
            self._connection, _ = self._listener.accept()
        request = contract.SharedMemoryRequest.FromString(self._connection.recv(4096))
        return f"free {request.free.region}" if request.HasField("free") else "allocate"

    def answer(self, region, size=0, *, missing=0, seals=fcntl.F_SEAL_SHRINK):
        """With memory where a size is given, of which so many bytes are missing."""
        reply = contract.SharedMemoryReply(region=region, byte_count=size).SerializeToString()
        ancillary, memory = [], None
        if size:
            memory = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(memory, size - missing)
            fcntl.fcntl(memory, fcntl.F_ADD_SEALS, seals)
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [memory]))]
        self.answer_bytes(reply, ancillary)
        if memory is not None:
            os.close(memory)


    def answer_bytes(self, answer, ancillary=()):
        self._connection.sendmsg([answer], ancillary)


class SilentBrokerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tensord-")
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "m")

    def broker(self):
        broker = SilentBroker(self.path)
        self.addCleanup(broker.close)
        return broker

    def test_a_wait_ends_and_costs_nobody_else_any(self):
        self.broker()
        memory = SharedMemory(self.path)
        with self.assertRaises(td.DeadlineExceeded) as caught:
            memory.empty(1024, timeout=SHORT)
        self.assertIn(self.path, str(caught.exception))
        with self.assertRaises(td.Unavailable):  # at once: a second wait would be late too
            memory.empty(1024)
        self.assertFalse(memory.lost)

    def test_memory_that_is_smaller_than_said_or_may_shrink_is_refused(self):
        # A write to its end would end the process by SIGBUS.
        for lie in ({"missing": 1}, {"seals": fcntl.F_SEAL_GROW}):
            with self.subTest(lie):
                broker = self.broker()
                memory = SharedMemory(self.path)
                thread = threading.Thread(target=lambda: (broker.read(), broker.answer("r", 4096, **lie)))
                thread.start()
                with self.assertRaises(td.DataLoss):
                    memory.empty(512)
                thread.join()
                os.unlink(self.path)

    def test_an_answer_that_is_none_is_data_loss(self):
        broker = self.broker()
        memory = SharedMemory(self.path)
        thread = threading.Thread(target=lambda: (broker.read(), broker.answer_bytes(b"\xff" * 9)))
        thread.start()
        with self.assertRaises(td.DataLoss):
            memory.empty(512)
        thread.join()

    def test_an_answer_that_comes_late_is_given_back_and_is_nobody_elses(self):
        broker = self.broker()
        memory = SharedMemory(self.path)
        with self.assertRaises(td.DeadlineExceeded):
            memory.empty(1024, timeout=SHORT)
        self.assertEqual(broker.read(), "allocate")
        broker.answer("late", 8192)
        made = []
        thread = threading.Thread(target=lambda: made.append(memory.empty(1024)), daemon=True)
        thread.start()
        self.assertEqual(broker.read(), "allocate")
        broker.answer("second", 8192)
        self.assertEqual(broker.read(), "free late")
        broker.answer("late")
        thread.join(60)
        self.assertEqual(memory.place_of(made[0]), ("second", 0))

    def test_who_waits_for_anothers_request_waits_no_longer_than_its_timeout(self):
        broker = self.broker()
        memory = SharedMemory(self.path)
        made = []
        thread = threading.Thread(target=lambda: made.append(memory.empty(1024)), daemon=True)
        thread.start()
        self.assertEqual(broker.read(), "allocate")
        with self.assertRaises(td.DeadlineExceeded):
            memory.empty(1024, timeout=SHORT)
        broker.answer("first", 8192)
        thread.join(60)
        self.assertEqual(memory.place_of(made[0]), ("first", 0))

    def test_arrays_go_in_messages_then(self):
        server = ServerProcess(f"--set=shared_memory.listen=unix:{self.path}")
        self.addCleanup(server.stop)
        os.unlink(self.path)
        broker = self.broker()
        with td.Client(server.target, timeout=120, shared_memory=True) as client:
            self.assertIsNotNone(client.shared_memory)
            graph = td.compile(lambda x: x + x, td.spec((1 << 15,), "float32"), client=client)
            begin = time.monotonic()
            result = graph(np.full(1 << 15, 2, np.float32), timeout=4)  # half of it goes by
            self.assertEqual(result[7], 4)
            self.assertGreaterEqual(time.monotonic() - begin, 2)
            self.assertEqual(broker.read(), "allocate")


class SilentServerTest(unittest.TestCase):
    def test_memory_is_not_asked_for_forever(self):
        for timeout, wait in ((None, MOST_WAIT), (3, 3), (1e9, MOST_WAIT)):
            client = td.Client("unix:/does/not/exist", timeout=timeout, shared_memory=True)
            self.addCleanup(client.close)
            with unittest.mock.patch.object(client, "server_info", side_effect=td.DeadlineExceeded("late")) as asked:
                self.assertIsNone(client.shared_memory)
                self.assertIsNone(client.shared_memory)
            asked.assert_called_once_with(timeout=wait)


if __name__ == "__main__":
    unittest.main()
