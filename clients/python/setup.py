"""Build step: compiles the wire contract (the repository's proto folder) into one descriptor file of the package."""

import importlib.util
import pathlib
import shutil

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
# In the repository the contract stands beside the clients; a source distribution carries its own copy.
PROTO_FOLDERS = (HERE / "proto", HERE.parent.parent / "proto")


def proto_folder():
    for folder in PROTO_FOLDERS:
        if (folder / "tensord" / "v1" / "compute.proto").is_file():
            return folder
    raise FileNotFoundError(f"no tensord/v1/compute.proto in any of {[str(f) for f in PROTO_FOLDERS]}")


def contract_compiler():
    """The package's own compiler of the contract, loaded alone: importing the package would need its dependencies."""
    spec = importlib.util.spec_from_file_location("contract_compiler", HERE / "tensord" / "contract_compiler.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class BuildPackage(build_py):
    def run(self):
        super().run()
        if not getattr(self, "editable_mode", False):
            target = pathlib.Path(self.build_lib) / "tensord" / "contract.binpb"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(contract_compiler().compile_contract(proto_folder()))


class SourceDistribution(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        source = proto_folder() / "tensord"
        for path in source.rglob("*.proto"):
            copy = pathlib.Path(base_dir) / "proto" / "tensord" / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


setup(cmdclass={"build_py": BuildPackage, "sdist": SourceDistribution})
