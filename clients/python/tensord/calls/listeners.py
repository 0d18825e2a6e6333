"""A look whether anybody listens at the target of a client."""

import socket

_PROBE_SECONDS = 0.25


def why_nobody_listens(target):
    """The system's immediate error for a target, "unix:/path" or "host:port", at which no server can be. None if it
    does not know, and for other targets of gRPC's."""
    try:
        if target.startswith("unix:"):
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(_PROBE_SECONDS)
                probe.connect(target[len("unix:") :])
        else:
            host, _, port = target.rpartition(":")
            if not host or "/" in host or "," in host or not port.isdigit():
                return None
            socket.create_connection((host.strip("[]"), int(port)), _PROBE_SECONDS).close()
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError, socket.gaierror) as failure:
        return failure.strerror or str(failure)
    except (OSError, OverflowError, AttributeError):  # AttributeError: a system without sockets of files
        return None
    return None
