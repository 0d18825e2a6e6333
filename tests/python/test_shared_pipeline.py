"""Pipelines whose tensors lie in memory that the client shares with a real server. Needs TENSORD_BINARY; skipped without."""

import gc
import os
import unittest
from unittest import mock

import numpy as np

from shared_memory_test_case import REGION_BYTES, SharedMemoryTestCase, double
from server_process import ServerProcess
import tensord as td
from tensord.calls import wire
from tensord.calls.shared_memory import SharedMemory

COUNT = 1 << 17  # floats: half a MiB


class SharedPipelineTest(SharedMemoryTestCase):
    def setUp(self):
        super().setUp()
        self.session = self.client.session()
        self.addCleanup(self.session.close)

    def requests(self):
        """The lengths of the requests from now on."""
        lengths = []
        encode = wire.encode_execute_request

        def measured(*arguments, **options):
            request = encode(*arguments, **options)
            lengths.append(len(request))
            return request

        patch = mock.patch.object(wire, "encode_execute_request", measured)
        patch.start()
        self.addCleanup(patch.stop)
        return lengths

    def is_there(self, array):
        return self.memory.place_of(array) is not None

    def test_arguments_and_results_lie_there(self):
        program = td.compile(double, td.spec(("n",), "float32"), client=self.client)
        there = self.memory.copy(np.arange(COUNT, dtype=np.float32))
        elsewhere = np.array(there)
        lengths, seen = self.requests(), []
        with self.session.pipeline() as pipeline:
            for _ in range(3):
                for x in (there, elsewhere):
                    y = pipeline.run(program, x).result(60)
                    np.testing.assert_array_equal(y, elsewhere + elsewhere)
                    seen.append(self.is_there(y))
        self.assertEqual(seen, [False] + [True] * 5, "once its size is known")
        self.assertLess(max(lengths), 1000)

    def test_sizes_that_the_type_has_are_known_at_once(self):
        program = td.compile(lambda x: (x + x, x * x), td.spec(COUNT, "float32"), client=self.client)
        x = np.full(COUNT, 3, np.float32)
        with self.session.pipeline() as pipeline:
            runs = [pipeline.run(program, x, keep=(False, True)) for _ in range(5)]
            for twice, squared in runs:
                self.assertTrue(self.is_there(twice.result(60)))
                np.testing.assert_array_equal(twice.result(), x + x)
                np.testing.assert_array_equal(squared.fetch(), x * x)

    def test_a_loop_reuses_its_blocks(self):
        program = td.compile(double, td.spec(COUNT, "float32"), client=self.client)
        places = set()
        with self.session.pipeline() as pipeline:
            for step in range(30):
                y = pipeline.run(program, np.full(COUNT, step, np.float32)).result(60)
                self.assertEqual(y[-1], 2 * step)
                places.add(self.memory.place_of(y)[0])
        self.assertLessEqual(len(places), 4)

    def test_an_argument_stays_until_its_run_is_answered(self):
        program = td.compile(lambda x, y: x @ y, td.spec((256, 256)), td.spec((256, 256)), client=self.client)
        with self.session.pipeline() as pipeline:
            runs = []
            for number in range(20):
                x = self.memory.empty((256, 256))
                x[...] = number
                runs.append(pipeline.run(program, x, np.eye(256)))
                del x  # nobody but the run has it
            for number, run in enumerate(runs):
                np.testing.assert_array_equal(run.result(60), np.full((256, 256), float(number)))

    def test_failures_stay_with_their_runs(self):
        inverse = td.compile(td.linalg.inv, td.spec((128, 128)), client=self.client)
        both = td.compile(lambda x: (td.linalg.inv(x), x), td.spec((128, 128)), client=self.client)
        add = td.compile(lambda x: x + 1.0, td.spec((128, 128)), client=self.client)
        with self.session.pipeline() as pipeline:
            fails = pipeline.run(inverse, np.zeros((128, 128)))
            made, _ = pipeline.run(both, np.zeros((128, 128)), keep=(True, False))
            dependent = pipeline.run(add, made)
            fine = pipeline.run(add, np.zeros((128, 128)))
            with self.assertRaises(td.Error) as context:
                fails.result(60)
            self.assertEqual(context.exception.reason, "MATRIX_SINGULAR")
            with self.assertRaises(td.FailedPrecondition) as context:
                dependent.result(60)
            self.assertEqual(context.exception.reason, "HANDLE_POISONED")
            np.testing.assert_array_equal(fine.result(60), np.ones((128, 128)))
            self.assertTrue(self.is_there(fine.result()))
        self.assertFalse(self.memory.lost)

    def test_what_finds_no_memory_goes_in_messages(self):
        program = td.compile(double, td.spec(("n",), "float32"), client=self.client)
        x = np.ones(REGION_BYTES // 4 + 1, np.float32)
        with self.session.pipeline() as pipeline:
            for _ in range(2):
                y = pipeline.run(program, x).result(60)
                self.assertFalse(self.is_there(y))
                np.testing.assert_array_equal(y, x + x)

    def test_a_region_that_is_unknown_fails_its_run_and_later_ones_go_in_messages(self):
        program = td.compile(double, td.spec(COUNT, "float32"), client=self.client)
        x = self.memory.copy(np.ones(COUNT, np.float32))
        self.lose_regions(x)
        pipeline = self.session.pipeline()
        made = pipeline.run(program, x, keep=True)
        dependent = pipeline.run(program, made)
        with self.assertRaises(td.FailedPrecondition) as context:
            dependent.result(60)
        self.assertEqual(context.exception.reason, "HANDLE_POISONED")
        self.assertIn("REGION_UNKNOWN", str(context.exception))
        made.wait(self.client.deadline(60))  # the two answers come in any order
        y = pipeline.run(program, x).result(60)
        np.testing.assert_array_equal(y, np.full(COUNT, 2, np.float32))
        with self.assertRaises(td.FailedPrecondition) as context:  # nothing else would tell of the first
            pipeline.close()
        self.assertEqual(context.exception.reason, "REGION_UNKNOWN")

    def test_without_its_server_the_memory_is_not_used(self):
        folder = os.path.join(self.folder, "second")
        first = ServerProcess(f"--set=shared_memory.listen=unix:{folder}")
        memory = SharedMemory(folder)
        self.assertFalse(memory.has_gone())
        first.stop()
        self.assertTrue(memory.has_gone())
        program = td.compile(double, td.spec(COUNT, "float32"), client=self.client)
        with mock.patch.object(self.client, "_memory", memory), self.session.pipeline() as pipeline:
            y = pipeline.run(program, np.ones(COUNT, np.float32)).result(60)
        np.testing.assert_array_equal(y, np.full(COUNT, 2, np.float32))

    def descriptors(self):
        """The descriptors of this process, but for those of regions: each block has one."""
        gc.collect()
        blocks = len(self.memory._used) + sum(map(len, self.memory._free.values()))
        return len(os.listdir("/proc/self/fd")) - blocks

    def test_a_stream_that_breaks_leaves_nothing(self):
        program = td.compile(double, td.spec(COUNT, "float32"), client=self.client)
        with self.session.pipeline() as pipeline:  # connections and threads are there
            pipeline.run(program, np.ones(COUNT, np.float32)).result(60)
        descriptors, used = self.descriptors(), dict(self.memory._used)
        for _ in range(3):
            pipeline = self.session.pipeline()
            kept = pipeline.run(program, np.ones(COUNT, np.float32), keep=True)
            runs = [pipeline.run(program, kept) for _ in range(10)]
            pipeline._call.cancel()
            for run in runs:
                try:
                    np.testing.assert_array_equal(run.result(60), np.full(COUNT, 4, np.float32))
                except td.Error:
                    pass  # which of them had their answer is open
            with self.assertRaises(td.Error):
                pipeline.close()
            del pipeline, kept, runs, run
            self.assertLessEqual(self.descriptors(), descriptors)
            self.assertEqual(self.memory._used, used)
        with self.session.pipeline() as pipeline:
            y = pipeline.run(program, np.ones(COUNT, np.float32)).result(60)
        self.assertTrue(self.is_there(y))


if __name__ == "__main__":
    unittest.main()
