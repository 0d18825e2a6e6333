"""The hand-made encoder and decoder against protobuf's own. Needs no server."""

import unittest

import numpy as np

import checkout  # noqa: F401
from tensord import contract, dtypes
from tensord.calls import wire

ARRAYS = [
    np.arange(12, dtype=np.float64).reshape(3, 4),
    np.float32(2.5).reshape(()),
    np.zeros((0, 5), np.int32),
    np.array([True, False, True]),
    np.arange(300, dtype=np.int64).reshape(2, 150),
    np.array([[1 + 2j, -3j]], np.complex64),
    np.array([1 + 2j], np.complex128),
    np.arange(5, dtype=np.float16),
    np.zeros((1, 0, 200)),
]


def typed(array):
    return array, dtypes.as_dtype(array.dtype)


def tensor(array):
    return contract.Tensor(
        dtype=dtypes.as_dtype(array.dtype).wire, shape=array.shape, order=contract.ROW_MAJOR, data=array.tobytes()
    )


class EncodeExecuteRequest(unittest.TestCase):
    def test_bytes_are_those_of_protobuf(self):
        for fields in (
            {"fingerprint": "ab" * 32},
            {"fingerprint": "f", "request_id": 1 << 40, "priority": 7, "profile": True},
            {"fingerprint": "f", "session": "s-1", "priority": -3},
        ):
            with self.subTest(fields):
                message = contract.ExecuteRequest(**fields)
                for array in ARRAYS:
                    message.arguments.add(tensor=tensor(array))
                encoded = wire.encode_execute_request([typed(array) for array in ARRAYS], **fields)
                self.assertEqual(encoded, message.SerializeToString(deterministic=True))

    def test_graph_and_options(self):
        graph = contract.Graph(name="g")
        graph.inputs.add(name="x")
        options = contract.CompileOptions(device="cpu", order=contract.ROW_MAJOR)
        expected = contract.ExecuteRequest(graph=graph, options=options)
        expected.arguments.add(handle="kept")
        expected.arguments.add(donated_handle="given")
        expected.results.add(handle="h")
        encoded = wire.encode_execute_request(
            [wire.Handle("kept"), wire.Handle("given", donated=True)],
            graph=graph.SerializeToString(),
            options=options.SerializeToString(),
            results=[contract.ExecuteRequest().results.add(handle="h").SerializeToString()],
        )
        self.assertEqual(encoded, expected.SerializeToString(deterministic=True))

    def test_contiguous_arrays_are_not_copied_before_the_join(self):
        array = np.arange(12.0).reshape(3, 4)
        self.assertIs(wire.contiguous(array, dtypes.float64), array)
        for other in (array.T, array[:, ::2], array.astype(">f8")):
            with self.subTest(other.strides):
                made = wire.contiguous(other, dtypes.float64)
                self.assertTrue(made.flags.c_contiguous)
                np.testing.assert_array_equal(made, other)

    def test_read_only_arrays_can_be_sent(self):
        array = np.arange(3.0)
        array.flags.writeable = False
        encoded = wire.encode_execute_request([typed(array)], fingerprint="f")
        self.assertEqual(contract.ExecuteRequest.FromString(encoded).arguments[0].tensor.data, array.tobytes())


class DecodeExecuteResponse(unittest.TestCase):
    def response(self, arrays, **fields):
        message = contract.ExecuteResponse(**fields)
        for array in arrays:
            message.results.add(tensor=tensor(array))
        message.stats.device = "cpu:0"
        message.stats.run_time.nanos = 5000
        return message

    def test_arrays_are_views_of_the_response(self):
        data = self.response(ARRAYS, request_id=9).SerializeToString()
        payloads, stats, error = wire.decode_execute_response(data)
        self.assertEqual((stats.device, stats.run_time.nanos, error), ("cpu:0", 5000, None))
        for payload, array in zip(payloads, ARRAYS, strict=True):
            self.assertEqual((payload.array.dtype, payload.array.shape), (array.dtype, array.shape))
            np.testing.assert_array_equal(payload.array, array)
            self.assertFalse(payload.array.flags.writeable and array.size)
            if array.size:
                begin = payload.array.__array_interface__["data"][0]
                base = np.frombuffer(data, np.uint8).__array_interface__["data"][0]
                self.assertEqual(begin, base + payload.offset)

    def test_column_major_and_unpacked_shapes(self):
        array = np.arange(6, dtype=np.int32).reshape(2, 3)
        unpacked = b"\x08\x02" + b"\x10\x02\x10\x03" + b"\x18\x01" + b"\x7a\x18" + array.tobytes(order="F")
        result = b"\x0a" + wire.varint(len(unpacked)) + unpacked
        payloads, _, _ = wire.decode_execute_response(b"\x12" + wire.varint(len(result)) + result)
        np.testing.assert_array_equal(payloads[0].array, array)

    def test_unknown_fields_and_results_without_data(self):
        message = contract.ExecuteResponse()
        message.results.add(handle="h")
        message.results.add(tensor=contract.Tensor(dtype=dtypes.float32.wire, shape=[3]))
        message.error.code = 3
        data = message.SerializeToString() + b"\xf8\x06\x05" + b"\xfd\x06\x01\x02\x03\x04" + b"\xf9\x06" + bytes(8)
        payloads, _, error = wire.decode_execute_response(data)
        self.assertIsNone(payloads[0])
        self.assertEqual((payloads[1].dtype, payloads[1].shape, payloads[1].array), (dtypes.float32, (3,), None))
        self.assertEqual(error, message.error.SerializeToString())

    def test_broken_bytes_are_refused(self):
        whole = self.response([np.arange(100.0)]).SerializeToString()
        for cut in (1, 3, 7, 12, 200, len(whole) - 1):
            with self.subTest(cut=cut), self.assertRaises(wire.MalformedResponse):
                wire.decode_execute_response(whole[:cut])
        wrong_length = contract.ExecuteResponse()
        wrong_length.results.add(tensor=contract.Tensor(dtype=dtypes.float32.wire, shape=[3], data=b"1234"))
        unknown_dtype = contract.ExecuteResponse()
        unknown_dtype.results.add(tensor=contract.Tensor(dtype=99, shape=[1], data=b"1234"))
        for message in (wrong_length, unknown_dtype):
            with self.assertRaises(wire.MalformedResponse):
                wire.decode_execute_response(message.SerializeToString())
        for noise in (b"\xff" * 11, b"\x12\xff\xff\xff\xff\x0f", b"\x0b"):
            with self.subTest(noise), self.assertRaises(wire.MalformedResponse):
                wire.decode_execute_response(noise)


class Alignment(unittest.TestCase):
    def test_second_response_is_aligned(self):
        for array in ARRAYS:
            if not array.size:
                continue
            with self.subTest(f"{array.dtype}{array.shape}"):
                alignment = wire.ResponseAlignment()
                for _ in range(2):
                    request_id = alignment.request_id()
                    message = contract.ExecuteResponse(request_id=request_id)
                    message.results.add(tensor=tensor(array))
                    payloads, _, _ = wire.decode_execute_response(message.SerializeToString())
                    alignment.learn(payloads, request_id)
                self.assertEqual(payloads[0].offset % 4, 0)
                self.assertTrue(payloads[0].array.flags.aligned)
                self.assertTrue(np.shares_memory(wire.aligned(payloads[0].array), payloads[0].array))

    def test_unaligned_memory_is_copied(self):
        data = b"x" + np.arange(3.0).tobytes()
        view = np.frombuffer(data, np.float64, 3, 1)
        copied = wire.aligned(view)
        self.assertTrue(copied.flags.aligned)
        self.assertFalse(copied.flags.writeable)
        np.testing.assert_array_equal(copied, view)


if __name__ == "__main__":
    unittest.main()
