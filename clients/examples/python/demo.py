#!/usr/bin/env python3
"""Three real jobs on a tensord server, each checked against NumPy and timed beside it.

An attention block, Black–Scholes prices, and a Poisson solve whose loop keeps calling one cached program. The
functions are plain NumPy (jobs.py). Exits with 1 when a result is wrong, with 2 when no server answers.
"""

import argparse
import functools
import os
import statistics
import sys
import time

import checkout  # noqa: F401  (finds the package in this repository; with an installed one it does nothing)
import jobs
import numpy as np
import tensord as td


class Screen:
    """Prints lines, with colour where the output is a terminal that has it."""

    def __init__(self):
        self._coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

    def paint(self, code, text):
        return f"\033[{code}m{text}\033[0m" if self._coloured else text

    def title(self, text, about=""):
        print(f"\n{self.paint('1', text)}  {about}")

    def row(self, name, value, note=""):
        print(f"   {name:<22}{value:>14}" + (f"   {self.paint('2', note)}" if note else ""))

    def verdict(self, error, limit, against="NumPy"):
        correct = bool(error <= limit)
        mark = self.paint("32", "ok") if correct else self.paint("1;31", f"WRONG, may be {limit:.0e}")
        print(f"   {'largest error':<22}{error:>14.1e}   {mark} {self.paint('2', 'against ' + against)}")
        return correct


def milliseconds(seconds):
    return f"{seconds * 1e3:,.2f} ms"


def timed(function):
    begin = time.perf_counter()
    result = function()
    return result, time.perf_counter() - begin


class Comparison:
    """Runs a program and its NumPy function alternately on the same arguments, and keeps what was measured."""

    def __init__(self, program, in_numpy, arguments, repeats):
        self.result, self.first_call = timed(lambda: program(*arguments))
        self.expected = in_numpy(*arguments)
        self.numpy_times, self.times, self.stats = [], [], []
        for _ in range(repeats):
            self.numpy_times.append(timed(lambda: in_numpy(*arguments))[1])
            self.times.append(timed(lambda: program(*arguments))[1])
            self.stats.append(program.stats)

    def print(self, screen, program, numpy_note=""):
        ours, numpy = statistics.median(self.times), statistics.median(self.numpy_times)
        run = statistics.median(stats.run_time for stats in self.stats)
        queue = statistics.median(stats.queue_time for stats in self.stats)
        print_compilation(screen, program)
        screen.row("NumPy", milliseconds(numpy), numpy_note)
        screen.row(
            "tensord",
            milliseconds(ours),
            f"round trip, arguments and results included; {numpy / ours:.2f}x NumPy's speed",
        )
        screen.row("  on the server", milliseconds(run), f"computing, after {milliseconds(queue)} in the queue")
        hits = sum(stats.source == "memory" for stats in self.stats)
        screen.row("cache", f"{hits} of {len(self.stats)}", "calls found the program compiled")


def print_compilation(screen, program):
    note = {"compiled": "compiled now", "memory": "already in the server's memory", "disk": "from the server's disk"}
    described = (
        f"{len(program.graph.nodes)} nodes, {note.get(program.source, program.source)}, {program.fingerprint[:12]}"
    )
    screen.row("compile", milliseconds(program.compile_time), described)


def run_attention(screen, client, arguments):
    batch, length = (2, 128) if arguments.quick else (8, 512)
    heads, head_width = 4, 64
    screen.title("Attention block", f"{heads} heads, {batch} x {length} x {head_width} each, F32")
    values = jobs.attention_arguments(np.random.default_rng(1), batch, length, heads * head_width)
    program = td.compile(jobs.attention_block, *values, client=client, device=arguments.device, static={"heads": heads})
    comparison = Comparison(program, functools.partial(jobs.attention_block, heads=heads), values, arguments.repeats)
    comparison.print(screen, program)
    in_double = jobs.attention_block(*(value.astype(np.float64) for value in values), heads=heads)
    return screen.verdict(np.abs(comparison.result - in_double).max(), 2e-5, "NumPy in F64")


def run_options(screen, client, arguments):
    count = 50_000 if arguments.quick else 1_000_000
    screen.title("Black–Scholes", f"calls and puts of {count:,} options, F64")
    values = jobs.option_arguments(np.random.default_rng(2), count)
    erf, erf_source = jobs.erf_of_numpy()
    # A symbolic size: the program is the same for any number of options.
    specs = [td.spec("n", "float64")] * 4
    program = td.compile(jobs.black_scholes, *specs, client=client, device=arguments.device)
    comparison = Comparison(program, functools.partial(jobs.black_scholes, erf=erf), values, arguments.repeats)
    comparison.print(screen, program, f"with {erf_source}")
    error = max(np.abs(comparison.result[kind] - comparison.expected[kind]).max() for kind in ("call", "put"))
    return screen.verdict(error, 1e-11)


def run_poisson(screen, client, arguments):
    size = 64 if arguments.quick else 256
    steps = 10
    screen.title("Poisson's equation", f"conjugate gradients on {size} x {size} points, F64, {steps} steps a call, in a session")
    f = jobs.charges(size)
    grid = td.spec((size, size), "float64")
    program = td.compile(jobs.gradient_steps, grid, grid, grid, td.spec((), "float64"), client=client,
                         device=arguments.device, static={"steps": steps})  # fmt: skip
    server_time = hits = 0
    solve = functools.partial(jobs.solve_poisson, f=f, tolerance=1e-10, most_calls=size)
    with client.session() as session:

        def advance(*state):
            """The grids stay on the server, where each call writes over those of the one before; a number comes back."""
            nonlocal server_time, hits
            state = [value.donate() if isinstance(value, td.RemoteArray) else value for value in state]
            result = program(*state, session=session, keep=(True, True, True, False))
            server_time += program.stats.run_time
            hits += program.stats.source == "memory"
            return result

        def solve_remotely():
            u, calls = solve(advance)
            return u.fetch(), calls

        (u, calls), ours = timed(solve_remotely)
    (u_numpy, numpy_calls), numpy = timed(lambda: solve(functools.partial(jobs.gradient_steps, steps=steps)))
    print_compilation(screen, program)
    screen.row("NumPy", milliseconds(numpy), f"{numpy_calls * steps} iterations")
    screen.row("tensord", milliseconds(ours), f"{calls * steps} iterations, {numpy / ours:.2f}x NumPy's speed")
    screen.row("  on the server", milliseconds(server_time), f"computing, {milliseconds(server_time / calls)} a call")
    screen.row("cache", f"{hits} of {calls}", "calls found the program compiled")
    residual = np.abs(jobs.minus_laplacian(u) - f).max() / np.abs(f).max()
    screen.row("residual", f"{residual:.1e}", "of the solution, relative to the charges")
    close = screen.verdict(np.abs(u - u_numpy).max() / np.abs(u_numpy).max(), 1e-8)
    return close and residual < 1e-8


def run_second_client(screen, arguments):
    """A client that has never compiled anything: the server knows its graph all the same."""
    screen.title("A second client", "compiles Black–Scholes again")
    with td.Client(arguments.target) as client:
        specs = [td.spec("n", "float64")] * 4
        program, waited = timed(lambda: td.compile(jobs.black_scholes, *specs, client=client, device=arguments.device))
    print_compilation(screen, program)
    screen.row("waited", milliseconds(waited), "tracing and one call")
    return program.source in ("memory", "joined")


NEXT = """
Where to go next
   clients/examples/python/quickstart.py   the Python client in a page
   clients/python/README.md                tracing, symbolic sizes, errors, the whole list of functions
   clients/examples/                       other languages
   tensordctl explain, info, validate      what the server does, from the shell
   docs/                                   architecture, operations, errors, running it for others
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--target", default=td.default_target(), help="the server, unix:/path or host:port (%(default)s)"
    )
    parser.add_argument("--device", default="", help="cpu, cuda, xla or one device, cuda:0 (the server's default)")
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer repeats")
    parser.add_argument("--repeats", type=int, help="runs of each job, of which the median counts (7, quick: 3)")
    arguments = parser.parse_args()
    arguments.repeats = arguments.repeats or (3 if arguments.quick else 7)

    screen = Screen()
    with td.Client(arguments.target) as client:
        client.wait_until_ready(10)
        info = client.server_info()
        devices = ", ".join(f"{device.name} ({device.kind})" for device in info.devices)
        screen.title(f"tensord {info.version}", f"at {arguments.target}: {devices}")
        results = [run(screen, client, arguments) for run in (run_attention, run_options, run_poisson)]
    results.append(run_second_client(screen, arguments))
    print(NEXT)
    if not all(results):
        print(screen.paint("1;31", "Some results are wrong."))
    return 0 if all(results) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except td.Unavailable as failure:
        print(failure, file=sys.stderr)
        sys.exit(2)
