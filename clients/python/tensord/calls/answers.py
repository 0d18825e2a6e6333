"""Messages of a server, read and checked: it may send what is none, or not what was asked for."""

from google.protobuf.message import DecodeError

from tensord import dims, errors


def read(message_class, data):
    """The message of these bytes. Raises DataLoss where they are none."""
    try:
        return message_class.FromString(data)
    except DecodeError as failure:
        raise errors.DataLoss(f"the server sent an unreadable answer: {failure}") from None


def read_name(name, owner):
    """The name that a server gave something, by which later calls know it. Raises DataLoss where it gave none."""
    if not name:
        raise errors.DataLoss(f"the server sent {owner} without its name")
    return name


def check_results(payloads, specs):
    """Raises DataLoss where the results of a run, as wire.Payloads, are not those of its program, given as Specs: their
    number, dtypes, ranks and the sizes that no symbol decides."""
    if len(payloads) != len(specs):
        raise errors.DataLoss(f"the server sent {len(payloads)} results, the program has {len(specs)}")
    for payload, spec in zip(payloads, specs):
        if payload is not None and not _is_of_type(payload, spec):
            raise errors.DataLoss(f"the server sent a result of {payload.dtype}{payload.shape}, the program has {spec}")


def _is_of_type(payload, spec):
    if payload.dtype is not spec.dtype or len(payload.shape) != len(spec.shape):
        return False
    return all(size == wanted for size, wanted in zip(payload.shape, spec.shape) if dims.is_static(wanted))
