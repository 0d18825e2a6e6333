"""Whole tensors to a session and back through shared memory, by one call; what cannot go that way goes in messages."""

import math

import numpy as np

from tensord import contract, errors
from tensord.calls import transfer
from tensord.calls.answers import read
from tensord.calls.attempts import is_broken
from tensord.calls.shared_memory import SHARED_FROM, SharedCall


def upload(call, memory, header, data, deadline):
    """(done, was_sent): without `done` the tensor is to go in messages, and was_sent says that the server may have it all
    the same. memory: a SharedMemory; call, header and data as in resumed.upload."""
    if len(data) < SHARED_FROM:
        return False, False
    shared = SharedCall(memory, (), deadline.half())
    place = shared.place_of(np.frombuffer(data, np.uint8))
    if place is None:
        return False, False
    own = contract.PutTensorRequest(header=header).header
    own.shared.region, own.shared.offset, own.shared.byte_count = *place, len(data)
    try:
        answer = call(iter(transfer.PutMessages(own, b"", 0, 0)), deadline.left())
    except BaseException as failure:
        shared.forget()
        if not _is_for_messages(failure, memory):
            raise
        return False, is_broken(failure)
    arrived = read(contract.PutTensorResponse, answer).byte_count
    if arrived != len(data):
        raise errors.DataLoss(f"the server has {arrived} of {len(data)} bytes in shared memory")
    return True, False


def download(call, memory, request, deadline, dtype, shape):
    """The array of this dtype and shape, which lies in shared memory; None where it is to come in messages. call and
    request as in resumed.download."""
    nbytes = dtype.itemsize * math.prod(shape)
    if nbytes < SHARED_FROM:
        return None
    shared = SharedCall(memory, (nbytes,), deadline.half())
    space = shared.space_of(0)
    if space is None:
        return None
    own = contract.GetTensorRequest.FromString(request.SerializeToString())
    own.shared.CopyFrom(space)
    gathering = transfer.Gathering(dtype, shape, shared.spaces[0])
    try:
        call(own.SerializeToString(), deadline.left(), gathering.add)
    except BaseException as failure:
        shared.forget()
        if not _is_for_messages(failure, memory):
            raise
        return None
    return gathering.take()


def _is_for_messages(failure, memory):
    """Tell whether a call that failed in this way leaves the tensor to messages."""
    if not isinstance(failure, errors.Error):
        return isinstance(failure, (transfer.WrongChecksum, transfer.EndedEarly))
    if failure.reason == "REGION_UNKNOWN":
        memory.lost = True
    # Another server, perhaps an older one, has taken the place of the one that offered it; or the tensor has grown.
    return failure.reason in ("REGION_UNKNOWN", "UNSUPPORTED_REQUEST", "REGION_RANGE") or is_broken(failure)
