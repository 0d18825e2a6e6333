"""A server in this process that speaks the contract and computes with the oracle: for tests of the client alone.

It can be told to forget its programs, and to fail, be slow or answer nonsense, which a real server does not do on
demand.
"""

import concurrent.futures
import hashlib
import threading

import grpc
import numpy as np

import checkout  # noqa: F401
import graph_oracle
from tensord import contract, dtypes
from tensord.calls import crc32c


class StandInServer:
    """Listens on a unix socket from construction until close(). Thread-safe."""

    def __init__(self, socket_path):
        self.target = f"unix:{socket_path}"
        self.programs = {}
        self.sessions = {}  # id: {handle: array}
        self.calls = []  # (method, metadata as a dict)
        self.failure = None  # (code, message, contract.ErrorDetail or None): the answer to every call while set
        self.after_put = None  # of a PutTensor that has worked: given the session's tensors, returns a failure or None
        self.chunk_bytes = 1 << 20  # of downloads
        self.checksum_error = 0  # what the checksums of downloads are wrong by
        self.info = contract.ServerInfo(version="0.0.1")
        self.answer = None  # bytes: the answer to Execute while set
        self.answers = {}  # by method: a function of the request, or the requests, and the context, that answers instead
        self.hold = threading.Event()  # Execute waits for it
        self.hold.set()
        self.last_request = None
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        self._server.add_generic_rpc_handlers((_Handler(self),))
        self._server.add_insecure_port(self.target)
        self._server.start()

    def close(self):
        self.hold.set()
        self._server.stop(None).wait()

    def respond(self, method, request, context):
        self.calls.append((method, dict(context.invocation_metadata())))
        if self.failure is not None:
            code, message, detail = self.failure
            self._abort(context, code, message, detail)
        return self.answers.get(method, getattr(self, method))(request, context)

    def _abort(self, context, code, message, detail=None):
        if detail is not None:
            status = contract.Status(code=code.value[0], message=message)
            packed = status.details.add(type_url="type.googleapis.com/tensord.v1.ErrorDetail")
            packed.value = detail.SerializeToString()
            context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        context.abort(code, message)

    def Compile(self, request, context):
        message = contract.CompileRequest.FromString(request)
        fingerprint = hashlib.sha256(message.graph.SerializeToString(deterministic=True)).hexdigest()
        response = contract.CompileResponse(source=contract.SOURCES["SOURCE_MEMORY"])
        if fingerprint not in self.programs:
            self.programs[fingerprint] = message.graph
            response.source = contract.SOURCES["SOURCE_COMPILED"]
            response.compile_time.nanos = 2_000_000
        response.program.fingerprint = fingerprint
        response.program.device = "cpu:0"
        return response.SerializeToString()

    def Execute(self, request, context):
        if not self.hold.wait(10):
            raise TimeoutError
        if self.answer is not None:
            return self.answer
        message = self.last_request = contract.ExecuteRequest.FromString(request)
        response = contract.ExecuteResponse(request_id=message.request_id)
        if message.WhichOneof("program") == "fingerprint":
            graph = self.programs.get(message.fingerprint)
            if graph is None:
                self._abort(context, grpc.StatusCode.FAILED_PRECONDITION, "no such program",
                            contract.ErrorDetail(reason="PROGRAM_NOT_FOUND"))  # fmt: skip
        else:
            graph = message.graph
            response.stats.compile_time.nanos = 1_000_000
        kept = self.sessions.get(message.session, {})
        arguments = [self._argument(argument, kept, context) for argument in message.arguments]
        for position, array in enumerate(graph_oracle.evaluate(graph, arguments)):
            tensor = response.results.add().tensor
            tensor.dtype = dtypes.as_dtype(array.dtype).wire
            tensor.shape.extend(array.shape)
            tensor.order = contract.ROW_MAJOR
            option = message.results[position] if position < len(message.results) else contract.ResultOption()
            if option.delivery == contract.DELIVERIES["DELIVERY_KEEP"]:
                assert option.handle not in kept
                kept[option.handle] = array
            else:
                tensor.data = array.tobytes()
        response.stats.device = "cpu:0"
        response.stats.run_time.nanos = 3_000_000
        return response.SerializeToString()

    def _argument(self, argument, kept, context):
        kind = argument.WhichOneof("value")
        if kind == "tensor":
            return _array(argument.tensor)
        handle = getattr(argument, kind)
        if handle not in kept:
            detail = contract.ErrorDetail(reason="HANDLE_UNKNOWN")
            self._abort(context, grpc.StatusCode.FAILED_PRECONDITION, f"no tensor {handle}", detail)
        return kept.pop(handle) if kind == "donated_handle" else kept[handle]

    def OpenSession(self, request, context):
        lease = contract.OpenSessionRequest.FromString(request).lease
        opened = contract.Session(id=f"s{len(self.sessions)}", lease=lease)
        self.sessions[opened.id] = {}
        return opened.SerializeToString()

    def CloseSession(self, request, context):
        del self.sessions[contract.CloseSessionRequest.FromString(request).session]
        return b""

    def DeleteTensors(self, request, context):
        message = contract.DeleteTensorsRequest.FromString(request)
        for handle in message.handles:
            del self.sessions[message.session][handle]
        return b""

    def PutTensor(self, requests, context):
        messages = [contract.PutTensorRequest.FromString(request) for request in requests]
        header, data = messages[0].header, b""
        if header.handle in self.sessions[header.session]:
            detail = contract.ErrorDetail(reason="HANDLE_DUPLICATE")
            self._abort(context, grpc.StatusCode.FAILED_PRECONDITION, f"there is a tensor {header.handle}", detail)
        for chunk in (message.chunk for message in messages[1:]):
            assert (chunk.offset, chunk.crc32c) == (len(data), crc32c.crc32c(chunk.data))
            data += chunk.data
        assert header.order == contract.ROW_MAJOR
        array = np.frombuffer(data, dtypes.from_wire(header.dtype).numpy).reshape(tuple(header.shape))
        self.sessions[header.session][header.handle] = array
        failure = self.after_put and self.after_put(self.sessions[header.session])
        if failure:
            self._abort(context, *failure)
        return contract.PutTensorResponse(handle=header.handle, byte_count=len(data)).SerializeToString()

    def GetTensor(self, request, context):
        message = contract.GetTensorRequest.FromString(request)
        array = self.sessions[message.session].get(message.handle)
        if array is None:
            detail = contract.ErrorDetail(reason="HANDLE_UNKNOWN")
            self._abort(context, grpc.StatusCode.FAILED_PRECONDITION, f"no tensor {message.handle}", detail)
        response = contract.GetTensorResponse()
        response.header.dtype = dtypes.as_dtype(array.dtype).wire
        response.header.shape.extend(array.shape)
        response.header.order = contract.ROW_MAJOR
        answers = [response.SerializeToString()]
        data = array.tobytes()
        for offset in range(0, len(data), self.chunk_bytes):
            part = data[offset : offset + self.chunk_bytes]
            chunk = contract.GetTensorResponse()
            chunk.chunk.offset, chunk.chunk.data = offset, part
            chunk.chunk.crc32c = crc32c.crc32c(part) ^ self.checksum_error
            answers.append(chunk.SerializeToString())
        return iter(answers)

    def GetProgram(self, request, context):
        fingerprint = contract.GetProgramRequest.FromString(request).fingerprint
        return contract.Program(fingerprint=fingerprint, device="cpu:0").SerializeToString()

    def Explain(self, request, context):
        message = contract.ExplainRequest.FromString(request)
        return contract.ExplainResponse(text=f"{message.WhichOneof('program')}").SerializeToString()

    def ExecuteStream(self, requests, context):
        for _ in requests:
            self._abort(context, grpc.StatusCode.UNIMPLEMENTED, "tests that run pipelines say their answers")
        return iter(())

    def GetServerInfo(self, request, context):
        return self.info.SerializeToString()

    def Check(self, request, context):
        return b"\x08\x01"


class _Handler(grpc.GenericRpcHandler):
    def __init__(self, server):
        self._server = server

    def service(self, details):
        method = details.method.rsplit("/", 1)[1]
        kinds = {
            "PutTensor": grpc.stream_unary_rpc_method_handler,
            "GetTensor": grpc.unary_stream_rpc_method_handler,
            "ExecuteStream": grpc.stream_stream_rpc_method_handler,
        }
        kind = kinds.get(method, grpc.unary_unary_rpc_method_handler)
        return kind(lambda request, context: self._server.respond(method, request, context))


def _array(tensor):
    flat = np.frombuffer(tensor.data, dtypes.from_wire(tensor.dtype).numpy)
    return flat.reshape(tuple(tensor.shape), order="C" if tensor.order == contract.ROW_MAJOR else "F")
