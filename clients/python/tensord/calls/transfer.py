"""Messages of PutTensor and GetTensor: tensors of any size, in chunks with checksums."""

import math

import numpy as np

from tensord import contract, dtypes, errors
from tensord.calls import wire
from tensord.calls.answers import read
from tensord.calls.crc32c import crc32c

CHUNK_BYTES = 1 << 20
_CHUNK, _OFFSET, _CRC32C, _DATA = 0x7A, 0x08, 0x15, 0x7A  # tags


def put_header(session, handle, array, dtype, device=""):
    """The header of the upload of a C-contiguous array, and its bytes."""
    header = contract.PutTensorRequest().header
    header.session, header.handle, header.device = session, handle, device
    header.dtype, header.order = dtype.wire, contract.ROW_MAJOR
    header.shape.extend(array.shape)
    return header, array.reshape(-1).view(np.uint8).data if array.nbytes else b""


class PutMessages:
    """Bytes of the contract.PutTensorRequests that upload data[begin:end], one after the other; to be read once."""

    def __init__(self, header, data, begin, end):
        self.are_sent = False  # all of them were given to gRPC
        self._messages = self._make(contract.PutTensorRequest(header=header), data, begin, end)

    def __iter__(self):
        return self._messages

    def _make(self, first, data, begin, end):
        yield first.SerializeToString()
        for offset in range(begin, end, CHUNK_BYTES):
            yield _chunk(offset, data[offset : min(offset + CHUNK_BYTES, end)])
        self.are_sent = True


def _chunk(offset, data):
    fields = bytes([_OFFSET]) + wire.varint(offset) + bytes([_CRC32C]) + crc32c(data).to_bytes(4, "little")
    fields += bytes([_DATA]) + wire.varint(len(data))
    return b"".join([bytes([_CHUNK]), wire.varint(len(fields) + len(data)), fields, data])


class BrokenTransfer(Exception):
    """Messages that are no download, or whose checksum does not match."""


class WrongChecksum(BrokenTransfer):
    """A chunk came to harm on its way."""


class OtherTensor(BrokenTransfer):
    """A download of another dtype or shape than the tensor has."""


class EndedEarly(BrokenTransfer):
    """A call that ended well and without all of its answer: gRPC lets go of messages that nobody has read yet where the
    connection breaks behind them."""


class Gathering:
    """An array whose chunks come one after the other, in one download or in several that each go on."""

    def __init__(self, dtype=None, shape=None, space=None):
        """dtype and shape: those that it must have, None where any will do. space: the Block of shared memory that all
        of it may be in, instead of in chunks."""
        self._dtype, self._shape, self._space = dtype, shape, space
        self.arrived = 0  # bytes
        self.header = None  # of the contract.GetTensorResponse that came first
        self._first = self._array = self._flat = None

    def add(self, messages):
        """Takes the contract.GetTensorResponses of a download, given as bytes."""
        try:
            self._add(iter(messages))
        except ValueError as failure:  # of a header that NumPy has no array for, or of bytes that are no message
            raise BrokenTransfer(str(failure)) from None

    def _add(self, messages):
        first = next(messages, None)
        if first is None:
            raise EndedEarly("the download ended before it began")
        self._begin(first)
        for message in messages:
            offset, checksum, data = _read_chunk(message)
            if offset != self.arrived or len(data) > self._flat.size - self.arrived:
                text = f"a chunk of {len(data)} bytes at {offset}, after {self.arrived} of {self._flat.size}"
                raise BrokenTransfer(text)
            if not len(data):
                raise BrokenTransfer("a chunk without data")  # of which there may be any number
            if crc32c(data) != checksum:
                raise WrongChecksum(f"the chunk at {offset} is not what its checksum says")
            self._flat[self.arrived : self.arrived + len(data)] = np.frombuffer(data, np.uint8)
            self.arrived += len(data)

    def take(self):
        """The array, once it is there."""
        if self._array is None or self.arrived != self._flat.size:
            raise EndedEarly(f"the download ended after {self.arrived} bytes")
        return self._array

    def _begin(self, message):
        if self._array is None:
            response = read(contract.GetTensorResponse, message)
            is_there = response.header.HasField("shared")
            self._check_type(response.header)
            self._array, self._flat = _empty(response, self._space if is_there else None)
            self.header, self._first = response.header, message
            self.arrived = self._flat.size if is_there else 0
        elif message != self._first:
            raise BrokenTransfer("the tensor became another one while it was downloaded")

    def _check_type(self, header):
        """Before there is memory for it, which a header may claim any amount of."""
        if self._dtype is None:
            return
        dtype, shape = dtypes.from_wire(header.dtype), tuple(header.shape)
        if dtype is not self._dtype or shape != self._shape:
            raise OtherTensor(f"a download of {dtype}{shape}, the tensor is {self._dtype}{self._shape}")


def _empty(message, space):
    if not message.HasField("header"):
        raise BrokenTransfer("the download begins without a header")
    header = message.header
    order = "C" if header.order == contract.ROW_MAJOR else "F"
    dtype, shape = dtypes.from_wire(header.dtype).numpy, tuple(header.shape)
    if header.HasField("shared"):
        count = math.prod(shape)
        if space is None or count * dtype.itemsize > space.size:
            raise BrokenTransfer("a tensor in shared memory that was not asked for")
        array = space.array(dtype, count).reshape(shape, order=order)
    else:
        try:
            array = np.empty(shape, dtype, order=order)
        except MemoryError:
            size = math.prod(shape) * dtype.itemsize
            text = f"this process has no memory for the {size} bytes of a tensor; let a program take parts of it"
            raise errors.ResourceExhausted(text) from None
    return array, array.reshape(-1, order="A").view(np.uint8)


def _read_chunk(message):
    offset, checksum, data = 0, 0, memoryview(b"")
    view = memoryview(message)
    for number, value in wire.fields(message, 0, len(message)):
        if number != 15 or isinstance(value, int):
            continue
        for inner, content in wire.fields(message, *value):
            if isinstance(content, int) != (inner == 1):
                continue
            if inner == 1:
                offset = content
            elif inner == 2:
                checksum = int.from_bytes(view[slice(*content)], "little")
            elif inner == 15:
                data = view[slice(*content)]
    return offset, checksum, data
