"""Arrays in memory that the client shares with a real server. Needs TENSORD_BINARY; skipped without."""

import gc
import threading
import unittest

import numpy as np

import checkout  # noqa: F401  finds the package
from server_process import ServerProcess
from shared_memory_test_case import SharedMemoryTestCase, double
import tensord as td
from tensord import errors
from tensord.calls.shared_memory import SharedMemory


class SharedMemoryTest(SharedMemoryTestCase):
    def check_doubled(self, x, y):
        np.testing.assert_array_equal(y, np.asarray(x) + np.asarray(x))

    def test_results_lie_there_once_their_size_is_known(self):
        program = td.compile(double, td.spec((1 << 18,), "float32"), client=self.client)
        x = self.memory.empty(1 << 18, "float32")
        x[...] = np.arange(1 << 18)
        self.assertEqual(self.memory.place_of(x)[1], 0)
        results = [program(x) for _ in range(3)]
        for y in results:
            self.check_doubled(x, y)
            self.assertFalse(y.flags.writeable)
        self.assertEqual([self.memory.place_of(y) is not None for y in results], [False, True, True])
        self.assertEqual(len({self.memory.place_of(array)[0] for array in [x, *results[1:]]}), 3, "each its own")

    def test_arrays_from_elsewhere_are_copied_there(self):
        for dtype in ("float64", "int64", "bool", "complex64"):
            x = (np.arange(30000).reshape(100, 300) % 2).astype(dtype)
            program = td.compile(lambda x: (x, x.T), td.spec(x.shape, dtype), client=self.client)
            for _ in range(3):
                same, transposed = program(x)
                np.testing.assert_array_equal(same, x)
                np.testing.assert_array_equal(transposed, x.T)

    def test_parts_of_shared_arrays_are_sent_where_they_lie(self):
        program = td.compile(double, td.spec(("n", 4096), "float32"), client=self.client)
        whole = self.memory.copy(np.random.default_rng(1).random((64, 4096), np.float32))
        self.assertEqual(self.memory.place_of(whole[8:])[1], 8 * 4096 * 4)
        self.assertIsNone(self.memory.place_of(whole.reshape(-1)[1:]), "not aligned")
        self.check_doubled(whole[8:], program(whole[8:]))
        self.check_doubled(whole[:, ::2].repeat(2, axis=1), program(whole[:, ::2].repeat(2, axis=1)))

    def test_what_is_too_large_or_too_small_goes_in_a_message(self):
        for count in (1, 5 << 20):  # beyond shared_memory.region_bytes
            x = np.ones(count, np.float32)
            for _ in range(2):
                y = td.evaluate(double, x, client=self.client)
            self.check_doubled(x, y)
            self.assertIsNone(self.memory.place_of(y))
        with self.assertRaises(errors.ResourceExhausted) as caught:
            self.memory.empty(5 << 20, "float32")
        self.assertEqual(caught.exception.limit, "shared_memory.region_bytes")

    def test_blocks_are_used_again_and_arrays_outlive_their_client(self):
        client = td.Client(self.server.target, timeout=120, shared_memory=True)
        program = td.compile(double, td.spec((1 << 16,), "float64"), client=client)
        x = np.ones(1 << 16)
        places = set()
        for _ in range(20):
            y = program(x)
            place = client.shared_memory.place_of(y)
            places.add(place and place[0])
        self.assertLessEqual(len(places), 4)
        view = y[::2]
        client.close()
        del client, program, y
        gc.collect()
        np.testing.assert_array_equal(view, np.full(1 << 15, 2.0))

    def test_many_threads_share_a_client(self):
        program = td.compile(double, td.spec((1 << 15,), "float32"), client=self.client)
        failures = []

        def work(number):
            try:
                for step in range(20):
                    x = np.full(1 << 15, number * 100 + step, np.float32)
                    self.check_doubled(x, program(x))
            except BaseException as failure:
                failures.append(failure)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_a_server_that_is_started_again_does_not_know_the_regions(self):
        x = self.memory.copy(np.ones(1 << 16, np.float32))
        other = SharedMemory(self.socket)
        stray = other.empty(1 << 16, "float32")
        region = other.place_of(stray)[0]
        address = x.__array_interface__["data"][0]
        self.memory._used[address] = (region, self.memory._used[address][1])
        other._socket.close()
        y = td.evaluate(double, x, client=self.client)
        self.check_doubled(np.ones(1 << 16, np.float32), y)

    def test_without_an_offer_everything_goes_in_messages(self):
        plain = ServerProcess()
        self.addCleanup(plain.stop)
        with td.Client(plain.target, timeout=120, shared_memory=True) as client:
            self.assertIsNone(client.shared_memory)
            x = np.ones(1 << 17)
            self.check_doubled(x, td.evaluate(double, x, client=client))


if __name__ == "__main__":
    unittest.main()
