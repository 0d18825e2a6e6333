"""Whom a client trusts, and what it shows the server to be let in."""

import os
import re

import grpc

# "127.0.0.1:4711", and no name that begins so.
_LOCAL = re.compile(r"(\w+:///)?(unix:|unix-abstract:|localhost:|\[::1\]:|127(\.\d+){3}:)")


class Access:
    """TLS, a certificate of the client's own and a token. A value.

    ca_file: who signs the server's certificate, in PEM; tls=True without it: the authorities that gRPC brings along.
    certificate_file and key_file: what the client shows in TLS. token, or token_file, which holds it alone: what it sends
    with each call. Raises ValueError for half of a pair, OSError for a file that cannot be read.
    """

    def __init__(self, *, tls=False, ca_file=None, certificate_file=None, key_file=None, token=None, token_file=None):
        if bool(certificate_file) != bool(key_file):
            raise ValueError("a client's certificate and its key go together: one of them is missing")
        if token and token_file:
            raise ValueError("a token and the file of a token are given: which is it?")
        self._ca = _read(ca_file)
        self._certificate = _read(certificate_file)
        self._key = _read(key_file)
        self._tls = bool(tls or ca_file or certificate_file)
        self._token = (token or (_read(token_file) or b"").decode()).strip()
        if token_file and not self._token:
            raise ValueError(f"{token_file} holds no token")

    @classmethod
    def from_environment(cls):
        """From TENSORD_TLS ("1"), TENSORD_CA_FILE, TENSORD_CERTIFICATE_FILE, TENSORD_KEY_FILE, TENSORD_TOKEN and
        TENSORD_TOKEN_FILE, which tensordctl reads too."""
        names = ("ca_file", "certificate_file", "key_file", "token", "token_file")
        values = {name: os.environ.get(f"TENSORD_{name.upper()}") or None for name in names}
        return cls(tls=os.environ.get("TENSORD_TLS") == "1", **values)

    def __repr__(self):
        return f"Access(tls={self._tls}, token={'…' if self._token else None})"

    def credentials(self):
        """The grpc.ChannelCredentials; None for plain text."""
        if not self._tls:
            return None
        return grpc.ssl_channel_credentials(self._ca, self._key, self._certificate)

    def metadata(self, target, encrypted):
        """The metadata of each call. ValueError if a token would travel to another machine in plain text."""
        if not self._token:
            return ()
        if not encrypted and not is_local(target):
            raise ValueError(f"the token would travel in plain text to {target}; use TLS, or put it into the metadata")
        return (("authorization", f"Bearer {self._token}"),)


def is_local(target):
    """Tell whether bytes sent to the target stay on this machine."""
    return _LOCAL.match(target) is not None


def _read(path):
    if not path:
        return None
    with open(path, "rb") as file:
        return file.read()
