"""Messages of a server, read: it may send what is none."""

from google.protobuf.message import DecodeError

from tensord import errors


def read(message_class, data):
    """The message of these bytes. Raises DataLoss where they are none."""
    try:
        return message_class.FromString(data)
    except DecodeError as failure:
        raise errors.DataLoss(f"the server sent an unreadable answer: {failure}") from None
