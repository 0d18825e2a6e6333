"""Whether anybody is where a client connects to."""

import socket

_PROBE_SECONDS = 0.25


def nobody_listens(target):
    """Whether the system says at once that no server is at a target, "unix:/path" or "host:port". False where it does not
    know, and for other targets of gRPC's."""
    try:
        if target.startswith("unix:"):
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(_PROBE_SECONDS)
                probe.connect(target[len("unix:") :])
        else:
            host, _, port = target.rpartition(":")
            if not host or "/" in host or "," in host or not port.isdigit():
                return False
            socket.create_connection((host.strip("[]"), int(port)), _PROBE_SECONDS).close()
    except (FileNotFoundError, ConnectionRefusedError, socket.gaierror):
        return True
    except (OSError, OverflowError, AttributeError):  # AttributeError: a system without sockets of files
        return False
    return False
