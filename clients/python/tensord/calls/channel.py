"""gRPC's channel to a server, and where the server is."""

import os
import tempfile

import grpc

# For messages of many megabytes; gRPC's own frames are made for small ones.
_FRAME_BYTES = 1 << 20
_CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.http2.max_frame_size", _FRAME_BYTES),
    ("grpc.http2.lookahead_bytes", _FRAME_BYTES),
]


def default_target():
    """The address of a server that was started without --listen: a socket in the user's runtime folder.

    The environment variable TENSORD_TARGET, if set, names another one.
    """
    target = os.environ.get("TENSORD_TARGET")
    if target:
        return target
    runtime_folder = os.environ.get("XDG_RUNTIME_DIR")
    if not runtime_folder:
        runtime_folder = os.path.join(tempfile.gettempdir() if os.name == "nt" else "/tmp", f"tensord-{os.getuid()}")
    return f"unix:{runtime_folder}/tensord.sock"


def open_channel(target, credentials):
    """Opens a channel in plain text where credentials is None."""
    if credentials is None:
        return grpc.insecure_channel(target, options=_CHANNEL_OPTIONS)
    return grpc.secure_channel(target, credentials, options=_CHANNEL_OPTIONS)
