"""Messages of PutTensor and GetTensor: tensors of any size, in chunks with checksums."""

import numpy as np

from tensord import contract, dtypes, wire
from tensord.crc32c import crc32c

CHUNK_BYTES = 1 << 20
_CHUNK, _OFFSET, _CRC32C, _DATA = 0x7A, 0x08, 0x15, 0x7A  # tags


def put_messages(session, handle, array, dtype, device=""):
    """Bytes of the contract.PutTensorRequests that upload a C-contiguous array, one after the other."""
    first = contract.PutTensorRequest()
    header = first.header
    header.session, header.handle, header.device = session, handle, device
    header.dtype, header.order = dtype.wire, contract.ROW_MAJOR
    header.shape.extend(array.shape)
    yield first.SerializeToString()
    if not array.nbytes:
        return
    data = array.reshape(-1).view(np.uint8).data
    for offset in range(0, len(data), CHUNK_BYTES):
        yield _chunk(offset, data[offset : offset + CHUNK_BYTES])


def _chunk(offset, data):
    fields = bytes([_OFFSET]) + wire.varint(offset) + bytes([_CRC32C]) + crc32c(data).to_bytes(4, "little")
    fields += bytes([_DATA]) + wire.varint(len(data))
    return b"".join([bytes([_CHUNK]), wire.varint(len(fields) + len(data)), fields, data])


class BrokenTransfer(Exception):
    """Messages that are no download, or whose checksum does not match."""


def array_of(messages):
    """The array that the contract.GetTensorResponses of a download hold, given as bytes."""
    array = flat = None
    arrived = 0
    for message in messages:
        if array is None:
            array, flat = _empty(contract.GetTensorResponse.FromString(message))
            continue
        offset, checksum, data = _read_chunk(message)
        if offset != arrived or len(data) > flat.size - arrived:
            raise BrokenTransfer(f"a chunk of {len(data)} bytes at {offset}, after {arrived} of {flat.size}")
        if crc32c(data) != checksum:
            raise BrokenTransfer(f"the chunk at {offset} is not what its checksum says")
        flat[arrived : arrived + len(data)] = np.frombuffer(data, np.uint8)
        arrived += len(data)
    if array is None or arrived != flat.size:
        raise BrokenTransfer(f"the download ended after {arrived} bytes")
    return array


def _empty(message):
    if not message.HasField("header"):
        raise BrokenTransfer("the download begins without a header")
    header = message.header
    order = "C" if header.order == contract.ROW_MAJOR else "F"
    array = np.empty(tuple(header.shape), dtypes.from_wire(header.dtype).numpy, order=order)
    return array, array.reshape(-1, order="A").view(np.uint8)


def _read_chunk(message):
    offset, checksum, data = 0, 0, memoryview(b"")
    view = memoryview(message)
    for number, value in wire.fields(message, 0, len(message)):
        if number != 15 or isinstance(value, int):
            continue
        for inner, content in wire.fields(message, *value):
            if inner == 1:
                offset = content
            elif inner == 2:
                checksum = int.from_bytes(view[slice(*content)], "little")
            elif inner == 15:
                data = view[slice(*content)]
    return offset, checksum, data
