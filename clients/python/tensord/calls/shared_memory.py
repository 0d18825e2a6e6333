"""Memory that a server on this host shares with this process, so that large arrays are not sent."""

import array as numbers
import bisect
import fcntl
import math
import mmap
import os
import select
import socket
import struct
import threading
import time

import numpy as np

from tensord import contract, dtypes, errors
from tensord.arguments.numpy_arrays import numpy_array
from tensord.calls import wire
from tensord.calls.answers import read

# Below it a message is as fast.
SHARED_FROM = 64 << 10
# Beyond it, in seconds, nobody waits for the server's answer, whatever the deadline. A region of many GiB, whose pages the
# server takes first, is there by then.
MOST_WAIT = 10.0
# Free blocks beyond it are given back to the server.
_MOST_FREE_BYTES = 256 << 20
_ALIGNMENT = 64
_MOST_REPLY_BYTES = 65536


class SharedMemory:
    """Blocks of memory that the server reads and writes in place; Client.shared_memory is one. Thread-safe.

        x = client.shared_memory.empty((1024, 1024), "float32")
        x[...] = ...
        y = program(x)         # nothing large is sent; y lies in shared memory too

    While a call goes on its arguments must not change: what it computes is undefined otherwise. An array keeps its
    block, which is used again when the last view of it is gone, and the connection that it came by.

    No wait for the server is without an end: one that is over leaves an answer that is still to come, and until it has
    come all other requests are refused at once, so that a server that is stuck costs one wait.
    """

    def __init__(self, path, authorization=""):
        self._authorization = authorization
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # A connection waits where too many others do already.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(MOST_WAIT), 0))
        try:
            self._socket.connect(path)
        except OSError:
            self._socket.close()
            raise
        self._asking = threading.Lock()
        self._lock = threading.RLock()  # a block may be collected while its thread holds it
        self._addresses, self._used = [], {}  # of blocks in use: sorted, and what is there
        self._free, self._free_bytes = {}, 0  # by size
        self._unwanted = []  # regions to be freed
        self._owes = False  # while self._asking is held: an answer for which nobody waits any more is to come
        self.lost = False

    def __del__(self):
        if hasattr(self, "_socket"):
            self._socket.close()

    def empty(self, shape, dtype="float64", *, timeout=None):
        """An array to be filled, whose content is any. Raises td.Error where the server gives no memory within
        `timeout` seconds."""
        dtype = dtypes.as_dtype(dtype)
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        count = 1
        for size in shape:
            count *= size
        return self.block(count * dtype.itemsize, timeout).array(dtype.numpy, count).reshape(shape)

    def copy(self, value):
        """A copy of an array in shared memory."""
        value = numpy_array(value)
        array = self.empty(value.shape, value.dtype)
        array[...] = value
        return array

    def place_of(self, array):
        """(region, offset) of a C-contiguous array that lies in shared memory, aligned; None for any other."""
        address = array.__array_interface__["data"][0]
        with self._lock:
            index = bisect.bisect_right(self._addresses, address) - 1
            if index < 0 or self.lost:
                return None
            begin = self._addresses[index]
            region, size = self._used[begin]
        offset = address - begin
        if offset % _ALIGNMENT or offset + array.nbytes > size:
            return None
        return region, offset

    def block(self, nbytes, timeout=None):
        """At least that many bytes."""
        size = _rounded(nbytes)
        with self._lock:
            if self.lost:
                raise errors.Unavailable("no shared memory: the server was started again")
            free = self._free.get(size)
            if free:
                region, memory, address = free.pop()
                self._free_bytes -= size
                return self._use(region, memory, address, size)
        region, memory = self._request(size, _end(timeout))
        # The view ends here, so that the memory can be unmapped later.
        address = np.frombuffer(memory, np.uint8).__array_interface__["data"][0]
        with self._lock:
            return self._use(region, memory, address, size)

    def _use(self, region, memory, address, size):
        bisect.insort(self._addresses, address)
        self._used[address] = (region, size)
        return Block(self, region, memory, address, size)

    def has_gone(self):
        """Tell whether the server that made it has closed the connection, and with it the regions; it is lost then."""
        if not self.lost:
            hung_up = select.poll()
            hung_up.register(self._socket, 0)
            if hung_up.poll(0):
                self.lost = True
        return self.lost

    def give_back(self, block):
        """Give back a block that nobody has any more."""
        with self._lock:
            del self._addresses[bisect.bisect_left(self._addresses, block.address)]
            del self._used[block.address]
            if not block.forgotten and not self.lost and self._free_bytes + block.size <= _MOST_FREE_BYTES:
                self._free.setdefault(block.size, []).append((block.region, block.memory, block.address))
                self._free_bytes += block.size
                return
        self._unwanted.append(block.region)
        self._free_unwanted()

    def _free_unwanted(self):
        # A block may be collected in the middle of a request of its own thread, which frees it afterwards.
        while self._unwanted and self._asking.acquire(blocking=False):
            try:
                if not self._is_settled():
                    return
                free = contract.FreeRegion(region=self._unwanted.pop())
                self._exchange(contract.SharedMemoryRequest(free=free), _end(None))
            except (IndexError, errors.Error):
                pass  # another thread was faster, or the server is gone, and the region with it
            finally:
                self._asking.release()

    def _request(self, size, end):
        request = contract.SharedMemoryRequest(
            authorization=self._authorization, allocate=contract.AllocateRegion(byte_count=size)
        )
        if not self._asking.acquire(timeout=_left(end)):
            raise self._late()
        try:
            if not self._is_settled():
                raise errors.Unavailable(f"no shared memory at {self._path}: the server still owes an answer")
            reply, descriptors = self._exchange(request, end)
        finally:
            self._asking.release()
        self._free_unwanted()
        try:
            if len(descriptors) != 1 or reply.byte_count < size:
                raise errors.DataLoss("the server's answer has no shared memory")
            _check_size(descriptors[0], size)
            return reply.region, mmap.mmap(descriptors[0], size)
        except OSError as failure:
            self._unwanted.append(reply.region)
            raise errors.ResourceExhausted(f"no shared memory: {failure}") from None
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _is_settled(self):
        """Takes the answer that is owed, if it has come; while self._asking is held. False: it has not."""
        if self._owes and self._has_come(time.monotonic()):
            self._owes = False
            try:
                data, descriptors = _receive(self._socket)
            except OSError:
                return True  # the next request will say so
            for descriptor in descriptors:
                os.close(descriptor)
            if descriptors:
                self._unwanted.append(read(contract.SharedMemoryReply, data).region)
        return not self._owes

    def _has_come(self, end):
        waiting = select.poll()
        waiting.register(self._socket, select.POLLIN)
        return bool(waiting.poll(math.ceil(1000 * _left(end))))

    def _late(self):
        return errors.DeadlineExceeded(
            f"no shared memory: the server did not answer at {self._path} in time; send the array in a message, or see "
            "what holds it up"
        )

    def _exchange(self, request, end):
        """The answer to a request, and its descriptors; while self._asking is held."""
        try:
            try:
                self._socket.sendall(request.SerializeToString())
            except BrokenPipeError:
                pass  # who hung up may have said why
            self._owes = not self._has_come(end)
            data, descriptors = (b"", []) if self._owes else _receive(self._socket)
        except OSError as failure:
            raise errors.Unavailable(f"no shared memory: {failure}") from None
        except BaseException:
            # An answer that nobody read would be taken for that of the next request.
            self.lost = True
            self._socket.close()
            raise
        if self._owes:
            raise self._late()
        if not data:
            raise errors.Unavailable("no shared memory: the server has gone")
        try:
            reply = read(contract.SharedMemoryReply, data)
            if reply.HasField("error"):
                raise errors.from_wire(reply.error)
        except errors.Error:
            for descriptor in descriptors:
                os.close(descriptor)
            raise
        return reply, descriptors


class Block:
    """Memory of one region; arrays that view it keep it. Goes back to its SharedMemory by itself."""

    __slots__ = ("owner", "region", "memory", "address", "size", "forgotten", "__weakref__")

    def __init__(self, owner, region, memory, address, size):
        self.owner, self.region, self.memory, self.address, self.size = owner, region, memory, address, size
        self.forgotten = False  # a call that was given up may still write there: not to be used again

    def __del__(self):
        self.owner.give_back(self)

    @property
    def __array_interface__(self):
        return {"data": (self.address, False), "shape": (self.size,), "typestr": "|u1", "version": 3}

    def array(self, dtype, count):
        """The first elements, as a writable array."""
        return np.asarray(self)[: count * np.dtype(dtype).itemsize].view(dtype)


class SharedCall:
    """The part of one call that goes through shared memory: large arguments, copied there unless they lie there, and
    places for results that are expected to be large. If no memory is to be had within `timeout` seconds they go in
    messages."""

    def __init__(self, memory, result_bytes, timeout=None):
        self._memory, self._copies = memory, []
        self._arrays = []  # those that are read where they lie, and must stay there
        self._end = _end(timeout)
        self.spaces = [self._block(size) if size >= SHARED_FROM else None for size in result_bytes]

    def argument(self, typed):
        """A pair (array, DType), or a wire.Shared that stands for it."""
        if isinstance(typed, wire.Handle) or typed[0].nbytes < SHARED_FROM:
            return typed
        array, dtype = typed
        place = self.place_of(array)
        self._arrays.append(array)
        return typed if place is None else wire.Shared(*place, array.shape, dtype)

    def place_of(self, array):
        """(region, offset) of a C-contiguous array, or of a copy of it; None where there is no memory to be had."""
        place = self._memory.place_of(array)
        if place is None:
            block = self._block(array.nbytes)
            if block is None:
                return None
            block.array(array.dtype, array.size)[...] = array.reshape(-1)
            self._copies.append(block)
            place = block.region, 0
        return place

    def space_of(self, index):
        """The contract.SharedSpace of a result, or None."""
        block = self.spaces[index] if index < len(self.spaces) else None
        return block and contract.SharedSpace(region=block.region, byte_count=block.size)

    def failed(self, reason):
        """With that reason of the server's, or "": a run may still go on, and nothing of the call's memory is used for
        anything else. Whether it is right to say the same in messages: nothing has run."""
        self.forget()
        is_unknown = reason == "REGION_UNKNOWN"
        if is_unknown:
            self._memory.lost = True  # another server
        return is_unknown

    def forget(self):
        """A run may still go on: nothing of its memory is used for anything else."""
        for block in self._copies + self.spaces:
            if block is not None:
                block.forgotten = True

    def _block(self, nbytes):
        try:
            return self._memory.block(nbytes, _left(self._end))
        except errors.Error:
            return None


def _end(timeout):
    """When a wait that begins now is over."""
    return time.monotonic() + (MOST_WAIT if timeout is None else min(timeout, MOST_WAIT))


def _left(end):
    return max(end - time.monotonic(), 0.0)


def _rounded(nbytes):
    """Four sizes a power of two, so that blocks fit again."""
    step = 4096
    while step * 8 < nbytes:
        step *= 2
    return max(1, -(-nbytes // step)) * step


def _check_size(descriptor, size):
    """Raises DataLoss where a region's end is not there, or may go: who wrote to it would die by SIGBUS."""
    try:
        is_fixed = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK
    except OSError:  # a file that knows no seals
        is_fixed = False
    if not is_fixed or os.fstat(descriptor).st_size < size:
        raise errors.DataLoss(f"the server's region does not have {size} bytes, or may lose them")


def _receive(connection):
    """One packet, and the descriptors that came with it."""
    descriptors = numbers.array("i")
    data, ancillary, _, _ = connection.recvmsg(_MOST_REPLY_BYTES, socket.CMSG_LEN(4 * descriptors.itemsize))
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(content[: len(content) - len(content) % descriptors.itemsize])
    return data, list(descriptors)
