"""Pipelines of a session against a real server. Needs TENSORD_BINARY, the path of the tensord binary; skipped without."""

import threading
import unittest

import numpy as np

import checkout  # noqa: F401  finds the package
from server_test import ServerTest
import tensord as td


class Pipelines(ServerTest):
    def test_a_loop_without_round_trips(self):
        step = self.compile(lambda x, y: (x + y, (x + y).sum()), td.spec(5), td.spec(5))
        with self.client.session() as session:
            state = session.put(np.zeros(5))
            with session.pipeline() as pipeline:
                totals = []
                for _ in range(200):
                    state, total = pipeline.run(step, state.donate(), np.ones(5), keep=(True, False))
                    totals.append(total)
                self.assertEqual(float(totals[0].result(60)), 5.0)
            self.assertEqual([float(total.result()) for total in totals], [5.0 * i for i in range(1, 201)])
            np.testing.assert_array_equal(state.fetch(), np.full(5, 200.0))
            self.assertEqual(step.call_count, 200)
            self.assertEqual(step.stats.device, "cpu:0")

    def test_symbolic_sizes_and_structures(self):
        program = self.compile(lambda x: {"twice": x + x, "sum": x.sum()}, td.spec("n"))
        with self.client.session() as session, session.pipeline() as pipeline:
            first = pipeline.run(program, np.ones(7), keep={"twice": True, "sum": False})
            second = pipeline.run(program, first["twice"], keep=True)
            self.assertEqual(float(first["sum"].result(60)), 7.0)
            self.assertEqual(second["twice"].shape, (7,))
            np.testing.assert_array_equal(second["twice"].fetch(), np.full(7, 4.0))
            first["twice"].delete()
            second["sum"].delete()

    def test_arguments_by_name(self):
        program = self.compile(lambda x, w: x - w, td.spec(2), td.spec(2))
        with self.client.session() as session, session.pipeline() as pipeline:
            self.assertEqual(pipeline.run(program, w=np.ones(2), x=[3, 4]).result(60).tolist(), [2, 3])
            with self.assertRaisesRegex(TypeError, "w is missing"):
                pipeline.run(program, np.ones(2))

    def test_failures_stay_with_their_runs(self):
        inverse = self.compile(td.linalg.inv, td.spec((2, 2)))
        add = self.compile(lambda x: x + 1.0, td.spec((2, 2)))
        with self.client.session() as session:
            pipeline = session.pipeline()
            made = pipeline.run(inverse, np.zeros((2, 2)), keep=True)
            dependent = pipeline.run(add, made)
            fine = pipeline.run(add, np.zeros((2, 2)))
            with self.assertRaises(td.FailedPrecondition) as context:
                dependent.result(60)
            self.assertEqual(context.exception.reason, "HANDLE_POISONED")
            self.assertIn("MATRIX_SINGULAR", str(context.exception))
            np.testing.assert_array_equal(fine.result(60), np.ones((2, 2)))
            with self.assertRaises(td.FailedPrecondition) as context:  # nothing else would tell of it
                pipeline.close()
            self.assertEqual(context.exception.reason, "MATRIX_SINGULAR")
            with self.assertRaises(td.Error):
                pipeline.run(add, np.zeros((2, 2)))

    def test_mistakes_are_raised_before_anything_is_sent(self):
        add = self.compile(lambda x: x + 1.0, td.spec(2))
        with self.client.session() as session, session.pipeline() as pipeline:
            with self.assertRaises(ValueError):
                pipeline.run(add, np.zeros(3))
            state = pipeline.run(add, np.zeros(2), keep=True)
            pipeline.run(add, state.donate())
            with self.assertRaisesRegex(ValueError, "deleted or donated"):
                pipeline.run(add, state)

    def test_a_block_that_fails_does_not_wait(self):
        add = self.compile(lambda x: x + 1.0, td.spec(2))
        with self.client.session() as session:
            with self.assertRaises(ZeroDivisionError):
                with session.pipeline() as pipeline:
                    pipeline.run(add, np.zeros(2), keep=True)
                    raise ZeroDivisionError

    def test_a_future_cannot_be_cancelled(self):
        add = self.compile(lambda x: (x + 1.0, x - 1.0), td.spec(2))
        with self.client.session() as session, session.pipeline() as pipeline:
            for _ in range(20):
                up, down = pipeline.run(add, np.zeros(2))
                self.assertFalse(up.cancel())
                np.testing.assert_array_equal(down.result(60), np.full(2, -1.0))
                np.testing.assert_array_equal(up.result(60), np.ones(2))

    def test_threads_share_a_pipeline(self):
        add = self.compile(lambda x: x + 1.0, td.spec(3))
        wrong = []
        with self.client.session() as session, session.pipeline() as pipeline:

            def work(number):
                state = session.put(np.full(3, float(number)))
                for _ in range(20):
                    state = pipeline.run(add, state.donate(), keep=True)
                if not np.array_equal(state.fetch(), np.full(3, number + 20.0)):
                    wrong.append(number)

            threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
