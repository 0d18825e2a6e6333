"""Compiles a folder of .proto files into a serialized FileDescriptorSet. Needs nothing but a protoc."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def compile_contract(proto_folder):
    """Descriptors of every tensord/**/*.proto under `proto_folder`, imports included, as bytes.

    Uses the protoc on PATH, or else the one of the package grpcio-tools. Raises RuntimeError where there is
    neither or where the compiler refuses the files.
    """
    proto_folder = pathlib.Path(proto_folder)
    names = sorted(str(path.relative_to(proto_folder)) for path in proto_folder.glob("tensord/**/*.proto"))
    if not names:
        raise RuntimeError(f"no .proto files in {proto_folder / 'tensord'}")
    with tempfile.TemporaryDirectory() as scratch:
        output = os.path.join(scratch, "contract.binpb")
        arguments = [f"-I{proto_folder}", "--include_imports", f"--descriptor_set_out={output}", *names]
        result = subprocess.run(
            _compiler_command() + arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if result.returncode != 0:
            raise RuntimeError(f"protoc could not compile the contract in {proto_folder}:\n{result.stdout}")
        with open(output, "rb") as file:
            return file.read()


def _compiler_command():
    protoc = shutil.which("protoc")
    if protoc:
        return [protoc]
    try:
        import grpc_tools
    except ImportError:
        raise RuntimeError(
            "the tensord package needs protoc to read its wire contract: install protobuf-compiler (Debian) or "
            "grpcio-tools (pip), or install the built package instead of running from a checkout"
        ) from None
    # grpc_tools keeps the well-known types in a folder of its own, which a bare call does not search.
    bundled = os.path.join(os.path.dirname(grpc_tools.__file__), "_proto")
    return [sys.executable, "-m", "grpc_tools.protoc", f"-I{bundled}"]
