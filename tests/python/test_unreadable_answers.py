"""A server that answers what is no answer, or not the one that was asked for: td.Error, and nobody waits for ever."""

import threading
import unittest

import numpy as np

import checkout  # noqa: F401  finds the package
from stand_in_test_case import StandInTestCase
import tensord as td
from tensord import contract
from tensord.calls import crc32c, wire

NO_MESSAGES = (b"\xff" * 20, b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x05ab", b"\x0f")
FLOAT64 = td.float64.wire


def result(dtype=FLOAT64, shape=(2,), order=contract.ROW_MAJOR, data=b"\0" * 16):
    response = contract.ExecuteResponse()
    tensor = response.results.add().tensor
    tensor.dtype, tensor.order, tensor.data = dtype, order, data
    tensor.shape.extend(shape)
    return response.SerializeToString()


# Answers for a program with two results of float64[2].
NO_RESULTS = {
    "nothing": b"",
    "no message": b"\xff" * 30,
    "half": result()[:-3],
    "one": result(),
    "three": result() * 3,
    "a negative size": result(shape=(-1,), data=b"") * 2,
    "a size beyond NumPy": result(shape=(1 << 62, 0), data=b"") * 2,
    "sizes that overflow": result(shape=(1 << 62, 4), data=b"") * 2,
    "too many axes": result(shape=(1,) * 100, data=b"\0" * 8) * 2,
    "an unknown type": result(dtype=999) * 2,
    "another type": result(dtype=td.int64.wire) * 2,
    "a second one of another type": result() + result(dtype=td.int64.wire),
    "another size": result(shape=(3,), data=b"\0" * 24) * 2,
    "another rank": result(shape=(2, 1)) * 2,
    "too few bytes": result(data=b"\0" * 15) * 2,
    "a result without a tensor": b"\x12\x00" * 2,
    "a number for a result": b"\x10\x05" * 2,
    "a number for a tensor": b"\x12\x02\x08\x05" * 2,
    "statistics that are none": result() * 2 + b"\x1a\x03\xff\xff\xff",
    "an error that is none": b"\x22\x03\xff\xff\xff",
    "an error without a code": b"\x22\x00",
    "memory that is not shared": b"\x12\x04\x1a\x02\x18\x05",
}


def header(dtype=FLOAT64, shape=(2,)):
    message = contract.GetTensorResponse()
    message.header.dtype, message.header.order = dtype, contract.ROW_MAJOR
    message.header.shape.extend(shape)
    return message.SerializeToString()


def chunk(data, offset=0):
    message = contract.GetTensorResponse()
    message.chunk.data, message.chunk.offset, message.chunk.crc32c = data, offset, crc32c.crc32c(data)
    return message.SerializeToString()


NO_DOWNLOADS = {
    "no message": [b"\xff" * 20],
    "a chunk first": [chunk(b"\0" * 16)],
    "a negative size": [header(shape=(-1,))],
    "sizes that overflow": [header(shape=(1 << 62, 1 << 62))],
    "too many axes": [header(shape=(1,) * 100)],
    "an unknown type": [header(dtype=999)],
    "another type": [header(dtype=td.int64.wire), chunk(b"\0" * 16)],
    "another size": [header(shape=(1,)), chunk(b"\0" * 8)],
    "another rank": [header(shape=(1, 2)), chunk(b"\0" * 16)],
    "a size beyond this machine": [header(shape=(25 * 10**12,))],
    "a size beyond all machines": [header(shape=(1 << 59,))],
    "a chunk that is none": [header(), b"\xff" * 9],
    "half a chunk": [header(), chunk(b"\0" * 16)[:-2]],
    "a number for bytes": [header(), b"\x7a\x02\x78\x05"],
    "too much": [header(), chunk(b"\0" * 17)],
    "a chunk without bytes": [header(), chunk(b""), chunk(b"\0" * 16)],
}


class UnreadableAnswers(StandInTestCase):
    def assert_refused(self, call):
        """Refused with the error of an answer that is none, which no caller may take for that of a closed client."""
        with self.assertRaises(td.Error) as caught:
            call()
        self.assertIn(caught.exception.code, ("DATA_LOSS", "UNKNOWN"), caught.exception)

    def test_messages_that_are_none(self):
        calls = {
            "GetServerInfo": self.client.server_info,
            "Compile": lambda: self.compile(lambda x: x, td.spec(2)),
            "Explain": lambda: self.client.explain(contract.Graph()),
            "OpenSession": self.client.session,
            "GetProgram": lambda: self.client.get_program("f"),
        }
        for method, call in calls.items():
            for answer in NO_MESSAGES:
                with self.subTest(method, answer=answer):
                    self.server.answers = {method: lambda request, context: answer}
                    self.assert_refused(call)

    def test_names_that_are_missing(self):
        calls = {
            "Compile": lambda: self.compile(lambda x: x, td.spec(2)),
            "OpenSession": self.client.session,
            "GetProgram": lambda: self.client.get_program("f"),
        }
        for method, call in calls.items():
            with self.subTest(method):
                self.server.answers = {method: lambda request, context: b""}
                with self.assertRaisesRegex(td.DataLoss, "without its name"):
                    call()

    def test_uploads(self):
        session = self.client.session()
        for answer in NO_MESSAGES:
            with self.subTest(answer):
                self.server.answers = {"PutTensor": lambda requests, context: (list(requests), answer)[1]}
                self.assert_refused(lambda: session.put(np.ones(2)))

    def test_downloads(self):
        session = self.client.session()
        remote = session.put(np.ones(2))
        for name, answer in NO_DOWNLOADS.items():
            with self.subTest(name):
                self.server.answers = {"GetTensor": lambda request, context: iter(answer)}
                self.assert_refused(remote.fetch)

    def test_results(self):
        program = self.compile(lambda x: (x + x, x * x), td.spec(2))
        for name, answer in NO_RESULTS.items():
            with self.subTest(name):
                self.server.answers = {"Execute": lambda request, context: answer}
                self.assert_refused(lambda: program(np.ones(2)))
                self.assert_refused(lambda: td.evaluate(lambda x: (x + x, x * x), np.ones(2), client=self.client))

    def test_sizes_that_the_arguments_decide(self):
        program = self.compile(lambda x, y: (td.concatenate([x, x, y]), y), td.spec("n"), td.spec("m"))
        session = self.client.session()
        arguments = np.ones(3), session.put(np.ones(4))

        def answer(first, second, kept):
            empty = {"data": b""} if kept else {}
            return lambda request, context: b"".join(
                result(shape=(size,), **({"data": b"\0" * 8 * size} | empty)) for size in (first, second)
            )

        for kept in (False, True):
            for sizes in ((11, 4), (10, 3), (10, 5)):
                with self.subTest(sizes, kept=kept):
                    self.server.answers = {"Execute": answer(*sizes, kept)}
                    with self.assertRaisesRegex(td.DataLoss, "the program has spec"):
                        program(*arguments, keep=kept, session=session)
            self.server.answers = {"Execute": answer(10, 4, kept)}
            self.assertEqual([one.shape for one in program(*arguments, keep=kept, session=session)], [(10,), (4,)])

    def test_sizes_that_are_none_are_the_servers_to_refuse(self):
        n, m = td.dims.Dim.symbol("n"), td.dims.Dim.symbol("m")
        program = self.compile(lambda x, y: (td.zeros((n // m,)), td.zeros((n - m,))), td.spec("n"), td.spec("m"))
        specs = {shapes: program.specs_of_results([(np.ones(size), td.float64) for size in shapes])
                 for shapes in ((7, 2), (7, 0), (1, 2))}  # fmt: skip
        self.assertEqual(specs[7, 2], [td.spec(3), td.spec(5)])
        self.assertEqual(specs[7, 0], [td.spec((n // m,)), td.spec(7)])
        self.assertEqual(specs[1, 2], [td.spec(0), td.spec((n - m,))])

    def test_a_tensor_that_does_not_fit_here(self):
        session = self.client.session()
        grown = td.RemoteArray(session, "t1", td.float64, (1 << 57,))  # of a size that a run decided
        self.server.answers = {"GetTensor": lambda request, context: iter([header(shape=(1 << 57,))])}
        with self.assertRaisesRegex(td.ResourceExhausted, "no memory"):
            grown.fetch()

    def test_results_of_a_pipeline(self):
        program = self.compile(lambda x: (x + x, x * x), td.spec(2))
        session = self.client.session()
        for name, answer in NO_RESULTS.items():
            with self.subTest(name):

                def respond(requests, context):
                    for request in requests:
                        yield b"\x08" + wire.varint(wire.request_id_of(request)) + answer

                self.server.answers = {"ExecuteStream": respond}
                pipeline = session.pipeline()
                results = pipeline.run(program, np.ones(2))
                # Each of them has an end; without one the wait here is over late, with another error.
                failures = [one.exception(20) for one in results]
                self.assertTrue(any(isinstance(one, td.Error) for one in failures), failures)
                try:
                    pipeline.close()
                except td.Error:
                    pass

    def test_a_pipeline_leaves_a_server_that_answers_what_is_none_without_end(self):
        program = self.compile(lambda x: x + x, td.spec(2))
        session = self.client.session()
        left = threading.Event()

        def respond(requests, context):
            context.add_callback(left.set)
            next(requests)
            while context.is_active():
                yield b"\xff" * 20

        self.server.answers = {"ExecuteStream": respond}
        pipeline = session.pipeline()
        answer = pipeline.run(program, np.ones(2))
        self.assertIsInstance(answer.exception(20), td.DataLoss)
        self.assertTrue(left.wait(20))


if __name__ == "__main__":
    unittest.main()
