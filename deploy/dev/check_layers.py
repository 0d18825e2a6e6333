#!/usr/bin/env python3
"""Checks that #include lines point down only. The layers are described in docs/extend/architecture.md."""
import functools
import os
import re
import sys

from project_files import ROOT, Findings, code_files, read_lines

# Folders of the engine and the rooms of the large ones, bottom to top. Those of one row do not see each other. A room
# sees those of its own folder that the DEPS of its CMakeLists.txt name.
ENGINE_ROWS = (
    ("base",),
    ("tensor",),
    ("ir", "ops/scalar"),
    ("ops",),
    ("reference",),
    ("families", "autodiff", "algebra", "stablehlo"),
    ("fusion",),
    ("passes/rewriting",),
    ("passes/algebra", "passes/fusion", "passes/layout", "passes/lowering"),
    ("passes",),
    ("exec/program",),
    ("exec/backend",),
    ("exec/memory",),
    ("exec/binding",),
    ("runtime/compile",),
    ("runtime/programs",),
    ("runtime/devices",),
    ("tools",),
)

# Rooms of backends/cpu, likewise; "" is the folder itself. A room sees those that its DEPS name.
CPU_ROWS = (
    ("machine", "kernel", "math"),
    ("elementwise", "layout", "jit", "fft/lanes", "linalg/lanes", "linalg/lapack"),
    ("fft", "reduce", "indexing"),
    ("fused", "matmul"),
    ("contraction/operands",),
    ("contraction/semiring",),
    ("contraction",),
    ("linalg/divided", "joins"),
    ("linalg/large",),
    ("linalg",),
    ("",),
    ("tools",),
)

# Rooms of backends/cuda, likewise.
CUDA_ROWS = (
    ("abi",),
    ("libraries", "codegen"),
    ("device",),
    ("compile", "memory"),
    ("kernels",),
    ("fft", "linalg"),
    ("",),
)

# Rooms of server, likewise.
SERVER_ROWS = (
    ("admission", "config", "http", "profiling", "reflection"),
    ("connections", "lifecycle", "sessions"),
    ("observe/records",),
    ("observe/logs",),
    ("observe/metrics",),
    ("observe", "identity", "tools"),
    ("shared_memory", "tracing"),
    ("rpc/wire",),
    ("rpc/calls",),
    ("rpc/programs", "rpc/tensors"),
    ("rpc/execute", "rpc/operators"),
    ("rpc",),
    ("",),
)

# A house: how its rooms' libraries begin, and the row of each room.
HOUSES = {
    house: (prefix, {room: row for row, rooms in enumerate(rows) for room in rooms})
    for house, prefix, rows in (("engine", "tensord_", ENGINE_ROWS), ("backends/cpu", "tensord_cpu_", CPU_ROWS),
                                ("backends/cuda", "tensord_cuda_", CUDA_ROWS), ("server", "tensord_server_", SERVER_ROWS))
}

# Folders of clients, bottom to top, and the rooms of some of them. All see the headers of clients/cpp/include/tensord,
# which are for users too and so see none but themselves.
CLIENT_ROWS = {
    "clients": (("cpp",), ("load",), ("cli", "examples")),
    "clients/cpp": (("values",), ("files", "wire"), ("connection",), ("shared_memory",), ("transfer",), ("calls",), ("lazy",)),
    "clients/cli": (("shell", "files"), ("programs", "bench"), ("operators",), ("main",)),
}
PUBLIC_HEADERS = "clients/cpp/include/"

# Libraries that only some folders may name, by how their headers are spelled.
LIBRARIES = {
    "gRPC": re.compile(r"grpc(pp|\+\+)?/|tensord/.*\.grpc\.pb\.h$"),
    "Protocol Buffers": re.compile(r"google/(protobuf|rpc)/|.*\.pb\.h$"),
    "CUDA": re.compile(r"(cuda|cublas|cufft|cusolver|curand|nvrtc|nvJitLink|nvtx)\w*(/.*)?\.h$"),
    "BLAS or LAPACK": re.compile(r"(cblas|f77blas|lapack|lapacke|openblas_config)\.h$"),
    "prometheus-cpp": re.compile(r"prometheus/"),
    "spdlog or fmt": re.compile(r"(spdlog|fmt)/"),
}


def libraries_forbidden_in(path):
    """Names of the libraries that the file may not include."""
    allowed = {
        "engine": set(),
        "backends": {"BLAS or LAPACK"},
        "proto": {"Protocol Buffers"},
        "server": {"gRPC", "Protocol Buffers"},
        "clients": {"gRPC", "Protocol Buffers"},
    }.get(path.split("/")[0])
    if allowed is None:  # tests
        return set()
    allowed = set(allowed)
    if path.startswith("backends/cuda/"):
        allowed = {"CUDA"}
    if path.startswith(("server/observe/", "server/server_parts.", "server/metrics_sources.")):
        allowed.add("prometheus-cpp")
    if path.startswith("server/observe/logs/log."):
        allowed.add("spdlog or fmt")
    return set(LIBRARIES) - allowed


def refuse_project_include(path, included):
    """The reason why `path` may not include the project's header `included`, or None."""
    here, there = path.split("/"), included.split("/")
    if there[0] == "tests" and here[0] != "tests":
        return "product code includes nothing of tests/. Move what both need below engine/ or server/"
    if here[0] == "tests":
        return None
    if here[0] == "clients":
        if there[0] not in ("clients", "proto", "tensord"):
            return f"a client knows the wire contract only, never {there[0]}/. Go through proto/ or copy the few lines"
        if included.startswith("proto/codec/"):
            return "clients do not see the server's codec"
        return refuse_client_include(path, included) if there[0] == "clients" else None
    if there[0] == "clients" or os.path.exists(os.path.join(ROOT, PUBLIC_HEADERS, included)):
        return "only clients include clients/"
    if here[0] == "engine":
        if there[0] != "engine":
            return f"engine/ does not see {there[0]}/. Let the upper layer pass it in"
        return refuse_engine_include(path, here, there)
    if here[0] == "backends":
        if there[0] not in ("backends", "engine"):
            return f"a backend sees engine/ only, not {there[0]}/"
        if there[0] == "backends" and there[1] != here[1]:
            return f"backends do not see each other ({there[1]}). Move what both need to engine/exec/backend/"
        if there[0] == "backends" and "/".join(here[:2]) in HOUSES:
            return refuse_room_include("/".join(here[:2]), "/".join(here[2:-1]), "/".join(there[2:-1]))
        return None
    if here[0] == "proto" and there[0] not in ("proto", "engine", "tensord"):
        return f"proto/codec/ sees engine/ only, not {there[0]}/"
    if here[0] == "server" and there[0] == "backends" and path != "server/devices.cc":
        return "only server/devices.cc names a concrete backend. Use the interfaces in engine/exec/backend/"
    if here[0] == there[0] == "server":
        return refuse_room_include("server", "/".join(here[1:-1]), "/".join(there[1:-1]))
    return None


# Folders whose sources are a part of the library above them: the two see each other.
PARTS = {"ops/derivatives": "ops"}


def refuse_engine_include(path, here, there):
    own, other = (PARTS.get(room, room) for room in ("/".join(here[1:-1]), "/".join(there[1:-1])))
    if here[1] == there[1] == "families":
        if there[-2] != "families" and own != other and path != "engine/families/all_families.cc":
            return f"families do not see each other ({there[-2]}). Only engine/families/all_families.cc lists them"
        return None
    if there[1] == "families" and other != "families":
        return "only engine/families/all_families.cc names a family. Include engine/families/all_families.h"
    return refuse_room_include("engine", "families" if here[1] == "families" else own, other)


def refuse_client_include(path, included):
    if included.startswith(PUBLIC_HEADERS):
        return f"spell it as users do: {included.removeprefix(PUBLIC_HEADERS)}"
    if path.startswith(PUBLIC_HEADERS):
        return "a user has the headers below include/ only. Declare what is needed, and define it in a source"
    if path.startswith("clients/examples/"):
        return "examples include what users can. Show it with the headers of tensord/"
    for folder, rows in CLIENT_ROWS.items():
        prefix = folder + "/"
        if not (path.startswith(prefix) and included.startswith(prefix)):
            continue
        own, other = (name.removeprefix(prefix).partition("/")[0] for name in (path, included))
        row = {room: row for row, rooms in enumerate(rows) for room in rooms}
        for room in (own, other):
            if room not in row:
                return f"{prefix}{room} has no place in the order. Add it to CLIENT_ROWS in deploy/dev/check_layers.py"
        if own != other and row[other] == row[own]:
            return f"{prefix}{own}/ and {prefix}{other}/ stand beside each other. Move what both need down"
        if row[other] > row[own]:
            return f"{prefix}{other}/ stands above {own}/. Move what is needed down, or pass it in from above"
    return None


def refuse_room_include(house, own, other):
    prefix, rows = HOUSES[house]
    for room in (own, other):
        if room not in rows:
            return f"{house}/{room}/ has no place in the order. Add it to the house's rows in deploy/dev/check_layers.py"
    if own == other:
        return None
    if rows[other] == rows[own]:
        return f"the rooms {own}/ and {other}/ stand beside each other. Move what both need down, or let one hand it to the other"
    if rows[other] > rows[own]:
        return f"the room {other or house}/ stands above {own}/. Move what is needed down, or pass it in from above"
    if house == "engine" and own.split("/")[0] != other.split("/")[0]:
        return None  # folders below come with those that the DEPS name
    library = room_library(prefix, other)
    if library not in room_dependencies(f"{house}/{own}" if own else house):
        return f"the room {own or house}/ does not name {library} in the DEPS of its CMakeLists.txt. Name it there"
    return None


def room_library(prefix, room):
    return "tensord_fft_lanes" if room == "fft/lanes" else prefix + room.replace("/", "_")


@functools.cache
def room_dependencies(folder):
    """What the CMakeLists.txt of the room gives to its targets."""
    text = "\n".join(read_lines(os.path.join(folder, "CMakeLists.txt")))
    found = re.findall(r"\b(?:tensord_library|tensord_binary|target_link_libraries)\(([^)]*)\)", text)
    return {word for arguments in found for word in arguments.split()}


def main():
    findings = Findings("layers")
    include = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
    roots = {"proto", "engine", "backends", "server", "clients", "tests", "tensord"}
    for path in code_files((".h", ".cc", ".cu", ".cuh", ".inc", ".def")):
        forbidden = libraries_forbidden_in(path)
        for number, line in enumerate(read_lines(path), 1):
            match = include.match(line)
            if not match:
                continue
            quote, included = match.groups()
            if included.startswith(("../", "./")):
                findings.error(path, number, f"{included} is relative. Include from the repository's root")
                continue
            for library in sorted(forbidden):
                if LIBRARIES[library].match(included):
                    findings.error(path, number, f"{path.split('/')[0]}/ does not see {library} ({included}) here. "
                                                 "Keep it behind an interface of the layer that may")
            if included.split("/")[0] in roots and "/" in included:
                reason = refuse_project_include(path, included)
                if reason:
                    findings.error(path, number, f"{included}: {reason}")
            elif quote == '"' and "/" not in included:
                findings.error(path, number, f'"{included}": include from the repository\'s root, or with <> what is not ours')
    return findings.exit_status()


if __name__ == "__main__":
    sys.exit(main())
