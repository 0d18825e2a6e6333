"""What ./dev check layers finds in a tree of sources, of backends/cpu and server above all."""
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
    "server/config/live_value.h": "",
    "server/rpc/wire/CMakeLists.txt": "tensord_library(tensord_server_rpc_wire DEPS tensord_server_config)\n",
    "server/rpc/wire/slice_reader.h": '#include "server/config/live_value.h"\n',
    "server/rpc/programs/program_lookup.h": "",
    "server/CMakeLists.txt": "target_link_libraries(tensord_server PUBLIC tensord_server_rpc_programs)\n",
    "server/daemon.cc": '#include "server/rpc/programs/program_lookup.h"\n',
}


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

    def test_the_engine_sees_no_backend(self):
        self.assert_found({"engine/exec/backend/backend.h": '#include "backends/cpu/kernel/kernel.h"\n'}, "engine/exec/backend/backend.h:1",
                          "engine/ does not see backends/")


if __name__ == "__main__":
    unittest.main()
