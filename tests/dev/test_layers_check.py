"""What ./dev check layers finds in a tree of sources, above all in houses with rooms."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

FILES = {
    "backends/cpu/machine/thread_pool.h": "",
    "backends/cpu/math/vector_math.h": "",
    "backends/cpu/matmul/CMakeLists.txt": "tensord_library(tensord_cpu_matmul DEPS tensord_tensor\n  tensord_cpu_machine)\n",
    "backends/cpu/matmul/gemm.h": '#include "backends/cpu/machine/thread_pool.h"\n#include "engine/tensor/dtype.h"\n',
    "backends/cpu/fft/lanes/lanes.h": "",
    "backends/cpu/fft/CMakeLists.txt": "tensord_library(tensord_cpu_fft DEPS tensord_base tensord_fft_lanes)\n",
    "backends/cpu/fft/line_step.h": '#include "backends/cpu/fft/lanes/lanes.h"\n',
    "engine/base/status.h": "",
    "engine/fusion/micro_program.h": "",
    "engine/passes/rewriting/pass.h": '#include "engine/base/status.h"\n',
    "engine/passes/fusion/CMakeLists.txt": "tensord_library(tensord_passes_fusion DEPS tensord_fusion tensord_passes_rewriting)\n",
    "engine/passes/fusion/fuse.h": '#include "engine/fusion/micro_program.h"\n#include "engine/passes/rewriting/pass.h"\n',
    "engine/exec/program/exec_program.h": '#include "engine/passes/rewriting/pass.h"\n',
    "engine/families/fft/ops.h": '#include "engine/base/status.h"\n',
    "backends/cuda/codegen/printer.h": '#include "engine/fusion/micro_program.h"\n',
    "server/config/live_value.h": "",
    "server/rpc/wire/CMakeLists.txt": "tensord_library(tensord_server_rpc_wire DEPS tensord_server_config)\n",
    "server/rpc/wire/slice_reader.h": '#include "server/config/live_value.h"\n',
    "server/rpc/programs/program_lookup.h": "",
    "server/CMakeLists.txt": "target_link_libraries(tensord_server PUBLIC tensord_server_rpc_programs)\n",
    "server/daemon.cc": '#include "server/rpc/programs/program_lookup.h"\n',
    "clients/cpp/include/tensord/client.h": '#include "tensord/v1/compute.pb.h"\n#include "tensord/tensor.h"\n',
    "clients/cpp/include/tensord/tensor.h": "",
    "clients/cpp/wire/execute_wire.h": '#include "tensord/client.h"\n',
    "clients/cpp/calls/client.cc": '#include "clients/cpp/wire/execute_wire.h"\n',
    "clients/cli/bench/bench_command.cc": '#include "clients/load/load_run.h"\n#include "clients/cli/shell/command.h"\n',
}


def houses():
    """HOUSES of the check."""
    done = subprocess.run([sys.executable, "-B", "-c", "import check_layers, json; print(json.dumps(check_layers.HOUSES))"],
                          cwd=ROOT / "deploy/dev", capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class LayersCheckTest(unittest.TestCase):
    def check(self, changed):
        """The findings in a tree of FILES in which some have another text."""
        with tempfile.TemporaryDirectory() as folder:
            for path, text in {**FILES, **changed}.items():
                file = pathlib.Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            scripts = pathlib.Path(folder, "deploy/dev")
            scripts.mkdir(parents=True)
            for script in ("check_layers.py", "project_files.py"):
                shutil.copy(ROOT / "deploy/dev" / script, scripts)
            done = subprocess.run([sys.executable, "-B", str(scripts / "check_layers.py")], capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.returncode, 1 if done.stdout else 0)
        return done.stdout.splitlines()

    def assert_found(self, files, place, message):
        found = self.check(files)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(place + ": layers: "), found)
        self.assertIn(message, found[0])

    def test_a_whole_tree_has_no_findings(self):
        self.assertEqual(self.check({}), [])

    def test_a_room_sees_none_above_it(self):
        self.assert_found({"backends/cpu/machine/thread_pool.h": '\n#include "backends/cpu/matmul/gemm.h"\n'},
                          "backends/cpu/machine/thread_pool.h:2", "matmul/ stands above machine/")
        self.assert_found({"backends/cpu/fft/lanes/lanes.h": '#include "backends/cpu/fft/line_step.h"\n'},
                          "backends/cpu/fft/lanes/lanes.h:1", "fft/ stands above fft/lanes/")

    def test_a_room_sees_none_beside_it(self):
        self.assert_found({"backends/cpu/math/vector_math.h": '#include "backends/cpu/machine/thread_pool.h"\n'},
                          "backends/cpu/math/vector_math.h:1", "math/ and machine/ stand beside each other")

    def test_a_room_sees_not_the_backend(self):
        self.assert_found({"backends/cpu/matmul/gemm.h": '#include "backends/cpu/kernel_table.h"\n'},
                          "backends/cpu/matmul/gemm.h:1", "backends/cpu/ stands above matmul/")

    def test_a_room_sees_those_that_its_library_names(self):
        self.assert_found({"backends/cpu/matmul/gemm.h": '#include "backends/cpu/math/vector_math.h"\n'},
                          "backends/cpu/matmul/gemm.h:1", "does not name tensord_cpu_math in the DEPS")
        self.assert_found({"backends/cpu/fft/CMakeLists.txt": ""}, "backends/cpu/fft/line_step.h:1", "does not name tensord_fft_lanes")

    def test_a_room_has_a_place_in_the_order(self):
        self.assert_found({"backends/cpu/matmul/gemm.h": '#include "backends/cpu/sparse/rows.h"\n'},
                          "backends/cpu/matmul/gemm.h:1", "sparse/ has no place in the order")

    def test_rooms_of_the_server_have_an_order_too(self):
        self.assert_found({"server/rpc/wire/slice_reader.h": '#include "server/rpc/programs/program_lookup.h"\n'},
                          "server/rpc/wire/slice_reader.h:1", "rpc/programs/ stands above rpc/wire/")
        self.assert_found({"server/rpc/programs/program_lookup.h": '#include "server/rpc/tensors/put_tensor.h"\n'},
                          "server/rpc/programs/program_lookup.h:1", "rpc/programs/ and rpc/tensors/ stand beside each other")
        self.assert_found({"server/rpc/wire/CMakeLists.txt": ""}, "server/rpc/wire/slice_reader.h:1",
                          "does not name tensord_server_config in the DEPS")
        self.assert_found({"server/config/live_value.h": '#include "server/daemon.h"\n'}, "server/config/live_value.h:1",
                          "server/ stands above config/")

    def test_rooms_of_the_engine_have_an_order_too(self):
        self.assert_found({"engine/passes/rewriting/pass.h": '#include "engine/passes/fusion/fuse.h"\n'},
                          "engine/passes/rewriting/pass.h:1", "passes/fusion/ stands above passes/rewriting/")
        self.assert_found({"engine/exec/program/exec_program.h": '#include "engine/exec/backend/backend.h"\n'},
                          "engine/exec/program/exec_program.h:1", "exec/backend/ stands above exec/program/")
        self.assert_found({"engine/passes/fusion/CMakeLists.txt": "tensord_library(tensord_passes_fusion DEPS tensord_fusion)\n"},
                          "engine/passes/fusion/fuse.h:2", "does not name tensord_passes_rewriting in the DEPS")
        self.assert_found({"engine/exec/program/exec_program.h": '#include "engine/exec/pipeline.h"\n'},
                          "engine/exec/program/exec_program.h:1", "engine/exec/ has no place in the order")

    def test_families_do_not_see_each_other(self):
        self.assert_found({"engine/families/fft/ops.h": '#include "engine/families/linalg/ops.h"\n'}, "engine/families/fft/ops.h:1",
                          "families do not see each other (linalg)")
        self.assert_found({"engine/fusion/micro_program.h": '#include "engine/families/fft/ops.h"\n'},
                          "engine/fusion/micro_program.h:1", "only engine/families/all_families.cc names a family")
        self.assert_found({"engine/families/fft/ops.h": '#include "engine/passes/rewriting/pass.h"\n'}, "engine/families/fft/ops.h:1",
                          "passes/rewriting/ stands above families/")

    def test_no_row_of_a_house_sees_the_next(self):
        """From each room an arrow to the row above it, and one to a room beside it."""
        for house, (_, rows) in houses().items():
            planted = {}
            for room, row in rows.items():
                for other in rows:
                    if other != room and rows[other] in (row, row + 1):
                        planted[f"{house}/{room}/to_{other.replace('/', '_')}.h".replace("//", "/")] = f"{house}/{other}/".replace("//", "/")
            found = self.check({path: f'#include "{folder}first.h"\n' for path, folder in planted.items()})
            self.assertGreater(len(planted), 0)
            self.assertEqual(sorted(line.split(":")[0] for line in found), sorted(planted), house)

    def test_one_file_of_the_server_names_backends(self):
        backend = '#include "backends/cpu/kernel_table.h"\n'
        self.assertEqual(self.check({"server/devices.cc": backend}), [])
        self.assert_found({"server/compose.cc": backend}, "server/compose.cc:1", "only server/devices.cc names a concrete backend")

    def test_the_engine_sees_no_backend(self):
        self.assert_found({"engine/exec/backend/backend.h": '#include "backends/cpu/kernel/kernel.h"\n'}, "engine/exec/backend/backend.h:1",
                          "engine/ does not see backends/")

    def test_a_clients_room_sees_none_above_it(self):
        self.assert_found({"clients/cpp/wire/execute_wire.h": '#include "clients/cpp/calls/pipeline.h"\n'},
                          "clients/cpp/wire/execute_wire.h:1", "clients/cpp/calls/ stands above wire/")
        self.assert_found({"clients/cli/files/npy.h": '#include "clients/cli/shell/console.h"\n'},
                          "clients/cli/files/npy.h:1", "clients/cli/files/ and clients/cli/shell/ stand beside each other")
        self.assert_found({"clients/load/load_run.h": '#include "clients/cli/bench/bench_report.h"\n'},
                          "clients/load/load_run.h:1", "clients/cli/ stands above load/")
        self.assert_found({"clients/cpp/odd/odd.h": '#include "clients/cpp/wire/execute_wire.h"\n'},
                          "clients/cpp/odd/odd.h:1", "clients/cpp/odd has no place in the order")

    def test_headers_for_users_see_themselves(self):
        self.assert_found({"clients/cpp/include/tensord/tensor.h": '#include "clients/cpp/wire/execute_wire.h"\n'},
                          "clients/cpp/include/tensord/tensor.h:1", "a user has the headers below include/ only")
        self.assert_found({"clients/cpp/wire/execute_wire.h": '#include "clients/cpp/include/tensord/client.h"\n'},
                          "clients/cpp/wire/execute_wire.h:1", "spell it as users do: tensord/client.h")
        self.assert_found({"clients/examples/cpp/quickstart.cc": '#include "clients/cpp/calls/program_calls.h"\n'},
                          "clients/examples/cpp/quickstart.cc:1", "examples include what users can")
        self.assert_found({"server/rpc/calls.h": '#include "tensord/client.h"\n'}, "server/rpc/calls.h:1", "only clients include clients/")


if __name__ == "__main__":
    unittest.main()
