"""The metadata by which a balancer sends calls that belong together to one server: docs/operate/balancing.md."""

import hashlib
import secrets

METADATA_KEY = "x-tensord-route"
_DIGITS = 32


def route_of_program(graph, options):
    """The key of all calls of one program: of a contract.Graph and its contract.CompileOptions."""
    digest = hashlib.sha256(graph.SerializeToString())
    digest.update(options.SerializeToString())
    return digest.hexdigest()[:_DIGITS]


def new_session_route():
    """A key that no other session has."""
    return "session-" + secrets.token_hex(_DIGITS // 2)
