"""A server that takes calls and never answers: every wait for it ends with the timeout that it was given."""

import threading
import unittest

import numpy as np

import checkout  # noqa: F401  finds the package
from stand_in_test_case import StandInTestCase
import tensord as td

SHORT = 0.05
X = np.ones(3)


class SilentServer(StandInTestCase):
    def setUp(self):
        super().setUp()
        self.over = threading.Event()
        self.addCleanup(self.over.set)  # before the server is closed
        self.patient = td.Client(self.server.target)
        self.addCleanup(self.patient.close)
        self.program = self.compile(lambda x: x + 1.0, td.spec(3))
        self.server.answers["ExecuteStream"] = self.silent

    def silent(self, requests, context):
        """Takes one request and no other."""
        next(iter(requests), None)
        self.over.wait(60)
        return iter(())

    def pipeline(self, client=None, **options):
        return (client or self.patient).session().pipeline(**options)

    def assert_late(self, call, *args, **options):
        """It raises DeadlineExceeded, and does not wait for ever."""
        told = []

        def wait():
            try:
                told.append(call(*args, **options))
            except BaseException as failure:
                told.append(failure)

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        thread.join(20)
        self.assertFalse(thread.is_alive(), "it still waits")
        self.assertIsInstance(told[0], td.DeadlineExceeded, told[0])

    def test_a_promised_array(self):
        promised = self.pipeline().run(self.program, X, keep=True)
        self.assert_late(promised.fetch, timeout=SHORT)
        self.assert_late(promised.delete, timeout=SHORT)
        self.assert_late(promised.session.delete, [promised], timeout=SHORT)
        self.assert_late(self.program, promised, timeout=SHORT)
        self.assert_late(self.program, promised.donate(), timeout=SHORT)
        self.assertEqual(repr(promised), "RemoteArray(float64(3,))")  # it is not gone

    def test_as_long_as_the_clients_calls(self):
        program = td.compile(lambda x, count: x[:count], td.spec(3), td.spec((), int), client=self.patient)
        promised = self.pipeline().run(program, X, 2, keep=True)
        unknown = self.pipeline(timeout=60).run(program, X, 2, keep=True)
        after = td.compile(lambda x: x + 1.0, td.spec("n"), client=self.patient)
        self.patient.timeout = SHORT
        for one in (promised, unknown):
            self.assert_late(one.fetch)
            self.assert_late(one.delete)
            self.assert_late(after, one)
            self.assert_late(lambda: one.shape)
        self.assert_late(promised._run.pipeline.close)

    def test_a_size_that_the_run_decides(self):
        program = self.compile(lambda x, count: x[:count], td.spec(3), td.spec((), int))
        after = self.compile(lambda x: x + 1.0, td.spec("n"))
        promised = self.pipeline().run(program, X, 2, keep=True)
        self.assert_late(promised.fetch, timeout=SHORT)
        self.assert_late(after, promised, timeout=SHORT)

    def test_a_size_that_the_arguments_decide(self):
        program = self.compile(lambda x: td.concatenate([x, x]), td.spec("n"))
        self.assertEqual(self.pipeline().run(program, X, keep=True).shape, (6,))

    def test_an_array_of_another_pipeline(self):
        session = self.patient.session()
        for size in (3, "n"):
            program = self.compile(lambda x: x + 1.0, td.spec(size))
            promised = session.pipeline().run(program, X, keep=True)
            other = session.pipeline(timeout=SHORT)
            self.assert_late(other.run, program, promised)

    def test_a_pipeline_that_takes_no_more(self):
        many = np.ones(1 << 16)
        program = self.compile(lambda x: x + 1.0, td.spec(many.size))
        pipeline = self.pipeline()
        donated = pipeline.session.put(many)
        pipeline.run(program, many)
        self.patient.timeout = SHORT

        def fill():
            while True:
                pipeline.run(program, many)

        self.assert_late(fill)
        self.assert_late(pipeline.run, program, donated.donate())
        self.assertEqual(repr(donated), "RemoteArray(float64(65536,))")  # what was not sent is not gone
        self.assert_late(pipeline.close)

    def test_the_end_of_a_pipeline(self):
        pipeline = self.pipeline()
        answer, kept = pipeline.run(self.program, X), pipeline.run(self.program, X, keep=True)
        self.assert_late(pipeline.close, timeout=SHORT)
        self.assertIsInstance(answer.exception(20), td.Cancelled)
        with self.assertRaises(td.Cancelled):
            pipeline.run(self.program, kept)
        with self.assertRaises(td.Cancelled):  # at once: it has ended
            pipeline.close()

    def test_a_program_that_is_asked_for(self):
        def silent(request, context):
            self.over.wait(60)
            return b""

        self.server.answers["GetProgram"] = silent
        self.assert_late(self.pipeline(timeout=SHORT).run, self.program, X)


if __name__ == "__main__":
    unittest.main()
