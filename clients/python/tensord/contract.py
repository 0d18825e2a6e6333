"""The wire contract as message classes, for example contract.Graph and contract.ExecuteRequest.

The classes are made at import from descriptors and not from generated modules: those are tied to one version of the
protobuf runtime, descriptors are not. An installed package carries them in contract.binpb; a checkout compiles its
own .proto files and keeps the result in the repository's build folder under a name that depends on their text.
"""

import hashlib
import os
import pathlib
import tempfile

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tensord.contract_compiler import compile_contract

_PACKAGE = pathlib.Path(__file__).resolve().parent


def _descriptor_set_bytes():
    packaged = _PACKAGE / "contract.binpb"
    if packaged.is_file():
        return packaged.read_bytes()
    repository = _PACKAGE.parent.parent.parent
    proto_folder = repository / "proto"
    sources = sorted(proto_folder.glob("tensord/**/*.proto"))
    if not sources:
        raise ImportError(f"tensord: neither {packaged} nor a checkout's {proto_folder} exists; reinstall the package")
    digest = hashlib.sha256()
    for source in sources:
        digest.update(str(source.relative_to(proto_folder)).encode() + b"\0" + source.read_bytes() + b"\0")
    cached = repository / "build" / "python" / f"contract-{digest.hexdigest()[:16]}.binpb"
    if cached.is_file():
        return cached.read_bytes()
    compiled = compile_contract(proto_folder)
    _write_whole(cached, compiled)
    return compiled


def _write_whole(path, content):
    """Writes a file so that nobody sees half of it. A checkout that cannot be written to is compiled each time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(scratch, path)
    except OSError:
        pass


def _status_file():
    """google.rpc.Status, which gRPC puts into the trailer grpc-status-details-bin."""
    file = descriptor_pb2.FileDescriptorProto(name="google/rpc/status.proto", package="google.rpc", syntax="proto3")
    file.dependency.append("google/protobuf/any.proto")
    message = file.message_type.add(name="Status")
    kinds = descriptor_pb2.FieldDescriptorProto
    message.field.add(name="code", number=1, type=kinds.TYPE_INT32, label=kinds.LABEL_OPTIONAL)
    message.field.add(name="message", number=2, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    message.field.add(
        name="details", number=3, type=kinds.TYPE_MESSAGE, label=kinds.LABEL_REPEATED, type_name=".google.protobuf.Any"
    )
    return file


_pool = descriptor_pool.DescriptorPool()
for _file in descriptor_pb2.FileDescriptorSet.FromString(_descriptor_set_bytes()).file:
    _pool.AddSerializedFile(_file.SerializeToString())
_pool.AddSerializedFile(_status_file().SerializeToString())
_factory = None if hasattr(message_factory, "GetMessageClass") else message_factory.MessageFactory(_pool)


def message_class(full_name):
    """The class of a message of the contract, by its full name. Raises KeyError for an unknown one."""
    descriptor = _pool.FindMessageTypeByName(full_name)
    return _factory.GetPrototype(descriptor) if _factory else message_factory.GetMessageClass(descriptor)


def enum_values(full_name):
    """Numbers of an enum's values by their names."""
    return {name: value.number for name, value in _pool.FindEnumTypeByName(full_name).values_by_name.items()}


def _core(name):
    return message_class("tensord.v1." + name)


AllocateRegion = _core("AllocateRegion")
Argument = _core("Argument")
CloseSessionRequest = _core("CloseSessionRequest")
Compare = _core("Compare")
CompileOptions = _core("CompileOptions")
CompileRequest = _core("CompileRequest")
CompileResponse = _core("CompileResponse")
ContractionPlan = _core("ContractionPlan")
DeleteTensorsRequest = _core("DeleteTensorsRequest")
DeleteTensorsResponse = _core("DeleteTensorsResponse")
DifferentiateRequest = _core("DifferentiateRequest")
DifferentiateResponse = _core("DifferentiateResponse")
DimExpr = _core("DimExpr")
DotGeneral = _core("DotGeneral")
Error = _core("Error")
ErrorDetail = _core("ErrorDetail")
ExecuteRequest = _core("ExecuteRequest")
ExecuteResponse = _core("ExecuteResponse")
ExecutionStats = _core("ExecutionStats")
ExplainRequest = _core("ExplainRequest")
ExplainResponse = _core("ExplainResponse")
FreeRegion = _core("FreeRegion")
Gather = _core("Gather")
GetProgramRequest = _core("GetProgramRequest")
GetServerInfoRequest = _core("GetServerInfoRequest")
GetTensorRequest = _core("GetTensorRequest")
GetTensorResponse = _core("GetTensorResponse")
Graph = _core("Graph")
Node = _core("Node")
OpenSessionRequest = _core("OpenSessionRequest")
Program = _core("Program")
PutTensorRequest = _core("PutTensorRequest")
PutTensorResponse = _core("PutTensorResponse")
Result = _core("Result")
ResultOption = _core("ResultOption")
Scatter = _core("Scatter")
ServerInfo = _core("ServerInfo")
Session = _core("Session")
SharedMemoryReply = _core("SharedMemoryReply")
SharedMemoryRequest = _core("SharedMemoryRequest")
SharedSpace = _core("SharedSpace")
Tensor = _core("Tensor")
TensorType = _core("TensorType")
Status = message_class("google.rpc.Status")

ALGEBRAS = enum_values("tensord.v1.Algebra")
BINARY_OPS = enum_values("tensord.v1.BinaryOp")
COMBINERS = enum_values("tensord.v1.Scatter.Combiner")
COMPARE_DIRECTIONS = enum_values("tensord.v1.Compare.Direction")
DERIVATIVE_MODES = enum_values("tensord.v1.DifferentiateRequest.Mode")
DIM_KINDS = enum_values("tensord.v1.BinaryDimExpr.Kind")
DELIVERIES = enum_values("tensord.v1.ResultOption.Delivery")
DTYPES = enum_values("tensord.v1.DType")
MEMORY_ORDERS = enum_values("tensord.v1.MemoryOrder")
REDUCE_KINDS = enum_values("tensord.v1.Reduce.Kind")
SOURCES = enum_values("tensord.v1.CompileResponse.Source")
UNARY_OPS = enum_values("tensord.v1.UnaryOp")

ROW_MAJOR = MEMORY_ORDERS["MEMORY_ORDER_ROW_MAJOR"]
