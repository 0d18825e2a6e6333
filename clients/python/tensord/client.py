"""The connection to a server."""

import contextlib
import threading
import time

import grpc

from tensord import contract, dtypes, errors
from tensord.access import Access, is_local
from tensord.arguments.numpy_arrays import numpy_array
from tensord.calls import resumed, shared_transfer, transfer, wire
from tensord.calls.answers import check_results, read, read_name
from tensord.calls.attempts import Attempts, may_have_run
from tensord.calls.channel import default_target, open_channel
from tensord.calls.deadline import Deadline, timeout_of_call
from tensord.calls.listeners import why_nobody_listens
from tensord.calls.routing import METADATA_KEY, route_of_program
from tensord.calls.shared_memory import MOST_WAIT, SharedCall, SharedMemory
from tensord.session import Donation, RemoteArray, Session, remote_of
from tensord.stats import Stats

_SERVICE = "/tensord.v1.Compute/"
# Methods that change nothing, or do so once. They are called again if they got no answer, and so is Execute if it keeps
# and donates nothing: behind a balancer another server has it.
_IDEMPOTENT = ("Compile", "Differentiate", "Explain", "GetProgram", "GetServerInfo")
_MOST_ATTEMPTS = 4
_MOST_REPEATS_OF_BROKEN = 1
_PROBE_SECONDS = 1.0
_HEALTH = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")


class Client:
    """A connection to one server, over a unix socket ("unix:/path") or TCP ("host:port"). Thread-safe.

    The connection is made when it is first used, and again when it was lost; nothing is sent until then, and an absent
    server shows as td.Unavailable in the first call. Owns its channel: close it, or use it in a `with`.
    timeout is the deadline of every call, in seconds, None for none; each call may name its own. credentials
    (grpc.ChannelCredentials) makes the connection TLS; metadata is sent with every call. access, a td.Access, sets both
    from files and a token; without it the environment does. shared_memory: large arrays of calls and sessions go through
    memory that client and server share, where the server offers some to this process. Failures raise td.Error and its subclasses.

    Several servers may stand behind a target that is a balancer: a list, "ipv4:10.0.0.1:7070,10.0.0.2:7070", is the
    simplest (docs/operate/balancing.md). What got no answer and may run twice is made again, four times at most.

    A client pickles, and is another connection to its target where it is unpickled: the environment of that place gives
    the access, unless access was given, whose token and key then travel in the pickle. One with credentials does not.
    """

    def __init__(self, target=None, *, timeout=None, credentials=None, metadata=(), access=None, shared_memory=False):
        self.target = target or default_target()
        if not isinstance(self.target, str):
            raise TypeError(f"a target is text, unix:/path or host:port, not {self.target!r}")
        self._made_of = {"metadata": tuple(metadata), "access": access, "shared_memory": shared_memory}
        self._has_own_credentials = credentials is not None
        self.timeout = timeout
        self._is_closed = False
        access = Access.from_environment() if access is None else access
        credentials = access.credentials() if credentials is None else credentials
        self._metadata = tuple(metadata)
        if not any(key == "authorization" for key, _ in self._metadata):
            self._metadata += access.metadata(self.target, credentials is not None)
        self._chooses_routes = not any(key == METADATA_KEY for key, _ in self._metadata)
        self._channel = open_channel(self.target, credentials)
        self._calls = {}
        self._lock = threading.Lock()
        self._wants_memory, self._memory, self._memory_lock = shared_memory, None, threading.Lock()
        self._was_reached = False  # by a call that was answered
        self._shares_transfers = False  # PutTensor and GetTensor use it too

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __reduce__(self):
        if self._has_own_credentials:
            raise TypeError("a client with credentials of its own does not pickle; give it access, a td.Access, instead")
        return _connect, ({"target": self.target, "timeout": self.timeout, **self._made_of},)

    def __repr__(self):
        return f"Client({self.target!r})"

    def close(self):
        """Ends the connection; calls under way are cancelled."""
        self._is_closed = True
        self._channel.close()

    @property
    def shared_memory(self):
        """The SharedMemory of this client; None where it was not asked for, or the server gives this process none."""
        if self._wants_memory:
            with self._memory_lock:
                if self._wants_memory:
                    self._memory = self._find_memory()
                    self._wants_memory = False
        return self._memory

    def _find_memory(self):
        if not is_local(self.target):
            return None  # the path would be one of this machine, and nobody knows who listens there
        authorization = dict(self._metadata).get("authorization", "")
        wait = MOST_WAIT if self.timeout is None else min(self.timeout, MOST_WAIT)
        try:
            offer = self.server_info(timeout=wait).shared_memory
            self._shares_transfers = offer.transfers
            return SharedMemory(offer.socket, authorization) if offer.socket else None
        except (OSError, errors.PermissionDenied, errors.DeadlineExceeded):
            return None

    # ---- Programs ----

    # The key of a call that names a graph is the graph's; of one that names a fingerprint it is the caller's `route`.

    def compile(self, graph, *, device="", disabled_passes=(), timeout=None, route=None):
        """Compiles a contract.Graph, or finds it compiled; the contract.CompileResponse. Idempotent."""
        options = compile_options(device, disabled_passes)
        request = contract.CompileRequest(graph=graph, options=options)
        route = route or route_of_program(graph, options)
        response = self.unary("Compile", request, contract.CompileResponse, timeout, route)
        read_name(response.program.fingerprint, "a program")
        return response

    def get_program(self, fingerprint, *, timeout=None, route=None):
        """The contract.Program of a compiled program. Raises FailedPrecondition where the server has none."""
        request = contract.GetProgramRequest(fingerprint=fingerprint)
        program = self.unary("GetProgram", request, contract.Program, timeout, route)
        read_name(program.fingerprint, "a program")
        return program

    def explain(self, program, *, device="", disabled_passes=(), timeout=None):
        """Why a program (a fingerprint or a contract.Graph) runs as it does, as text."""
        return self._explain(program, device, disabled_passes, timeout).text

    def plan_contractions(self, program, *, device="", disabled_passes=(), timeout=None):
        """In which order the nodes of a program that contract several operands, einsums, contract them, and what that
        costs: a list of contract.ContractionPlans."""
        return list(self._explain(program, device, disabled_passes, timeout).contractions)

    def differentiate(self, graph, mode, wrt=(), *, keep_outputs=False, checkpoints=(), split=False, timeout=None):
        """The derivative of a contract.Graph, a contract.Graph itself. Idempotent.

        mode: "jvp" adds a tangent for each `wrt` to the inputs, and has one for each output; "vjp" adds a cotangent for
        each output, and "grad", of a graph with one real number as its output, adds none: both have a cotangent for
        each `wrt`. wrt: names of inputs, empty for all floats and complex numbers; keep_outputs: the graph's own outputs
        come first. Outputs of other types have neither. Constants without an order are row-major, as in compile.
        checkpoints, of "vjp" and "grad": references to values ("x", "y:1") that the backward pass finds in memory beside
        the inputs; it computes others again, shortly before it needs them; empty: it finds all. split: a pair of graphs.
        The first has the outputs, and residuals behind them; the second has those inputs of the graph that it reads or
        that have symbolic sizes, the residuals under their names, and the cotangents, and gives the cotangents of `wrt`.
        Raises td.Unimplemented where an operation has no derivative.
        """
        number = contract.DERIVATIVE_MODES.get(f"MODE_{mode.upper()}", 0)
        if not number:
            raise ValueError(f"a mode is 'jvp', 'vjp' or 'grad', not {mode!r}")
        request = contract.DifferentiateRequest(
            graph=graph, mode=number, wrt=wrt, keep_outputs=keep_outputs, order=contract.ROW_MAJOR,
            checkpoints=checkpoints, split=split,
        )  # fmt: skip
        response = self.unary("Differentiate", request, contract.DifferentiateResponse, timeout)
        return (response.graph, response.backward) if split else response.graph

    def _explain(self, program, device, disabled_passes, timeout):
        request = contract.ExplainRequest(options=compile_options(device, disabled_passes))
        key = None
        if isinstance(program, str):
            request.fingerprint = program
        else:
            request.graph.CopyFrom(program)
            key = route_of_program(program, request.options)
        return self.unary("Explain", request, contract.ExplainResponse, timeout, key)

    # ---- Running ----

    def session(self, *, lease=None, timeout=None, route=None):
        """A new Session, which keeps tensors on the server. lease in seconds, None for the server's default. route: its
        key for a balancer; sessions of one key come to one server."""
        return Session(self, lease, timeout, route)

    def execute(
        self,
        program,
        arguments,
        *,
        device="",
        disabled_passes=(),
        priority=0,
        profile=False,
        timeout=None,
        session=None,
        keep=(),
        alignment=None,
        route=None,
        specs=None,
    ):
        """Runs a program, a fingerprint or a contract.Graph, on NumPy arrays; (list of arrays, Stats).

        arguments cross the wire row-major: a C-contiguous array is sent from its own memory, others are made contiguous
        first. An argument may be a pair (array, DType) where NumPy's type does not tell (bfloat16 as uint16). Results
        are read-only views of the response, which they keep alive; copy one to write to it. The program of a
        fingerprint must have been compiled with row-major order, as Client.compile does.

        session: the Session of arguments that are RemoteArrays, and of results to be kept: those whose place in `keep`
        is true come back as RemoteArrays. route: the key that a fingerprint's program has for a balancer. specs: the
        Specs that the results are known to have; others raise DataLoss.
        """
        alignment = alignment or wire.ResponseAlignment()
        memory = self.shared_memory
        deadline = self.deadline(timeout)
        self.await_arguments(arguments, session, deadline)
        shared = None
        if memory and not memory.lost:
            shared = SharedCall(memory, alignment.result_bytes, deadline.half())
        request_id = alignment.request_id()
        handles = [session.new_handle() if kept else "" for kept in keep]
        request = self.encode_run(
            program,
            arguments,
            request_id=request_id,
            session=session,
            handles=handles,
            device=device,
            disabled_passes=disabled_passes,
            priority=priority,
            profile=profile,
            shared=shared,
        )
        if session:
            route = session.route
        elif not isinstance(program, str):
            route = route_of_program(program, compile_options(device, disabled_passes))
        may_repeat = not shared and not any(keep) and not any(isinstance(one, Donation) for one in arguments)
        begin = time.perf_counter()
        try:
            response = self._call("Execute", request, deadline.left(), route=route, may_repeat=may_repeat)
        except BaseException as failure:
            if not shared or not shared.failed(getattr(failure, "reason", "")):
                raise
            options = {"device": device, "disabled_passes": disabled_passes, "priority": priority, "profile": profile}
            options.update(session=session, keep=keep, alignment=alignment, route=route, specs=specs)
            return self.execute(program, arguments, timeout=deadline.left(), **options)
        round_trip_time = time.perf_counter() - begin
        try:
            payloads, stats, error = wire.decode_execute_response(response, shared.spaces if shared else ())
        except wire.MalformedResponse as failure:
            raise errors.DataLoss(f"the server at {self.target} sent an unreadable answer: {failure}") from None
        if error is not None:
            raise errors.from_wire(read(contract.Error, error))
        alignment.learn(payloads, request_id)
        self.mark_donated(arguments)
        if specs is not None:
            check_results(payloads, specs)
        handles += [""] * (len(payloads) - len(handles))
        results = [self._result(payload, handle, session) for payload, handle in zip(payloads, handles)]
        return results, Stats(stats, round_trip_time)

    def await_arguments(self, arguments, session, deadline, pipeline=None):
        """Returns when the server has those that are RemoteArrays, which are to be the session's; in a pipeline those
        that it makes itself may be on their way. Raises DeadlineExceeded."""
        for argument in arguments:
            remote = remote_of(argument)
            if remote is None:
                continue
            if remote.session is not session:
                raise ValueError(f"{remote!r} belongs to {remote.session!r}, the call to {session!r}")
            remote.wait(deadline, pipeline)

    def encode_run(
        self,
        program,
        arguments,
        *,
        request_id,
        session,
        handles,
        device="",
        disabled_passes=(),
        priority=0,
        profile=False,
        shared=None,
    ):
        """Bytes of the request, whose arguments were awaited; `handles` names the results to keep, "" for others.
        shared: the SharedCall of what does not go in the request."""
        typed = [_typed(argument) for argument in arguments]
        if shared:
            typed = [shared.argument(one) for one in typed]
            handles = list(handles) + [""] * (len(shared.spaces) - len(handles))
        named = isinstance(program, str)
        return wire.encode_execute_request(
            typed,
            fingerprint=program if named else "",
            graph=b"" if named else program.SerializeToString(),
            options=b"" if named else compile_options(device, disabled_passes).SerializeToString(),
            results=[
                _result_option(handle, shared.space_of(index) if shared and not handle else None)
                for index, handle in enumerate(handles)
            ],
            session=session.id if session else "",
            priority=priority,
            profile=profile,
            request_id=request_id,
        )

    def mark_donated(self, arguments):
        """What a run donates is gone once it has succeeded; in a pipeline once it is sent."""
        for argument in arguments:
            if isinstance(argument, Donation):
                argument.remote.mark_gone()

    def _result(self, payload, handle, session):
        if payload is None or payload.array is None and not handle:
            raise errors.DataLoss(f"the server at {self.target} sent a result without data")
        return RemoteArray(session, handle, payload.dtype, payload.shape) if handle else wire.aligned(payload.array)

    # ---- The server ----

    def server_info(self, *, capabilities=False, timeout=None):
        """The contract.ServerInfo: version, devices, limits, and with `capabilities` which operation runs where."""
        request = contract.GetServerInfoRequest(capabilities=capabilities)
        return self.unary("GetServerInfo", request, contract.ServerInfo, timeout)

    def health(self, service="", *, timeout=None):
        """The server's state by the gRPC health protocol: "SERVING", "NOT_SERVING", …"""
        # HealthCheckRequest has one string, field 1; HealthCheckResponse one enum, field 1.
        name = service.encode()
        request = b"\x0a" + wire.varint(len(name)) + name if name else b""
        response = self._call("Check", request, timeout, service="/grpc.health.v1.Health/")
        status = response[1] if len(response) > 1 and response[0] == 0x08 else 0
        return _HEALTH[status] if status < len(_HEALTH) else "UNKNOWN"

    def wait_until_ready(self, timeout=10.0):
        """Returns once the server answers and serves. Raises the last error after `timeout` seconds."""
        deadline = Deadline(timeout)
        try:
            grpc.channel_ready_future(self._channel).result(timeout_of_call(timeout))
        except grpc.FutureTimeoutError:
            raise errors.Unavailable(f"no tensord server at {self.target} within {timeout:g} s{self._why_not()}") from None
        while True:
            left = deadline.left()
            if self.health(timeout=left and max(left, 0.1)) == "SERVING":
                return self
            if deadline.is_before(0):
                raise errors.Unavailable(f"the server at {self.target} does not serve after {timeout:g} s")
            time.sleep(0.02)

    def _why_not(self):
        """The last failure of the connection, in gRPC's words and a parenthesis."""
        try:
            self._channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=_PROBE_SECONDS)
        except grpc.RpcError as failure:
            return f" ({failure.details()})"
        return ""

    # ---- Calls ----

    def unary(self, method, request, response_class, timeout, route=None):
        """One call of the service with messages of the contract; None for a response that is not read. route: its key
        for a balancer."""
        may_repeat = method in _IDEMPOTENT
        response = self._call(method, request.SerializeToString(), timeout, route=route, may_repeat=may_repeat)
        return read(response_class, response) if response_class else None

    def stream(self, method, requests, timeout, route=None):
        """A call of a method with streams both ways: an iterable of bytes in, an iterator of bytes out."""
        try:
            call = self._channel.stream_stream(_SERVICE + method)
            return call(requests, timeout=timeout_of_call(timeout), metadata=self._metadata_with(route))
        except ValueError as failure:
            raise errors.Cancelled(f"the client is closed: {failure}") from None

    def error_of(self, failure):
        """The exception to raise for what a stream raised."""
        return errors.from_rpc(failure, self.target) if isinstance(failure, grpc.RpcError) else failure

    def upload(self, header, data, timeout, route=None):
        """Sends the bytes of a tensor by PutTensor, through shared memory or by several calls where the connection breaks."""

        def call(messages, left):
            return self._call("PutTensor", messages, left, kind="stream_unary", route=route)

        get_tensor = self._get_tensor(route)
        deadline, memory, was_sent = self.deadline(timeout), self._transfer_memory(), False
        with self._readable_answers():
            if memory:
                done, was_sent = shared_transfer.upload(call, memory, header, data, deadline)
                if done:
                    return
            resumed.upload(call, get_tensor, header, data, deadline.left(), was_sent)

    def download(self, request, dtype, shape, timeout, route=None):
        """The array of a GetTensorRequest, of this dtype and shape, by several calls where the connection breaks."""
        deadline, memory, get_tensor = self.deadline(timeout), self._transfer_memory(), self._get_tensor(route)
        with self._readable_answers():
            array = memory and shared_transfer.download(get_tensor, memory, request, deadline, dtype, shape)
            return resumed.download(get_tensor, request, deadline.left(), dtype, shape) if array is None else array

    def _transfer_memory(self):
        memory = self.shared_memory
        return memory if memory and self._shares_transfers and not memory.lost else None

    def deadline(self, timeout):
        """The Deadline of what may take so long; None: as long as the client's calls may."""
        return Deadline(self.timeout if timeout is None else timeout)

    def _get_tensor(self, route):
        def call(message, left, read):
            self._call("GetTensor", message, left, kind="unary_stream", read=read, route=route)

        return call

    @contextlib.contextmanager
    def _readable_answers(self):
        try:
            yield
        except transfer.BrokenTransfer as failure:
            raise errors.DataLoss(f"the server at {self.target} sent an unreadable answer: {failure}") from None

    def _metadata_with(self, route):
        """The metadata of a call with this key for a balancer; the client's own metadata may name one for all."""
        if route is None or not self._chooses_routes:
            return self._metadata or None
        return self._metadata + ((METADATA_KEY, route),)

    def _call(self, method, request, timeout, *, may_repeat=False, **options):
        """may_repeat: the call may be made again where it got no answer, but once where servers may have died of it."""
        if not may_repeat:
            return self._call_once(method, request, self.timeout if timeout is None else timeout, **options)
        attempts, broken = Attempts(self.deadline(timeout), _MOST_ATTEMPTS), 0
        while True:
            try:
                return self._call_once(method, request, attempts.left(), **options)
            except errors.Unavailable as failure:
                if not self._was_reached and not may_have_run(failure) and why_nobody_listens(self.target):
                    raise  # and nobody ever has: the next attempts would find the same
                broken += may_have_run(failure)
                if broken > _MOST_REPEATS_OF_BROKEN or not attempts.pause():
                    raise

    def _call_once(self, method, request, timeout, *, service=_SERVICE, kind="unary_unary", read=None, route=None):
        with self._lock:
            call = self._calls.get(service + method)
            if call is None:
                call = self._calls[service + method] = getattr(self._channel, kind)(service + method)
        try:
            answer = call(request, timeout=timeout_of_call(timeout), metadata=self._metadata_with(route))
            self._was_reached = True
            if answer is None:  # as transfer.EndedEarly
                raise errors.Unavailable(f"the connection to {self.target} broke, and the answer was lost with it")
            return read(answer) if read else answer
        except grpc.RpcError as failure:
            refused = errors.from_rpc(failure, self.target)
            self._was_reached = self._was_reached or not isinstance(refused, errors.Unavailable)
            if isinstance(refused, errors.Cancelled) and not refused.reason and not self._is_closed:
                # gRPC's word, and its only one, for a call that comes while its server stops.
                refused = errors.Unavailable(f"the server at {self.target} ended the call without an answer")
        except ValueError as failure:
            refused = errors.Cancelled(f"the client is closed: {failure}")
        raise refused  # here, so that nothing of gRPC's hangs on it: it may be sent to another process


def _connect(arguments):
    """A pickled client."""
    return Client(**arguments)


def compile_options(device="", disabled_passes=()):
    """Options under which tensors cross the wire as NumPy holds them, row-major."""
    return contract.CompileOptions(device=device, disabled_passes=disabled_passes, order=contract.ROW_MAJOR)


def _typed(argument):
    remote = remote_of(argument)
    if remote is not None:
        return remote.as_argument(isinstance(argument, Donation))
    array, dtype = argument if isinstance(argument, tuple) else (argument, None)
    dtype = dtypes.as_dtype(numpy_array(array).dtype) if dtype is None else dtype
    return wire.contiguous(array, dtype), dtype


def _result_option(handle, space=None):
    delivery = contract.DELIVERIES["DELIVERY_KEEP" if handle else "DELIVERY_INLINE"]
    return contract.ResultOption(delivery=delivery, handle=handle, shared=space).SerializeToString()


_default_lock = threading.Lock()
_default_client = None


def connect(target=None, *, timeout=None, credentials=None, metadata=(), access=None, shared_memory=False):
    """A Client, which from now on serves td.compile and td.evaluate where they are given no other.

    Raises td.Unavailable where nobody listens at the target. With a timeout the server may still be starting: then, as for
    a td.Client, the first call finds out.
    """
    global _default_client
    why = None if timeout is not None else why_nobody_listens(target or default_target())
    if why is not None:
        raise errors.Unavailable(f"no tensord server at {target or default_target()}: {why}; start one, or connect elsewhere")
    client = Client(
        target,
        timeout=timeout,
        credentials=credentials,
        metadata=metadata,
        access=access,
        shared_memory=shared_memory,
    )
    with _default_lock:
        _default_client = client
    return client


def default_client():
    """The client of the last td.connect, or one to the default target."""
    global _default_client
    with _default_lock:
        if _default_client is None:
            _default_client = Client()
        return _default_client
