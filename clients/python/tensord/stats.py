"""The server's figures of runs and compilations."""

from tensord import contract

_SOURCES = {number: name.removeprefix("SOURCE_").lower() for name, number in contract.SOURCES.items()}


class Segment:
    """The work of one kernel of a profiled run: backend, kernel as text, names of the graph's nodes that it computed.

    start, since the run began, and duration are in seconds.
    """

    __slots__ = ("backend", "kernel", "nodes", "start", "duration")

    def __init__(self, message):
        self.backend = message.backend
        self.kernel = message.kernel
        self.nodes = tuple(message.nodes)
        self.start = seconds(message.start)
        self.duration = seconds(message.duration)

    def __repr__(self):
        return f"Segment({self.kernel!r}, nodes={self.nodes!r}, duration={self.duration * 1e6:.1f} us)"


class Stats:
    """How one run went. Times are in seconds.

    queue_time, compile_time and run_time are the server's; round_trip_time is what the caller waited, transport
    included. source is "compiled" where this call compiled the program and "memory" where it was there already.
    segments, with profile=True: a Segment for each kernel, in the order in which they ran.
    """

    __slots__ = (
        "device",
        "source",
        "queue_time",
        "compile_time",
        "run_time",
        "round_trip_time",
        "peak_bytes",
        "segments",
    )

    def __init__(self, message, round_trip_time):
        self.device = message.device
        self.source = "compiled" if message.HasField("compile_time") else "memory"
        self.queue_time = seconds(message.queue_time)
        self.compile_time = seconds(message.compile_time)
        self.run_time = seconds(message.run_time)
        self.round_trip_time = round_trip_time
        self.peak_bytes = message.peak_bytes
        self.segments = [Segment(segment) for segment in message.segments]

    def __repr__(self):
        return (
            f"Stats(device={self.device!r}, source={self.source!r}, queue={self.queue_time * 1e3:.3f} ms, "
            f"compile={self.compile_time * 1e3:.3f} ms, run={self.run_time * 1e3:.3f} ms, "
            f"round trip={self.round_trip_time * 1e3:.3f} ms)"
        )


def seconds(duration):
    return duration.seconds + duration.nanos * 1e-9


def source_name(number):
    """A contract.CompileResponse.Source as "compiled", "memory", "disk" or "joined"."""
    return _SOURCES.get(number, "unspecified")
