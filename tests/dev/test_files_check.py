"""The findings of ./dev check files in the folders of code."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOM = {"backends/cpu/math/README.md": "# math\n", "backends/cpu/math/source0.cc": ""}


class FilesCheckTest(unittest.TestCase):
    def check(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files.items():
                file = pathlib.Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            scripts = pathlib.Path(folder, "deploy/dev")
            scripts.mkdir(parents=True)
            for script in ("check_files.py", "project_files.py"):
                shutil.copy(ROOT / "deploy/dev" / script, scripts)
            done = subprocess.run([sys.executable, "-B", str(scripts / "check_files.py")], capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.returncode, 1 if done.stdout else 0)
        return done.stdout.splitlines()

    def test_a_room_has_a_readme(self):
        self.assertEqual(self.check(ROOM), [])
        found = self.check({"backends/cpu/math/source0.cc": ""})
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith("backends/cpu/math:1: files: no README.md"), found)
        found = self.check({"proto/tensord/v1/graph.proto": "", "clients/python/client.py": "", "tests/e2e/e2e_test.cc": ""})
        self.assertEqual([line.split(":")[0] for line in found], ["clients/python", "proto/tensord/v1"])

    def test_a_room_has_few_files(self):
        sources = {f"backends/cpu/math/source{index}.cc": "" for index in range(44)}
        self.assertEqual(self.check({**ROOM, **sources}), [])
        found = self.check({**ROOM, **sources, "backends/cpu/math/source44.cc": ""})
        self.assertEqual(len(found), 1, found)
        self.assertIn("backends/cpu/math:1: files: 46 files, at most 45", found[0])

    def test_tests_of_the_servers_rooms_are_few_too(self):
        found = self.check({f"tests/unit/server/rpc/one{index}_test.cc": "" for index in range(46)})
        self.assertEqual(len(found), 1, found)
        self.assertIn("tests/unit/server/rpc:1: files: 46 files, at most 45", found[0])

    def test_joined_tests_of_rooms_hide_no_constant(self):
        tests = "tests/unit/backends/cpu/"
        header = ("#ifndef TENSORD_TESTS_UNIT_BACKENDS_CPU_ROLES_H_\n#define TENSORD_TESTS_UNIT_BACKENDS_CPU_ROLES_H_\n"
                  "inline constexpr int kRows = 0;\n#endif  // TENSORD_TESTS_UNIT_BACKENDS_CPU_ROLES_H_\n")
        found = self.check({tests + "CMakeLists.txt": "", tests + "roles.h": header,
                            tests + "fused/walk_test.cc": "namespace {\nconstexpr int kRows = 5;\n}  // namespace\n",
                            tests + "math/exp_test.cc": f'#include "{tests}roles.h"\n'})
        self.assertEqual(len(found), 1, found)
        self.assertIn("hides kRows", found[0])

    def test_tuning_constants_say_what_they_trade(self):
        source = "backends/cpu/matmul/source.cc"
        room = {"backends/cpu/matmul/README.md": "# matmul\n"}
        number = "constexpr int64_t {} = int64_t{{64}} << 10;\n"
        mute = number.format("kPartBytes")
        found = self.check({**room, source: mute})
        self.assertEqual(len(found), 1, found)
        self.assertIn(f"{source}:1: files: kPartBytes is mute", found[0])
        for said in (mute.replace("\n", "  // half or twice: 1 %\n"), "// A part stays in the cache.\n" + mute,
                     "constexpr int64_t kLines = kPartBytes / 64;\n", "constexpr bool kReads = true;\n"):
            self.assertEqual(self.check({**room, source: said}), [], said)
        group = [number.format(f"kPart{index}Bytes") for index in range(5)]
        self.assertEqual(self.check({**room, source: "// They stay in the cache.\n" + "".join(group[:4])}), [])
        found = self.check({**room, source: "// They stay in the cache.\n" + "".join(group)})
        self.assertEqual(len(found), 1, found)
        self.assertIn("kPart4Bytes", found[0])
        self.assertEqual(len(self.check({**room, source: "// They stay in the cache.\n\n" + mute})), 1)
        for choice in ("  static constexpr int kRows = HWY_TARGET == HWY_AVX3 ? 8 : 4;\n", "constexpr double kShare = 1.0 / 1000;\n"):
            self.assertEqual(len(self.check({**room, source: choice})), 1, choice)

    def test_a_comment_of_a_header_has_a_subject(self):
        path = "backends/cpu/math/steps.h"
        guard = "TENSORD_BACKENDS_CPU_MATH_STEPS_H_"
        header = f"#ifndef {guard}\n#define {guard}\n\n%s\n\n#endif  // {guard}\n"
        for begin in ("What", "Whether", "Those", "Who", "Nothing", "Of", "By", "As"):
            found = self.check({**ROOM, path: header % f"  // {begin} it is.\n  int steps();"})
            self.assertEqual(len(found), 1, found)
            self.assertIn(f"{path}:4: files: a comment begins with '{begin}'", found[0])
        for comment in ("// Returns the steps.\n// Of each row.", "// Assigns a row.", "int steps();  // of what is left"):
            self.assertEqual(self.check({**ROOM, path: header % comment}), [])
        self.assertEqual(self.check({**ROOM, "backends/cpu/math/source0.cc": "// As above.\n"}), [])


if __name__ == "__main__":
    unittest.main()
