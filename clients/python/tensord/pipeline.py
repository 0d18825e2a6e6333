"""Runs of one session that follow each other without a round trip between them."""

import concurrent.futures
import contextlib
import itertools
import queue
import threading
import time

from tensord import contract, errors
from tensord.calls import wire
from tensord.calls.answers import check_results, read
from tensord.calls.deadline import Deadline, timeout_of_call
from tensord.calls.shared_memory import SharedCall

_MOST_WAITING = 64
_LOOK_SECONDS = 0.1


class Pipeline:
    """Sends runs one after the other over one stream; made by Session.pipeline(). Thread-safe. Use it in a `with`.

        with session.pipeline() as pipeline:
            for _ in range(100):
                state, change = pipeline.run(step, state.donate(), keep=(True, False))
            print(change.result())

    Results that are kept are RemoteArrays that later runs may use at once; the others are concurrent.futures.Futures,
    which cannot be cancelled.
    A run that fails fails its futures; those that use its results raise FailedPrecondition with the reason
    HANDLE_POISONED. The block's end waits for all runs, no longer than close() does, and raises the first failure of a run that had no future to
    tell it by. Before the pipeline's first run of a program the server is asked whether it knows it, and compiles it
    where it does not; one that it forgets later fails the run with the reason PROGRAM_NOT_FOUND, and the next run asks
    again.

    Where the client has shared memory large arguments and results lie there: an argument that does so already is read
    there when its run's turn comes, and must not change until that has its answer.
    """

    def __init__(self, session, timeout=None):
        self.session = session
        self._lock = threading.Lock()
        self._ids = itertools.count(1)
        self._runs = {}  # id: _Run, of those without an answer
        self._failure = None  # of a run without futures, or of the stream
        self._closed = False
        self._ended = threading.Event()
        self._requests = queue.Queue(_MOST_WAITING)
        self._fingerprints = {}  # of programs that the server was asked about
        self._memory = session.client.shared_memory
        self._deadline = Deadline(timeout)
        self._call = session.client.stream("ExecuteStream", iter(self._requests.get, None), timeout, session.route)
        self._reader = threading.Thread(target=self._read, name="tensord-pipeline", daemon=True)
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close()
        else:  # the failure that ends the block is the one to report
            self._call.cancel()
            self._ended.wait()

    def run(self, program, *args, keep=False, priority=0, profile=False, **named):
        """Sends a run of a CompiledProgram and returns its results to come; keep as in a call of the program.

        Waits where the server takes no more for now, and for arguments of other pipelines. Raises what the call would
        raise before anything is sent, DeadlineExceeded where that wait takes longer than the pipeline's timeout or, where
        it has none, the client's, and Cancelled where the stream has ended.
        """
        client, deadline = self.session.client, self._deadline_of()
        arguments, kept = program.prepare(args, keep, named, deadline)
        client.await_arguments(arguments, self.session, deadline, self)
        fingerprint = self._fingerprint_of(program, deadline)
        shared = self._share(program, kept, deadline)
        with self._turn(deadline):
            if self._closed or self._ended.is_set():
                raise self._failure or errors.Cancelled("the pipeline is closed")
            run = _Run(self, next(self._ids), program, program.specs_of_results(arguments), kept, shared)
            request = client.encode_run(
                fingerprint,
                arguments,
                request_id=run.id,
                session=self.session,
                handles=run.handles,
                priority=priority,
                profile=profile,
                shared=shared,
            )
            self._runs[run.id] = run
            if not self._send(request, deadline):
                del self._runs[run.id]
                raise errors.DeadlineExceeded("the server takes no more runs for now: nothing was sent; try again later")
            client.mark_donated(arguments)
        return run.results()

    def close(self, *, timeout=None):
        """Waits until all runs are answered and ends the stream; raises the first failure that no future tells.

        After `timeout` seconds, where None is the pipeline's own timeout or else the client's, what is left is cancelled
        and DeadlineExceeded raised.
        """
        deadline = self._deadline_of(timeout)
        with self._turn(deadline):
            if not self._closed:
                self._closed = True
                self._send(None, deadline)
        if not deadline.wait(self._ended):
            left = len(self._runs)
            self._call.cancel()
            self._ended.wait()
            raise errors.DeadlineExceeded(f"{left} runs of the pipeline had no answer in time, and were cancelled")
        self._reader.join()
        if self._failure is not None:
            raise self._failure

    def _deadline_of(self, timeout=None):
        """That of one wait: `timeout` seconds from now, or until the pipeline's end, or as long as the client's calls."""
        return self.session.client.deadline(self._deadline.left() if timeout is None else timeout)

    @contextlib.contextmanager
    def _turn(self, deadline):
        """Holds the lock: requests go out in the order of their ids."""
        left = timeout_of_call(deadline.left())
        if not self._lock.acquire(timeout=-1 if left is None else left):
            raise errors.DeadlineExceeded("another thread's run still waits to be sent: the server takes no more for now")
        try:
            yield
        finally:
            self._lock.release()

    def _fingerprint_of(self, program, deadline):
        """The fingerprint by which the session's server knows a CompiledProgram, which may have been compiled on
        another one."""
        fingerprint = self._fingerprints.get(program)
        if fingerprint is None:
            fingerprint = program.make_known(self.session.client, self.session.route, deadline)
            self._fingerprints[program] = fingerprint
        return fingerprint

    def _share(self, program, kept, deadline):
        """The part of a run that goes through shared memory, or None. Nothing does once the memory's server has gone: a
        run that a stream has refused cannot be sent again in messages, since other runs follow it."""
        if not self._memory or self._memory.has_gone():
            return None
        expected = program.expected_bytes()
        kept = list(kept) + [False] * (len(expected) - len(kept))
        return SharedCall(self._memory, [0 if one else size for one, size in zip(kept, expected)], deadline.half())

    def _send(self, request, deadline):
        """Tells whether the request is on its way, or the stream has ended; while self._lock is held."""
        while not self._ended.is_set():
            try:
                self._requests.put(request, timeout=_LOOK_SECONDS)
                return True
            except queue.Full:  # the server holds us back; or the stream has ended, and nobody reads any more
                if deadline.is_before(0):
                    return False
        return True

    def _read(self):
        failure = None
        try:
            for response in self._call:
                self._answer(response)
        except Exception as stopped:  # a thread has nobody to raise to: what is left is told below
            failure = self.session.client.error_of(stopped)
            self._call.cancel()  # the server may go on
        self._ended.set()
        with self._lock:
            left, self._runs = list(self._runs.values()), {}
            if failure is not None and self._failure is None and (left or not self._closed):
                self._failure = failure
        for run in left:
            run.fail(failure or errors.DataLoss("the stream ended without an answer"))
        try:
            self._requests.put_nowait(None)  # whoever still takes requests for the stream is told to stop
        except queue.Full:
            pass

    def _answer(self, response):
        try:
            request_id = wire.request_id_of(response)
            run = self._runs.get(request_id)
            if run is None:
                raise errors.DataLoss(f"the server answered request {request_id}, which is not in flight")
            payloads, stats, error = wire.decode_execute_response(response, run.spaces())
        except wire.MalformedResponse as failure:
            raise errors.DataLoss(f"the server sent an unreadable answer: {failure}") from None
        # Until the answer turns out to be one, the run is among those that fail with the stream.
        if error is None:
            run.finish(payloads, stats)
            del self._runs[request_id]
            return
        failure = errors.from_wire(read(contract.Error, error))
        del self._runs[request_id]
        if failure.reason == "PROGRAM_NOT_FOUND":
            self._fingerprints.clear()
        if not run.futures and self._failure is None:
            self._failure = failure
        run.fail(failure)


class _Run:
    """One run on its way: what the caller has of its results, and how they come to be."""

    def __init__(self, pipeline, run_id, program, specs, kept, shared):
        session = pipeline.session
        kept = list(kept) + [False] * (len(specs) - len(kept))
        self.id, self.pipeline, self._program = run_id, pipeline, program
        self.handles = [session.new_handle() if one else "" for one in kept]
        self._begin = time.perf_counter()
        self._specs = specs  # of the results, as far as they are known
        self._shared = shared  # a SharedCall until it is answered, or None
        self._answered = threading.Event()
        self._results = [
            session.promise(handle, spec, self) if handle else concurrent.futures.Future()
            for handle, spec in zip(self.handles, specs)
        ]
        self.futures = [one for one in self._results if isinstance(one, concurrent.futures.Future)]
        for future in self.futures:  # it is sent, and nobody calls it back: cancel() says so
            future.set_running_or_notify_cancel()

    def results(self):
        return self._program.unflatten_results(self._results)

    def wait(self, deadline):
        """Returns when the server has answered. Raises DeadlineExceeded."""
        if not deadline.wait(self._answered):
            raise errors.DeadlineExceeded("the run of a pipeline that makes the tensor has no answer yet")

    def spaces(self):
        """The places that results may take, by result."""
        return self._shared.spaces if self._shared else ()

    def finish(self, payloads, stats):
        check_results(payloads, self._specs)
        for result, handle, payload in zip(self._results, self.handles, payloads):
            if handle:
                if payload is None:
                    raise errors.DataLoss("the server sent a kept result without its type")
                result.arrive(payload)
            elif payload is None or payload.array is None:
                result.set_exception(errors.DataLoss("the server sent a result without data"))
            else:
                result.set_result(wire.aligned(payload.array))
        sizes = tuple(0 if one is None or one.array is None else one.array.nbytes for one in payloads)
        self._program.note_run(stats, time.perf_counter() - self._begin, sizes)
        self._shared = None
        self._answered.set()

    def fail(self, failure):
        if self._shared:
            self._shared.failed(getattr(failure, "reason", ""))
            self._shared = None
        for future in self.futures:
            if not future.done():
                future.set_exception(failure)
        self._answered.set()
