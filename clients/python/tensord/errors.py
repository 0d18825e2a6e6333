"""Exceptions: what the server refused, with the reason that programs can rely on."""

import re

import grpc
import numpy as np

from tensord import contract


class Error(Exception):
    """A call that failed.

    code is the gRPC code's name. The server's own refusals add `reason`, a stable id such as "SHAPE_MISMATCH"
    (docs/use/errors.md lists them; match on it, never on the text), `node` and `op` where one is at fault, and for limits
    `limit`, `limit_value`, `actual_value`. retry_after is in seconds. What the server did not say is "" or None.
    """

    code = "UNKNOWN"

    def __init__(
        self,
        message,
        *,
        code=None,
        reason="",
        node="",
        op="",
        limit="",
        limit_value=None,
        actual_value=None,
        retry_after=None,
    ):
        self.message = message
        self.code = code or type(self).code
        self.reason, self.node, self.op = reason, node, op
        self.limit, self.limit_value, self.actual_value = limit, limit_value, actual_value
        self.retry_after = retry_after
        super().__init__(message)

    def __str__(self):
        facts = [self.reason] if self.reason else []
        facts += [f"{name} {value}" for name, value in (("node", self.node), ("op", self.op)) if value]
        if self.limit:
            facts.append(f"limit {self.limit} = {self.limit_value}, asked for {self.actual_value}")
        if self.retry_after is not None:
            facts.append(f"retry after {self.retry_after:g} s")
        return f"{self.code}: {self.message}" + (f" [{'; '.join(facts)}]" if facts else "")


class InvalidArgument(Error, ValueError):
    """The graph or an argument is wrong, or a value is one that an operation cannot work on."""

    code = "INVALID_ARGUMENT"


class Unimplemented(Error, NotImplementedError):
    """The device or the server cannot run an operation."""

    code = "UNIMPLEMENTED"


class FailedPrecondition(Error):
    """The server does not know the program, session or handle."""

    code = "FAILED_PRECONDITION"


class LinAlgError(FailedPrecondition, np.linalg.LinAlgError):
    """A matrix has no such inverse or factorization, or an iteration for it did not converge."""


class NotMatrices(LinAlgError, ValueError):
    """The operands of linear algebra are no matrices, or not square ones; seen while tracing."""

    code = "INVALID_ARGUMENT"


class ResourceExhausted(Error):
    """A limit or a queue is full."""

    code = "RESOURCE_EXHAUSTED"


class Unavailable(Error, ConnectionError):
    """No server at the target, or it is draining, or the device is down."""

    code = "UNAVAILABLE"


class DeadlineExceeded(Error, TimeoutError):
    """The call's deadline passed; the server stopped its work."""

    code = "DEADLINE_EXCEEDED"


class Cancelled(Error):
    """The call was cancelled."""

    code = "CANCELLED"


class DataLoss(Error):
    """A checksum does not match, or an answer cannot be read."""

    code = "DATA_LOSS"


class NotFound(Error, LookupError):
    """The server has no such thing."""

    code = "NOT_FOUND"


class PermissionDenied(Error, PermissionError):
    """The caller may not do that."""

    code = "PERMISSION_DENIED"


class Unauthenticated(Error, PermissionError):
    """The caller's credentials are missing or wrong."""

    code = "UNAUTHENTICATED"


class Internal(Error):
    """The server broke one of its own rules: a bug."""

    code = "INTERNAL"


_BY_CODE = {
    kind.code: kind
    for kind in (
        InvalidArgument,
        Unimplemented,
        FailedPrecondition,
        ResourceExhausted,
        Unavailable,
        DeadlineExceeded,
        Cancelled,
        DataLoss,
        NotFound,
        PermissionDenied,
        Unauthenticated,
        Internal,
    )
}
# Refusals that have a class of their own.
_BY_REASON = dict.fromkeys(("MATRIX_SINGULAR", "MATRIX_NOT_POSITIVE_DEFINITE", "NO_CONVERGENCE"), LinAlgError)
# gRPC's words for an answer that is none of its own.
_HTTP_STATUS = re.compile(r"Received http2 header with status: (\d+)")
_PROXY_MEANS = {
    502: ": the server behind it broke the call off",
    503: ": no server behind it takes calls",
    504: ": the server behind it did not answer in the proxy's time",
}
_CODE_NAMES = {code.value[0]: code.name for code in grpc.StatusCode}


def make_error(code_name, message, detail=None):
    """The exception of a code, with the facts of a contract.ErrorDetail."""
    facts = {}
    if detail is not None:
        facts = {"reason": detail.reason, "node": detail.node, "op": detail.op, "limit": detail.limit}
        if detail.limit:
            facts.update(limit_value=detail.limit_value, actual_value=detail.actual_value)
        if detail.HasField("retry_after"):
            facts["retry_after"] = detail.retry_after.seconds + detail.retry_after.nanos * 1e-9
    kind = _BY_REASON.get(facts.get("reason")) or _BY_CODE.get(code_name, Error)
    return kind(message, code=code_name, **facts)


def from_wire(error):
    """The exception of a contract.Error, as a stream of responses carries it."""
    return make_error(
        _CODE_NAMES.get(error.code or 2, "UNKNOWN"), error.message, error.detail if error.HasField("detail") else None
    )


def from_rpc(rpc_error, target):
    """The exception of a failed call to `target`."""
    code = rpc_error.code().name
    message = rpc_error.details() or "the server gave no message"
    detail = _detail_of(rpc_error.trailing_metadata() or ())
    answered = _HTTP_STATUS.search(message)
    if answered and detail is None:
        status = int(answered[1])
        message = f"a proxy at {target} answered for a tensord server, with HTTP {status}{_PROXY_MEANS.get(status, '')}"
    elif code == "UNAVAILABLE" and detail is None:
        message = f"no answer from a tensord server at {target} ({message}); start one, or connect to another target"
    elif code == "RESOURCE_EXHAUSTED" and detail is None and "larger than max" in message:
        message += "; raise the receiver's limit on message sizes"
    return make_error(code, message, detail)


def _detail_of(trailing_metadata):
    for key, value in trailing_metadata:
        if key != "grpc-status-details-bin":
            continue
        try:
            for packed in contract.Status.FromString(value).details:
                if packed.type_url.endswith("/tensord.v1.ErrorDetail"):
                    return contract.ErrorDetail.FromString(packed.value)
        except Exception:  # a broken trailer must not hide the error that it belongs to
            return None
    return None
