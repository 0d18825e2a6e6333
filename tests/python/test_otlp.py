"""The spans that the server exports, read with OpenTelemetry's own messages."""

import concurrent.futures
import os
import queue
import tempfile
import unittest

import grpc

import checkout  # noqa: F401
from server_process import ServerProcess, binary_or_skip
import tensord as td

try:
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
except (ImportError, TypeError) as error:  # TypeError: made for another version of Protocol Buffers
    trace_service_pb2 = None
    MISSING = f"no package opentelemetry-proto that can be used, 1.20 for Protocol Buffers 3.21: {error}"
else:
    MISSING = ""

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
PARENT_ID = "b7ad6b7169203331"


class Collector:
    """A gRPC server that answers exports, and keeps them."""

    def __init__(self):
        self.requests = queue.Queue()

    def export(self, request, _):
        self.requests.put(request)
        return trace_service_pb2.ExportTraceServiceResponse()

    def handler(self):
        messages = trace_service_pb2
        service = messages.DESCRIPTOR.services_by_name["TraceService"].full_name
        export = grpc.unary_unary_rpc_method_handler(
            self.export,
            request_deserializer=messages.ExportTraceServiceRequest.FromString,
            response_serializer=messages.ExportTraceServiceResponse.SerializeToString,
        )
        return grpc.method_handlers_generic_handler(service, {"Export": export})


@unittest.skipIf(trace_service_pb2 is None, MISSING)
class OtlpTest(unittest.TestCase):
    def setUp(self):
        binary_or_skip()
        folder = tempfile.TemporaryDirectory(prefix="tensord-")
        self.addCleanup(folder.cleanup)
        self.address = f"unix:{os.path.join(folder.name, 'collector')}"
        self.collector = Collector()
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
        server.add_generic_rpc_handlers((self.collector.handler(),))
        server.add_insecure_port(self.address)
        server.start()
        self.addCleanup(lambda: server.stop(None).wait())

    def test_nothing_is_unknown_to_the_published_messages(self):
        server = ServerProcess(f"--set=tracing.endpoint={self.address}", "--set=tracing.batch_ms=1")
        self.addCleanup(server.stop)
        context = [("traceparent", f"00-{TRACE_ID}-{PARENT_ID}-01"), ("tracestate", "rojo=1")]
        with td.connect(server.target, metadata=context) as client:
            client.server_info()
        request = self.collector.requests.get(timeout=60)
        spans = [span for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans]
        before = sum(span.ByteSize() for span in spans)
        request.DiscardUnknownFields()
        # `flags`, a tag of two bytes and a fixed32, came with OTLP 1.1.
        later = 0 if "flags" in type(spans[0]).DESCRIPTOR.fields_by_name else 6 * len(spans)
        self.assertEqual(sum(span.ByteSize() for span in spans), before - later)

        (resource,) = request.resource_spans
        attributes = {entry.key: entry.value.string_value for entry in resource.resource.attributes}
        self.assertEqual(attributes["service.name"], "tensord")
        (scope,) = resource.scope_spans
        self.assertEqual(scope.scope.name, "tensord")
        (root,) = [span for span in scope.spans if span.kind == type(span).SPAN_KIND_SERVER]
        self.assertEqual(root.name, "tensord.v1.Compute/GetServerInfo")
        self.assertEqual(root.trace_id.hex(), TRACE_ID)
        self.assertEqual(root.parent_span_id.hex(), PARENT_ID)
        self.assertEqual(root.trace_state, "rojo=1")
        self.assertLess(root.start_time_unix_nano, root.end_time_unix_nano)
        values = {entry.key: entry.value for entry in root.attributes}
        self.assertEqual(values["rpc.system"].string_value, "grpc")
        self.assertEqual(values["rpc.grpc.status_code"].WhichOneof("value"), "int_value")
        for span in scope.spans:
            self.assertEqual(span.trace_id.hex(), TRACE_ID)
            self.assertIn(span.kind, (type(span).SPAN_KIND_SERVER, type(span).SPAN_KIND_INTERNAL))


if __name__ == "__main__":
    unittest.main()
