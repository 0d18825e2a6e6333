"""Tracing a function into a graph, compiling it, and calling it with NumPy arrays."""

import math
import threading

import numpy as np

from tensord import dims, dtypes, errors
from tensord.arguments import tree
from tensord.arguments.numpy_arrays import numpy_array
from tensord.arguments.parameters import Parameters, parameters_of, with_lists_as_arrays
from tensord.array import Array
from tensord.calls import wire
from tensord.calls.routing import route_of_program
from tensord.client import compile_options, default_client
from tensord.session import remote_of, session_of
from tensord.stats import Stats, seconds, source_name
from tensord.tracing.graph_builder import GraphBuilder
from tensord.tracing.lifting import as_array, show


class Spec:
    """The dtype and shape of an argument. A size may be a symbol, "n": one program then serves every size of it."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape, dtype):
        self.shape, self.dtype = dims.as_shape(shape), dtypes.as_dtype(dtype)

    def __repr__(self):
        return f"spec({show(self.shape)}, {self.dtype})"

    @property
    def nbytes(self):
        """The bytes of an array of this type; 0 if a symbol decides."""
        static = all(dims.is_static(size) for size in self.shape)
        return self.dtype.itemsize * math.prod(self.shape) if static else 0

    def __eq__(self, other):
        return isinstance(other, Spec) and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self):
        return hash((self.shape, self.dtype))


def spec(shape, dtype=float):
    """The type of an argument for td.compile, for example td.spec(("n", 64), "float32")."""
    return Spec(shape, dtype)


def spec_of(value):
    """The Spec of an example value: a Spec itself, a NumPy array, a RemoteArray, or a Python number."""
    if isinstance(value, Spec):
        return value
    remote = remote_of(value)
    if remote is not None:
        return Spec(remote.shape, remote.dtype)
    if isinstance(value, Array):
        raise TypeError("a traced Array cannot be an argument of another program: call the function itself instead")
    if dtypes.is_weak(value):
        return Spec((), dtypes.default_type(value))
    array = numpy_array(value)
    return Spec(array.shape, dtypes.as_dtype(array.dtype))


class Traced:
    """The graph of a function for given argument types: a contract.Graph, and how arguments and results map onto it."""

    def __init__(self, graph, parameters, input_specs, arguments, results, output_specs):
        self.graph, self.input_names = graph, [one.name for one in graph.inputs]
        self.input_specs, self.output_specs = input_specs, output_specs
        self._parameters, self._arguments, self._results = parameters, arguments, results

    def __repr__(self):
        return f"Traced({self.graph.name}: {len(self.graph.nodes)} nodes, {self.input_specs} -> {self.output_specs})"

    def flatten_arguments(self, args, keywords=None, deadline=None):
        """The arguments of a call as pairs (array, DType), each checked against the type that was traced. deadline: how
        long shapes of RemoteArrays are waited for, None for as long as the client's calls may take."""
        args = self._parameters.in_order(args, keywords or {})
        try:
            leaves = self._arguments.leaves_of(args)
        except TypeError as failure:
            raise TypeError(f"{self.graph.name} was traced with arguments {self._arguments}: {failure}") from None
        sizes = {}
        return [
            _checked(name, leaf, expected, sizes, deadline)
            for name, leaf, expected in zip(self.input_names, leaves, self.input_specs)
        ]

    def argument_leaves(self, args, keywords):
        """The leaves of a call's arguments, unchecked. Raises TypeError where they are built otherwise."""
        return self._arguments.leaves_of(self._parameters.in_order(args, keywords))

    def flatten_kept(self, keep):
        """The results to keep, one truth value each; an empty list for none."""
        if isinstance(keep, bool):
            return [True] * len(self.output_specs) if keep else []
        return [bool(kept) for kept in self._results.leaves_of(keep)]

    def specs_of_results(self, arguments):
        """The Specs of the results for arguments as flatten_arguments returns them: without the symbols whose sizes
        these have."""
        if all(dims.all_static(one.shape) for one in self.output_specs):
            return self.output_specs
        sizes = {}
        for argument, expected in zip(arguments, self.input_specs):
            remote = remote_of(argument)
            _binds(expected.shape, argument[0].shape if remote is None else remote.shape, sizes)
        return [Spec([_known(size, sizes) for size in one.shape], one.dtype) for one in self.output_specs]

    def unflatten_results(self, arrays):
        """Results in the structure that the function returned."""
        return self._results.build(iter(arrays))


def make_graph(function, *specs, static=None, name=None, algebra=None, client=None, **named):
    """Calls `function` with Arrays of the given types (Specs, or example arrays) and returns its graph, a Traced.

    named: specs of arguments that the function takes by name. static: keyword arguments that are passed as they are and
    become part of the graph. algebra: the algebra in which the whole graph is read. client: whom td.grad and its like ask
    for derivatives, None for the default client. Arguments and results may be nested tuples, lists and dicts; a list of
    numbers is an array.
    """
    title = name or getattr(function, "__name__", type(function).__name__).strip("<>")
    parameters, specs = parameters_of(function, title, specs, named, static or {})
    leaves, arguments = tree.flatten(with_lists_as_arrays(specs))
    input_specs = [spec_of(leaf) for leaf in leaves]
    builder = GraphBuilder(title, algebra, client)
    with builder:
        inputs = [
            builder.input(input_name, one.dtype, one.shape)
            for input_name, one in zip(_input_names(parameters, arguments), input_specs)
        ]
        result = parameters.call(function, arguments.build(iter(inputs)), static or {})
        result_leaves, results = tree.flatten(result)
        outputs = [_output(leaf) for leaf in result_leaves]
    for output_name, output in zip(results.leaf_names("" if len(outputs) != 1 else "result"), outputs):
        builder.output(output_name if not output_name.isdigit() else f"result_{output_name}", output)
    return Traced(
        builder.graph,
        parameters,
        input_specs,
        arguments,
        results,
        [Spec(output.shape, output.dtype) for output in outputs],
    )


def _output(leaf):
    try:
        return as_array(leaf)
    except TypeError as failure:
        raise TypeError(
            f"a traced function returns Arrays, numbers, NumPy arrays, or tuples, lists and dicts of them; "
            f"{failure}"
        ) from None


def _input_names(parameters, arguments):
    """Names of the inputs: the function's parameters', with the keys of nested arguments."""
    return [
        name.replace(":", "_")
        for prefix, child in zip(parameters.names, arguments.children)
        for name in child.leaf_names(prefix)
    ]


def _checked(name, value, expected, sizes, deadline):
    """The argument as it goes to Client.execute, where its type is the one that was compiled."""
    dtype = expected.dtype
    if isinstance(value, Array):
        raise TypeError(
            f"argument {name!r} is a traced Array, a program takes numbers: call the function itself instead"
        )
    remote = remote_of(value)
    if remote is not None:
        array, found = value, remote.dtype
        fits = remote.dtype is dtype
        shape = remote.shape if deadline is None else remote.shape_within(deadline)
    elif dtypes.is_weak(value) or isinstance(value, (list, tuple)):
        if isinstance(value, int) and not dtypes.fits(value, dtype):
            raise OverflowError(f"argument {name!r} does not fit into {dtype}: {value}")
        array = numpy_array(value)
        shape, found = array.shape, array.dtype
        fits = array.size == 0 or np.can_cast(found, dtype.numpy, "same_kind") or dtype is dtypes.bfloat16
        numbers, array = array, dtypes.to_numpy(array, dtype) if fits else array
        if fits and dtype.is_integer and not np.array_equal(numbers, array):
            raise OverflowError(f"argument {name!r} does not fit into {dtype}: {value!r}")
    else:
        array = numpy_array(value)
        shape, found = array.shape, array.dtype
        fits = found.newbyteorder("<") == dtype.numpy
    if not fits:
        raise TypeError(
            f"argument {name!r} is {found}, the program was compiled for {dtype}: convert it with astype, or compile "
            "for that type"
        )
    if not _binds(expected.shape, shape, sizes):
        bound = f" with {', '.join(f'{symbol} = {size}' for symbol, size in sizes.items())}" if sizes else ""
        raise ValueError(
            f"argument {name!r} has shape {shape}, the program was compiled for {show(expected.shape)}{bound}"
        )
    return array if remote is not None else (wire.contiguous(array, dtype), dtype)


def _binds(expected, shape, sizes):
    """Tell whether a shape is an instance of the expected one, given the symbols' sizes, to which it adds."""
    if len(expected) != len(shape):
        return False
    return all(
        size == (wanted if dims.is_static(wanted) else sizes.setdefault(str(wanted), size))
        for wanted, size in zip(expected, shape)
    )


def _known(size, sizes):
    """The size as a number where the symbols' sizes decide it, else as it is: where it is none, the server says so."""
    if not dims.leaves_of(size) <= sizes.keys():
        return size
    try:
        number = dims.evaluate(size, sizes)
    except ZeroDivisionError:
        return size
    return number if number >= 0 else size


class CompiledProgram:
    """A function compiled on a server; call it with NumPy arrays. Made by td.compile. Thread-safe.

    The server knows the program by its fingerprint; a call sends that and the arguments, nothing else. Where the
    server does not know it (a restart, an eviction, another server behind a balancer) the call repeats itself once with
    the graph. Results are read-only arrays that view the response's memory: copy one to write to it.

    fingerprint, device; source: how the last compilation ended ("compiled", "memory", "disk", "joined"); compile_time
    in seconds; compile_count and call_count; stats: the Stats of the call that ended last, None before the first.
    Pickles with its client; where it is unpickled it counts anew, and its first call compiles it where that client's
    server does not know it.
    """

    def __init__(self, traced, client, device, disabled_passes, timeout):
        self._traced, self._client, self._device, self._disabled_passes = traced, client, device, tuple(disabled_passes)
        self._alignment = wire.ResponseAlignment()
        self._lock = threading.Lock()
        self._was_unknown = False  # to the server that the last call came to
        self._route = route_of_program(traced.graph, compile_options(device, disabled_passes))
        self.stats = None
        self.call_count = 0
        self.compile_count = 0
        self._compile(timeout)

    def __getstate__(self):
        anew = {"stats": None, "call_count": 0, "compile_count": 0}
        return {**self.__dict__, **anew, "_lock": None, "_alignment": None}

    def __setstate__(self, state):
        self.__dict__.update(state, _lock=threading.Lock(), _alignment=wire.ResponseAlignment())

    def __repr__(self):
        return (
            f"CompiledProgram({self.graph.name}: {self.input_specs} -> {self.output_specs}, "
            f"device={self.device!r}, fingerprint={self.fingerprint[:12]}…)"
        )

    @property
    def graph(self):
        """The contract.Graph that was compiled."""
        return self._traced.graph

    @property
    def input_specs(self):
        return list(self._traced.input_specs)

    @property
    def output_specs(self):
        return list(self._traced.output_specs)

    def __call__(self, *args, timeout=None, profile=False, priority=0, session=None, keep=False, **named):
        """Runs the program; results have the structure that the function returned. Arguments by position or by name.

        timeout in seconds; profile=True fills stats.segments; a higher priority runs first where the server allows it.
        Arguments may be RemoteArrays of one Session, or donations of them. keep: the results that stay in that session,
        or in `session`, and are returned as RemoteArrays: True for all, or a structure like the results' with a truth
        value for each. Raises TypeError and ValueError for arguments that do not fit the compiled types, td.Error for
        what the server refuses.
        """
        deadline = self._client.deadline(timeout)
        arguments, kept = self.prepare(args, keep, named, deadline)
        options = {"priority": priority, "profile": profile}
        options["session"] = session or session_of(arguments)
        options["keep"] = kept
        options["specs"] = self._traced.specs_of_results(arguments)
        if any(options["keep"]) and options["session"] is None:
            raise ValueError("keep needs a session: pass session=client.session(), or an argument that one keeps")
        arrays, stats = self._execute(arguments, options, deadline)
        self._count(stats)
        return self._traced.unflatten_results(arrays)

    def prepare(self, args, keep, named, deadline):
        """The parts of a call to send: its arguments, checked, and the results to keep. Waits until the Deadline for
        arguments whose shapes are on their way."""
        return self._traced.flatten_arguments(args, named, deadline), self._traced.flatten_kept(keep)

    def argument_leaves(self, args, named):
        """The leaves of a call's arguments, unchecked, in the order of the graph's inputs."""
        return self._traced.argument_leaves(args, named)

    def specs_of_results(self, arguments):
        """The Specs of the results of a call, as far as its arguments, as `prepare` returns them, decide them."""
        return self._traced.specs_of_results(arguments)

    def unflatten_results(self, results):
        """Results in the structure that the function returned."""
        return self._traced.unflatten_results(results)

    @property
    def client(self):
        """The Client that the program was compiled by."""
        return self._client

    def flat(self, graph=None, input_specs=None, output_specs=None):
        """A program of the same client and device that takes the graph's inputs one by one and returns a tuple; of another
        graph, whose Specs are given, or of this one."""
        graph = self.graph if graph is None else graph
        input_specs = self.input_specs if input_specs is None else input_specs
        output_specs = self.output_specs if output_specs is None else output_specs
        names = [one.name for one in graph.inputs]
        arguments, results = tree.leaves_in_tuple(len(input_specs)), tree.leaves_in_tuple(len(output_specs))
        traced = Traced(graph, Parameters(graph.name, names, ()), input_specs, arguments, results, output_specs)
        return CompiledProgram(traced, self._client, self._device, self._disabled_passes, None)

    def note_run(self, message, round_trip_time, result_bytes):
        """A pipeline's run has ended, of which the server says this (a contract.ExecutionStats), with results of so many
        bytes, 0 for those that did not come."""
        if any(result_bytes):
            self._alignment.result_bytes = result_bytes
        self._count(Stats(message, round_trip_time))

    def expected_bytes(self):
        """The probable size of each result: that of the last one that came, else that of its type. 0: unknown."""
        last = self._alignment.result_bytes or [0] * len(self.output_specs)
        return [bytes_then or spec.nbytes for bytes_then, spec in zip(last, self.output_specs)]

    def _count(self, stats):
        with self._lock:
            self.stats = stats
            self.call_count += 1

    def explain(self, timeout=None):
        """Why the program runs as it does: its instructions, segments, fused kernels and memory plan, as text."""
        return self._client.explain(
            self.graph, device=self._device, disabled_passes=self._disabled_passes, timeout=timeout
        )

    def make_known(self, client, route, deadline):
        """The program's fingerprint on the server that a client's calls of that key come to, which compiles it where it
        does not know it."""
        try:
            return client.get_program(self.fingerprint, timeout=deadline.left(), route=route).fingerprint
        except errors.FailedPrecondition as failure:
            if failure.reason != "PROGRAM_NOT_FOUND":
                raise
        options = {"device": self._device, "disabled_passes": self._disabled_passes}
        return client.compile(self.graph, **options, timeout=deadline.left(), route=route).program.fingerprint

    def _execute(self, arguments, options, deadline):
        options.update(alignment=self._alignment, route=self._route)
        try:
            answer = self._client.execute(self.fingerprint, arguments, timeout=deadline.left(), **options)
            self._was_unknown = False
            return answer
        except errors.FailedPrecondition as failure:
            if failure.reason != "PROGRAM_NOT_FOUND":
                raise
        if self._was_unknown:  # twice in a row: servers of another version may have another fingerprint for the graph
            self._compile(deadline.left())
        self._was_unknown = True
        options.update(device=self._device, disabled_passes=self._disabled_passes)
        arrays, stats = self._client.execute(self.graph, arguments, timeout=deadline.left(), **options)
        if stats.source == "compiled":
            with self._lock:
                self.source, self.compile_time = stats.source, stats.compile_time
                self.compile_count += 1
        return arrays, stats

    def _compile(self, timeout):
        response = self._client.compile(
            self.graph, device=self._device, disabled_passes=self._disabled_passes, timeout=timeout, route=self._route
        )
        with self._lock:
            self.fingerprint = response.program.fingerprint
            self.device = response.program.device
            self.source = source_name(response.source)
            self.compile_time = seconds(response.compile_time)
            self.compile_count += 1


def compile(function, *specs, client=None, device="", static=None, name=None, disabled_passes=(), timeout=None,
            algebra=None, **named):  # fmt: skip
    """Traces a function for arguments of the given types and compiles it on the server; a CompiledProgram.

    specs: a td.spec per argument, or an example array whose type stands for it; both may be nested in tuples, lists and
    dicts. named: the same of arguments given by name, compile(f, x=spec), as long as none has the name of an option. device: "cpu", "cuda", "xla" or one device, "cuda:0"; empty, the server's default. static:
    keyword arguments that become part of the program. disabled_passes: optimizer passes to leave out, by name.
    algebra: "max_plus", "min_plus", "max_times" or "or_and": then +, *, @, td.sum and td.einsum are the algebra's, and
    what it lacks is refused when the program is compiled, with OP_OUTSIDE_ALGEBRA.
    """
    traced = make_graph(function, *specs, static=static, name=name, algebra=algebra, client=client, **named)
    return CompiledProgram(traced, client or default_client(), device, disabled_passes, timeout)


def evaluate(function, *args, client=None, device="", static=None, timeout=None, profile=False, with_stats=False,
             algebra=None, **named):  # fmt: skip
    """Evaluates a function on NumPy arrays in one call, which carries the graph along.

    For one-off work: a program that is called often is better compiled, though the server keeps what it compiled here
    too. Arguments may be RemoteArrays of one Session, or donations of them. with_stats=True returns (results, Stats).
    algebra: as of td.compile.
    """
    args, named = with_lists_as_arrays(args), with_lists_as_arrays(named)
    session = session_of(tree.flatten((args, named))[0])
    client = client or (session.client if session else default_client())
    traced = make_graph(function, *args, static=static, algebra=algebra, client=client, **named)
    arguments = traced.flatten_arguments(args, named)
    options = {"device": device, "timeout": timeout, "profile": profile, "specs": traced.specs_of_results(arguments)}
    arrays, stats = client.execute(traced.graph, arguments, session=session, **options)
    results = traced.unflatten_results(arrays)
    return (results, stats) if with_stats else results
