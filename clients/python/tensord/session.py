"""Tensors that stay on the server between calls."""

import itertools
import math

from tensord import contract, dtypes
from tensord.arguments.numpy_arrays import numpy_array
from tensord.calls import transfer, wire
from tensord.calls.answers import read_name
from tensord.calls.routing import new_session_route
from tensord.dims import is_static
from tensord.pipeline import Pipeline


class RemoteArray:
    """A tensor that a session keeps on the server; an argument of programs like a NumPy array, without being sent.

    Made by Session.put, by programs that are called with keep=… and by pipelines; it lives until it is deleted or
    donated, or until its session ends. fetch() brings its numbers here. A pipeline's may not be there yet: its own runs
    use it all the same, everything else waits for it, as long as a call may take: then it raises DeadlineExceeded.
    """

    __slots__ = ("session", "handle", "dtype", "_shape", "_gone", "_run")

    def __init__(self, session, handle, dtype, shape, run=None):
        self.session, self.handle, self.dtype, self._shape, self._gone = session, handle, dtype, shape, False
        self._run = run  # of a pipeline, that is to make it

    def __repr__(self):
        return f"RemoteArray({self.dtype}{self._shape or ''}{', gone' if self._gone else ''})"

    @property
    def shape(self):
        return self.shape_within(self.session.client.deadline(None))

    def shape_within(self, deadline):
        """The shape, once it is known: a size that only the run decides is waited for until the Deadline."""
        if self._shape is None:
            self._run.wait(deadline)
            if self._shape is None:
                raise ValueError(f"{self!r} was never made: its run failed")
        return self._shape

    @property
    def ndim(self):
        return len(self.shape)

    def arrive(self, payload):
        """The run that makes it has ended, and this is what the server says of it."""
        self._shape = payload.shape

    def fetch(self, *, timeout=None):
        """The numbers, a NumPy array."""
        return self.session._fetch(self, timeout)

    def donate(self):
        """This tensor as an argument whose memory the run may take; it is gone once the call has succeeded."""
        return Donation(self)

    def delete(self, *, timeout=None):
        """Frees its memory on the server."""
        self.session.delete([self], timeout=timeout)

    def as_argument(self, donated=False):
        """Names it in a call, which has waited for it."""
        self._check_is_there()
        return wire.Handle(self.handle, donated)

    def wait(self, deadline, pipeline=None):
        """Returns when the server has it, or never will have; at once in the pipeline that makes it. Raises
        DeadlineExceeded."""
        self._check_is_there()
        if self._run is not None and self._run.pipeline is not pipeline:
            self._run.wait(deadline)

    def _check_is_there(self):
        if self._gone:
            raise ValueError(f"{self!r} was deleted or donated")

    def mark_gone(self):
        self._gone = True

    def __array__(self, *_, **__):
        raise TypeError(
            f"{self!r} is on the server, and no constant of a graph: pass it as an argument of the program, or fetch() it"
        )


class Donation:
    """A RemoteArray that the call may consume. Made by RemoteArray.donate()."""

    __slots__ = ("remote",)

    def __init__(self, remote):
        self.remote = remote


def remote_of(value):
    """The RemoteArray that an argument is or donates, or None."""
    return value.remote if isinstance(value, Donation) else value if isinstance(value, RemoteArray) else None


def session_of(arguments):
    """The Session of the first RemoteArray among a call's arguments, or None."""
    return next((one.session for one in map(remote_of, arguments) if one is not None), None)


class Session:
    """Owns tensors on the server; made by Client.session(). Thread-safe. Close it, or use it in a `with`.

        with client.session() as session:
            state = session.put(array)
            for _ in range(100):
                state = program(state.donate(), keep=True)
            print(state.fetch())

    The tensors go when the session is closed, or when nothing names it for `lease` seconds, after which calls raise
    FailedPrecondition with the reason SESSION_UNKNOWN. Behind a balancer all of its calls have one key, `route`, so that
    they come to the server that has it.
    """

    def __init__(self, client, lease=None, timeout=None, route=None):
        request = contract.OpenSessionRequest()
        if lease is not None:
            if not math.isfinite(lease):
                raise ValueError(f"a lease is a number of seconds, not {lease}; None is the server's default")
            request.lease.seconds, request.lease.nanos = int(lease), int(lease % 1 * 1e9)
        self.client, self.route = client, route or new_session_route()
        opened = self._unary("OpenSession", request, contract.Session, timeout)
        self.id = read_name(opened.id, "a session")
        self.lease = opened.lease.seconds + opened.lease.nanos * 1e-9
        self._numbers = itertools.count(1)
        self._closed = False

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close()
            return
        try:  # the failure that ends the block is the one to report
            self.close()
        except Exception:
            pass

    def __reduce__(self):
        raise TypeError("a session does not pickle: it ends with who opened it; open another where its tensors are needed")

    def __repr__(self):
        return f"Session({self.id!r}{', closed' if self._closed else ''})"

    def close(self, *, timeout=None):
        """Ends the session and frees its tensors. Closing twice does nothing."""
        if not self._closed:
            self._closed = True
            self._unary("CloseSession", contract.CloseSessionRequest(session=self.id), None, timeout)

    def put(self, value, dtype=None, *, device="", timeout=None):
        """Sends an array, which stays on the server; a RemoteArray."""
        array = numpy_array(value)
        dtype = dtypes.as_dtype(array.dtype if dtype is None else dtype)
        array = wire.contiguous(array, dtype)
        handle = self.new_handle()
        self.client.upload(*transfer.put_header(self.id, handle, array, dtype, device), timeout, self.route)
        return RemoteArray(self, handle, dtype, array.shape)

    def delete(self, remotes, *, timeout=None):
        """Frees the memory of RemoteArrays; those that are gone already are left out."""
        living, deadline = [remote for remote in remotes if not remote._gone], self.client.deadline(timeout)
        for remote in living:
            remote.wait(deadline)
        request = contract.DeleteTensorsRequest(session=self.id, handles=[remote.handle for remote in living])
        self._unary("DeleteTensors", request, contract.DeleteTensorsResponse, deadline.left())
        for remote in living:
            remote.mark_gone()

    def pipeline(self, *, timeout=None):
        """A Pipeline, whose runs follow each other without waiting; timeout in seconds is that of all together, and None
        for no end of the stream: then each wait of run() and close() may be as long as a call of the client."""
        return Pipeline(self, timeout)

    def promise(self, handle, spec, run):
        """The RemoteArray that a pipeline's run is to make, of a Spec."""
        static = all(is_static(size) for size in spec.shape)
        return RemoteArray(self, handle, spec.dtype, tuple(spec.shape) if static else None, run)

    def new_handle(self):
        return f"t{next(self._numbers)}"

    def _fetch(self, remote, timeout):
        deadline = self.client.deadline(timeout)
        remote.wait(deadline)
        request = contract.GetTensorRequest(session=self.id, handle=remote.handle, order=contract.ROW_MAJOR)
        return self.client.download(request, remote.dtype, remote.shape, deadline.left(), self.route)

    def _unary(self, method, request, response_class, timeout):
        return self.client.unary(method, request, response_class, timeout, self.route)
