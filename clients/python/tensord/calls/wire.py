"""Bytes of requests and responses, made and read around NumPy's buffers.

protobuf copies a bytes field on its way in and out. Here a request is joined once, straight from the arrays' memory,
and a response's arrays are views of the bytes that arrived. The bytes are those of the contract's messages.
"""

import numpy as np

from tensord import contract, dtypes

# Field numbers of the contract, as tags: number << 3 | wire type (0 varint, 2 length-delimited).
_REQUEST_ID, _FINGERPRINT, _GRAPH, _OPTIONS, _ARGUMENTS, _RESULTS, _SESSION, _PRIORITY, _PROFILE = (
    0x08,
    0x12,
    0x1A,
    0x22,
    0x2A,
    0x32,
    0x3A,
    0x40,
    0x48,
)
_ARGUMENT_TENSOR, _ARGUMENT_HANDLE, _ARGUMENT_DONATED, _ARGUMENT_SHARED = 0x0A, 0x12, 0x1A, 0x22
_SHARED_REGION, _SHARED_OFFSET = 0x22, 0x28
_TENSOR_DTYPE, _TENSOR_SHAPE, _TENSOR_ORDER, _TENSOR_DATA = 0x08, 0x12, 0x18, 0x7A

_ALIGNMENT = 16
_LARGEST_SIZE = (1 << 63) - 1  # beyond it a size is negative
_LARGEST_VARINT_BYTES = 10


class Handle:
    """Names a tensor that a session keeps on the server, as an argument. donated: the run may take its memory."""

    __slots__ = ("name", "donated")

    def __init__(self, name, donated=False):
        self.name, self.donated = name, donated


class Shared:
    """Stands for an array in a region of shared memory, as an argument."""

    __slots__ = ("region", "offset", "shape", "dtype")

    def __init__(self, region, offset, shape, dtype):
        self.region, self.offset, self.shape, self.dtype = region, offset, shape, dtype


def varint(value):
    """A number that is not negative, in protobuf's base-128 form."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def contiguous(array, dtype):
    """`array` as C-contiguous little-endian memory of `dtype`: itself where it is that already, else one copy."""
    return np.asarray(array, dtype=dtype.numpy, order="C")


def encode_execute_request(
    arguments,
    *,
    fingerprint="",
    graph=b"",
    options=b"",
    results=(),
    session="",
    priority=0,
    profile=False,
    request_id=0,
):
    """Bytes of a contract.ExecuteRequest.

    arguments: pairs (array, DType) of C-contiguous arrays, or Handles, or Shareds. graph, options and each of `results` are
    serialized messages. Each array is copied once, into the result.
    """
    pieces = []
    if request_id:
        pieces += [b"\x08", varint(request_id)]
    if fingerprint:
        _append(pieces, _FINGERPRINT, fingerprint.encode())
    else:
        _append(pieces, _GRAPH, graph)
    if options:
        _append(pieces, _OPTIONS, options)
    for argument in arguments:
        _append_argument(pieces, argument)
    for result in results:
        _append(pieces, _RESULTS, result)
    if session:
        _append(pieces, _SESSION, session.encode())
    if priority:
        pieces += [bytes([_PRIORITY]), varint(priority & 0xFFFFFFFFFFFFFFFF)]
    if profile:
        pieces.append(bytes([_PROFILE, 1]))
    return b"".join(pieces)


def _append(pieces, tag, payload):
    pieces += [bytes([tag]), varint(len(payload)), payload]


def _append_argument(pieces, argument):
    if isinstance(argument, Handle):
        name = argument.name.encode()
        field = bytes([_ARGUMENT_DONATED if argument.donated else _ARGUMENT_HANDLE]) + varint(len(name)) + name
        _append(pieces, _ARGUMENTS, field)
        return
    if isinstance(argument, Shared):
        region = argument.region.encode()
        field = tensor_header(argument.shape, argument.dtype) + bytes([_SHARED_REGION]) + varint(len(region)) + region
        if argument.offset:
            field += bytes([_SHARED_OFFSET]) + varint(argument.offset)
        _append(pieces, _ARGUMENTS, bytes([_ARGUMENT_SHARED]) + varint(len(field)) + field)
        return
    array, dtype = argument
    header = tensor_header(array.shape, dtype)
    if array.nbytes:
        header += bytes([_TENSOR_DATA]) + varint(array.nbytes)
    tensor_length = len(header) + array.nbytes
    prefix = bytes([_ARGUMENT_TENSOR]) + varint(tensor_length)
    pieces += [bytes([_ARGUMENTS]), varint(len(prefix) + tensor_length), prefix, header]
    if array.nbytes:
        pieces.append(array.reshape(-1).view(np.uint8).data)


def tensor_header(shape, dtype):
    """A row-major contract.Tensor's bytes up to its data."""
    header = bytes([_TENSOR_DTYPE]) + varint(dtype.wire)
    if shape:
        sizes = b"".join(map(varint, shape))
        header += bytes([_TENSOR_SHAPE]) + varint(len(sizes)) + sizes
    return header + bytes([_TENSOR_ORDER]) + varint(contract.ROW_MAJOR)


class MalformedResponse(ValueError):
    """Bytes that are no ExecuteResponse."""


class Payload:
    """One tensor of a response. `array`, None without data, views the response's bytes from `offset` on; offset is
    None for one in shared memory."""

    __slots__ = ("dtype", "shape", "array", "offset")

    def __init__(self, dtype, shape, array, offset):
        self.dtype, self.shape, self.array, self.offset = dtype, shape, array, offset


def request_id_of(data):
    """The id of the request that an ExecuteResponse answers. Raises MalformedResponse."""
    return next((value for number, value in fields(data, 0, len(data)) if number == 1), 0)


def decode_execute_response(data, spaces=()):
    """(payloads, stats, error): a list of Payloads (None for a result without tensor), a contract.ExecutionStats, and a
    contract.Error's bytes or None. spaces: by result, the Block that its data may be in, or None. Raises
    MalformedResponse."""
    payloads, stats, error = [], b"", None
    for number, value in fields(data, 0, len(data)):
        if isinstance(value, int):
            continue
        if number == 2:
            space = spaces[len(payloads)] if len(payloads) < len(spaces) else None
            payloads.append(_decode_result(data, *value, space))
        elif number == 3:
            stats = data[value[0] : value[1]]
        elif number == 4:
            error = data[value[0] : value[1]]
    try:
        return payloads, contract.ExecutionStats.FromString(stats), error
    except Exception as failure:
        raise MalformedResponse(f"unreadable statistics: {failure}") from None


def _decode_result(data, begin, end, space):
    tensor = shared = None
    for number, value in fields(data, begin, end):
        if isinstance(value, int):
            continue
        if number == 1:
            tensor = value
        elif number == 3:
            shared = value
    if shared and space is None:
        _raise("a result in shared memory that was not asked for")
    return tensor and _decode_tensor(data, *tensor, space if shared else None)


def _decode_tensor(data, begin, end, space):
    dtype_number, shape, order, payload = 0, [], 0, (end, end)
    for number, value in fields(data, begin, end):
        if number == 1:
            dtype_number = value
        elif number == 2:
            shape += [value] if isinstance(value, int) else _packed(data, *value)
        elif number == 3:
            order = value
        elif number == 15:
            payload = value
    try:
        return _payload(data, dtypes.from_wire(dtype_number), shape, order, payload, space)
    except ValueError as failure:  # of a dtype that is none, or a shape that NumPy has no array for
        raise MalformedResponse(str(failure)) from None


def _payload(data, dtype, shape, order, payload, space):
    count = 1
    for size in shape:
        if size > _LARGEST_SIZE:
            _raise(f"a size of {size}")
        count *= size
    if space is not None:
        if count * dtype.itemsize > space.size:
            _raise(f"{dtype}{tuple(shape)} in {space.size} bytes of shared memory")
        array = space.array(dtype.numpy, count).reshape(shape, order="C" if order == contract.ROW_MAJOR else "F")
        array.flags.writeable = False
        return Payload(dtype, array.shape, array, None)
    length = payload[1] - payload[0]
    if length != count * dtype.itemsize:
        if length:
            _raise(f"{length} bytes of data for {dtype}{tuple(shape)}")
        return Payload(dtype, tuple(shape), None, payload[1])
    flat = np.frombuffer(data, dtype.numpy, count, payload[0]) if count else np.empty(0, dtype.numpy)
    array = flat.reshape(shape) if order == contract.ROW_MAJOR else flat.reshape(shape, order="F")
    return Payload(dtype, array.shape, array, payload[0])


def _packed(data, begin, end):
    values, position = [], begin
    while position < end:
        value, position = _read_varint(data, position, end)
        values.append(value)
    return values


def fields(data, begin, end):
    """(number, value) of each field: an int, or (begin, end) of a length-delimited one."""
    position = begin
    while position < end:
        tag, position = _read_varint(data, position, end)
        kind = tag & 7
        if kind == 0:
            value, position = _read_varint(data, position, end)
        elif kind == 2:
            length, position = _read_varint(data, position, end)
            value = (position, position + length)
            position += length
        elif kind in (1, 5):
            value = (position, position + (8 if kind == 1 else 4))
            position = value[1]
        else:
            _raise(f"wire type {kind}")
        if position > end:
            _raise("a field reaches past the end of its message")
        yield tag >> 3, value


def _read_varint(data, position, end):
    value = shift = 0
    while position < end and shift < 64:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    return _raise("a broken varint")


def _raise(message):
    raise MalformedResponse(message)


class ResponseAlignment:
    """Chooses request ids so that the first result's data arrive aligned.

    A response starts with the request's id, whose length as a varint the client may choose, from 1 to 10 bytes. NumPy
    computes slowly on unaligned memory; shifting the whole response by a few bytes costs nothing. Learns from the
    previous response of the same program; a program whose results change their sizes is wrong now and then, and
    `aligned` copies. Its number is replaced whole, so that threads may share an object.
    """

    def __init__(self):
        self._id_bytes = 1
        self.result_bytes = ()  # of the previous response

    def request_id(self):
        # The least id whose varint has that many bytes.
        return 1 if self._id_bytes == 1 else 1 << 7 * (self._id_bytes - 1)

    def learn(self, payloads, request_id):
        self.result_bytes = tuple(0 if one is None or one.array is None else one.array.nbytes for one in payloads)
        if not payloads or payloads[0] is None or payloads[0].array is None or payloads[0].offset is None:
            return
        used = len(varint(request_id))
        missing = -payloads[0].offset % _ALIGNMENT
        for step in (missing, missing - 8, missing - 4, missing - 12):  # 8 or 4 bytes do where 16 are out of reach
            if 1 <= used + step <= _LARGEST_VARINT_BYTES:
                self._id_bytes = used + step
                return


def aligned(array):
    """`array`, or a copy of it where its memory is not aligned for its type. Not writable either way."""
    if array.flags.aligned:
        return array
    copy = array.copy(order="K")
    copy.flags.writeable = False
    return copy
