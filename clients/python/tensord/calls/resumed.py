"""Tensors to a session and back by as many calls as it takes: one that breaks off is followed by another, which goes on."""

import random

import numpy as np

from tensord import contract, dtypes, errors
from tensord.calls import transfer
from tensord.calls.answers import read
from tensord.calls.attempts import Attempts, is_broken
from tensord.calls.deadline import Deadline

_CLEAN_UP = 1.0
# Refusals that leave nothing of the upload behind.
_AT_THE_HEADER = ("SESSION_UNKNOWN", "HANDLE_DUPLICATE", "OUT_OF_MEMORY")


def upload(call, fetch, header, data, timeout, was_sent=False):
    """Uploads bytes under a handle. call(messages, timeout): a call of PutTensor; fetch: of GetTensor, as in
    download. was_sent: by a call before, all of it, whose answer never came."""
    header.resumable, header.upload_id = True, random.randrange(1, 1 << 64)  # what another upload left is not gone on with
    attempts = Attempts(Deadline(timeout))
    begin, asks = 0, False
    while True:
        messages = transfer.PutMessages(header, data, begin, begin if asks else len(data))
        try:
            arrived = read(contract.PutTensorResponse, call(iter(messages), attempts.left())).byte_count
        except errors.Error as failure:
            if was_sent and failure.reason == "HANDLE_DUPLICATE":
                if _is_there(fetch, header, data, attempts.left()):
                    return  # only the answer was lost
                raise
            # The server may not have noticed yet that the call before is over.
            goes_on = is_broken(failure) or failure.reason == "CHECKSUM_MISMATCH"
            if not goes_on and not ((asks or was_sent) and failure.reason == "HANDLE_INCOMPLETE"):
                _clean_up(call, header, failure)
                raise
            was_sent = was_sent or (not asks and messages.are_sent)
            if not attempts.pause():
                raise
            asks = True
            continue
        if arrived == len(data):
            return
        if not asks or arrived > len(data):
            raise errors.DataLoss(f"the server has {arrived} of {len(data)} bytes that were sent")
        if arrived > begin:
            attempts.progress()
        begin, asks = arrived, False


def _is_there(fetch, header, data, timeout):
    """Tell whether the tensor under the handle is this one; if not, another was there all the time."""
    request = contract.GetTensorRequest(session=header.session, handle=header.handle, order=header.order)
    try:
        there = download(fetch, request, timeout, dtypes.from_wire(header.dtype), tuple(header.shape))
    except transfer.OtherTensor:
        return False
    return np.array_equal(there.reshape(-1).view(np.uint8), np.frombuffer(data, np.uint8))


def _clean_up(call, header, failure):
    """Takes away what arrived of an upload that ended in the middle: one that is not resumable and stops early does."""
    if failure.reason in _AT_THE_HEADER:
        return
    header.resumable = False
    attempts = Attempts(Deadline(_CLEAN_UP))
    while True:
        try:
            call(iter(transfer.PutMessages(header, b"", 0, 0)), attempts.left())
        except errors.Error as answer:
            # The server may not have noticed yet that the upload is over.
            if answer.reason == "HANDLE_INCOMPLETE" and attempts.pause():
                continue
        return


def download(call, request, timeout, dtype=None, shape=None):
    """The array that a contract.GetTensorRequest asks for, of this dtype and shape where they are known.
    call(request, timeout, read): a call of GetTensor."""
    gathering = transfer.Gathering(dtype, shape)
    attempts = Attempts(Deadline(timeout))
    while True:
        begin = request.offset = gathering.arrived
        try:
            call(request.SerializeToString(), attempts.left(), gathering.add)
            return gathering.take()
        except (errors.Unavailable, transfer.WrongChecksum, transfer.EndedEarly) as failure:
            if isinstance(failure, errors.Error) and not is_broken(failure):
                raise
            if gathering.arrived > begin:
                attempts.progress()
            if not attempts.pause():
                raise
