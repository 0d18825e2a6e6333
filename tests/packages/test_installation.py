"""What cmake --install leaves, and outside projects that use it, or the sources, against the installed server.

TENSORD_PACKAGES=all: with both compilers, as C++20 and C++23. Otherwise with g++ as C++20."""
import os
import re
import shutil
import subprocess
import unittest

from installation import BUILD, WORK, build_by_hand, build_outside, copy_of_sources, files_below, fresh, install, library_folder, run, start_server

ALL = os.environ.get("TENSORD_PACKAGES") == "all"
KINDS = [(compiler, standard) for compiler in ("g++", "clang++-14") for standard in ("20", "23")] if ALL else [("g++", "20")]
COMPONENTS = ("server", "client", "client-dev")


class InstallationTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Each part is installed alone, and the whole is moved afterwards: nothing in it may know where it was put.
        parts = {component: fresh(f"installed-{component}") for component in COMPONENTS}
        cls.files = {}
        whole = fresh("whole")
        for component, folder in parts.items():
            install(component, folder)
            cls.files[component] = files_below(folder)
            install(component, whole)
        cls.prefix = os.path.join(WORK, "prefix")
        shutil.rmtree(cls.prefix, ignore_errors=True)
        os.rename(whole, cls.prefix)
        cls.server = start_server(os.path.join(cls.prefix, "bin", "tensord"))
        cls.addClassCleanup(cls.server.stop)

    def assert_works(self, program, libraries=""):
        environment = dict(os.environ, LD_LIBRARY_PATH=libraries)
        self.assertRegex(run([program, self.server.target], env=environment), r"^14 by tensord \d+\.\d+\.\d+\n$")

    def test_parts_share_no_file(self):
        for one, other in (("server", "client"), ("server", "client-dev"), ("client", "client-dev")):
            self.assertEqual(self.files[one] & self.files[other], set(), f"{one}, {other}")

    def test_server_has_its_files(self):
        wanted = {"bin/tensord", "bin/tensordctl", "etc/tensord/tensord.textproto", "lib/systemd/system/tensord.service",
                  "lib/sysusers.d/tensord.conf", "share/man/man8/tensord.8", "share/man/man1/tensordctl.1",
                  "share/bash-completion/completions/tensordctl", "share/zsh/site-functions/_tensordctl",
                  "share/fish/vendor_completions.d/tensordctl.fish", "share/doc/tensord/LICENSE",
                  "share/doc/tensord/third-party/ducc0.txt", "share/doc/tensord/third-party/tensord.spdx.json"}
        self.assertEqual(wanted - self.files["server"], set())

    def test_client_is_one_library_with_a_soname(self):
        libraries = {path for path in self.files["client"] if "/doc/" not in path}
        self.assertTrue(all(re.search(r"/libtensord_client\.so\.\d+\.\d+(\.\d+)?$", path) for path in libraries), libraries)
        dynamic = run(["readelf", "--dynamic", os.path.join(library_folder(self.prefix), "libtensord_client.so")])
        self.assertRegex(dynamic, r"\(SONAME\) +Library soname: \[libtensord_client\.so\.\d+\.\d+\]")
        for library in ("libgrpc++", "libabsl_status", "libprotobuf"):
            self.assertRegex(dynamic, rf"\(NEEDED\) .*\[{re.escape(library)}\.so", "a program's own and the client's are one")
        self.assertNotIn("RUNPATH", dynamic)

    def test_developers_get_headers_and_the_contract(self):
        headers = {path for path in self.files["client-dev"] if path.startswith("include/")}
        self.assertTrue(all(path.startswith("include/tensord/") and path.endswith(".h") for path in headers), headers)
        for name in ("tensord.h", "version.h", "v1/compute.pb.h", "v1/compute.grpc.pb.h", "linalg/v1/linalg.pb.h"):
            self.assertIn("include/tensord/" + name, headers)
        for name in ("v1/compute.proto", "v1/tensor.proto", "fft/v1/fft.proto"):
            self.assertIn("share/tensord/proto/tensord/" + name, self.files["client-dev"])

    def test_no_file_names_the_folder_of_the_build(self):
        # The unit of systemd has the paths of the installation itself; test_the_unit_starts_what_is_installed has those.
        for path in sorted(path for path in files_below(self.prefix) if not path.endswith(".service")):
            with open(os.path.join(self.prefix, path), "rb") as file, self.subTest(file=path):
                self.assertNotIn(BUILD.encode(), file.read())

    def test_settings_of_an_administrator_stay(self):
        folder = fresh("installed-twice")
        install("server", folder)
        settings = os.path.join(folder, "etc", "tensord", "tensord.textproto")
        with open(settings, "w", encoding="utf-8") as file:
            file.write("# mine\n")
        install("server", folder)
        with open(settings, encoding="utf-8") as file:
            self.assertEqual(file.read(), "# mine\n")

    def test_the_unit_starts_what_is_installed(self):
        folder = fresh("installed-unit")
        install("server", folder)
        with open(os.path.join(folder, "lib/systemd/system/tensord.service"), encoding="utf-8") as file:
            unit = file.read()
        started = re.search(r"^ExecStart=(\S+) --config=(\S+) ", unit, re.MULTILINE)
        self.assertEqual(started.groups(), (folder + "/bin/tensord", folder + "/etc/tensord/tensord.textproto"))
        run([started.group(1), "--config=" + started.group(2), "--check-config"])

    def test_find_package(self):
        for compiler, standard in KINDS:
            with self.subTest(compiler=compiler, standard=standard):
                self.assert_works(build_outside("find_package", compiler, standard, prefix=self.prefix))

    def test_find_package_refuses_other_versions_and_components(self):
        version = re.search(r'STRING "(\d+)\.(\d+)', run(["cat", os.path.join(self.prefix, "include/tensord/version.h")]))
        major, minor = map(int, version.groups())
        for arguments in (f"{major}.{minor + 1}", f"{major + 1}.0", "COMPONENTS nonsense"):
            with self.subTest(arguments=arguments):
                folder = fresh("refused")
                with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as file:
                    file.write("cmake_minimum_required(VERSION 3.25)\nproject(refused LANGUAGES C CXX)\n"
                               f"find_package(tensord {arguments} CONFIG)\nif(tensord_FOUND)\n  message(FATAL_ERROR found)\nendif()\n")
                run(["cmake", "-G", "Ninja", "-S", folder, "-B", folder + "/build", f"-DCMAKE_PREFIX_PATH={self.prefix}"])

    def test_pkg_config(self):
        for compiler, standard in KINDS:
            with self.subTest(compiler=compiler, standard=standard):
                if ALL:
                    self.assert_works(build_outside("pkg_config", compiler, standard, prefix=self.prefix), library_folder(self.prefix))
                self.assert_works(build_by_hand(compiler, "2b" if standard == "23" else standard, self.prefix))

    def test_sources_as_a_part(self):
        sources = copy_of_sources("other name")
        for compiler, standard in KINDS:
            for way in ("add_subdirectory", "fetch_content"):
                with self.subTest(way=way, compiler=compiler, standard=standard):
                    self.assert_works(build_outside(way, compiler, standard, sources=sources))


class PagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.prefix = fresh("installed-pages")
        install("server", cls.prefix)
        cls.commands = re.findall(r"^  ([a-z][a-z-]*) ", run([os.path.join(cls.prefix, "bin/tensordctl"), "help"]), re.MULTILINE)

    def page(self, path):
        with open(os.path.join(self.prefix, path), encoding="utf-8") as file:
            return file.read()

    def flags_of(self, command):
        text = run([os.path.join(self.prefix, "bin/tensordctl"), command, "--help"])
        return re.findall(r"^  (?:-\w, )?(--[a-z0-9-]+)", text, re.MULTILINE)

    def bash_completes(self, *words):
        """The completions of the last word; bash splits at "=" before it asks."""
        script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tensordctl; printf "%s\\n" "${COMPREPLY[@]}"')
        path = os.path.join(self.prefix, "share/bash-completion/completions/tensordctl")
        return run(["bash", "-c", script, "bash", path, "tensordctl", *words], cwd=self.prefix).split("\n")[:-1]

    def test_bash_completes_commands_flags_and_values(self):
        self.assertGreater(len(self.commands), 10)
        self.assertEqual(set(self.bash_completes("")), set(self.commands) | {"help"})
        for command in self.commands:
            with self.subTest(command=command):
                self.assertEqual([flag.rstrip("=") for flag in self.bash_completes(command, "--")], self.flags_of(command))
        self.assertEqual(self.bash_completes("run", "--ord"), ["--order="])
        self.assertEqual(set(self.bash_completes("run", "--order", "=", "")), {"row", "column"})
        self.assertEqual(self.bash_completes("run", "--order", "=", "r"), ["row"])
        self.assertIn("bin", self.bash_completes("run", "--input", "=", "x", "=", "b"))
        self.assertIn("share", self.bash_completes("run", "sh"))
        self.assertEqual(self.bash_completes("health", "sh"), [""])

    def test_zsh_and_fish_know_every_command_and_flag(self):
        zsh, fish = self.page("share/zsh/site-functions/_tensordctl"), self.page("share/fish/vendor_completions.d/tensordctl.fish")
        for command in self.commands:
            self.assertIn(f"\n    {command})\n", zsh)
            self.assertIn(f" -a {command} -d ", fish)
            for flag in self.flags_of(command):
                self.assertRegex(zsh, rf"'\*?{flag}(=-?)?\[")
                self.assertIn(f"__fish_seen_subcommand_from {command}' -l {flag[2:]} ", fish)

    def test_shells_take_their_files(self):
        for shell, arguments, path in (("bash", ["-n"], "share/bash-completion/completions/tensordctl"),
                                       ("zsh", ["-n"], "share/zsh/site-functions/_tensordctl"),
                                       ("fish", ["--no-execute"], "share/fish/vendor_completions.d/tensordctl.fish")):
            with self.subTest(shell=shell):
                if shutil.which(shell) is None:
                    self.assertFalse(ALL, f"there is no {shell}")
                    continue
                run([shell, *arguments, os.path.join(self.prefix, path)])

    def test_fish_completes(self):
        if shutil.which("fish") is None:
            self.assertFalse(ALL, "there is no fish")
            self.skipTest("there is no fish")
        path = os.path.join(self.prefix, "share/fish/vendor_completions.d/tensordctl.fish")

        def completes(line):
            printed = run(["fish", "--no-config", "-c", f"source '{path}'; complete --do-complete '{line}'"], cwd=self.prefix)
            return {entry.split("\t")[0] for entry in printed.splitlines()}
        self.assertEqual(completes("tensordctl "), set(self.commands))
        self.assertEqual(completes("tensordctl run --or"), {"--order="} if "--order=" in completes("tensordctl run --or") else {"--order"})
        self.assertLessEqual({"row", "column"}, {word.removeprefix("--order=") for word in completes("tensordctl run --order=")})

    def test_man_has_no_complaint(self):
        for path in ("share/man/man8/tensord.8", "share/man/man1/tensordctl.1"):
            with self.subTest(page=path):
                text = self.page(path).replace("\\-", "-")
                name = os.path.basename(path).split(".")[0]
                binary = os.path.join(self.prefix, "bin", name)
                words = [[binary, "--help"]] if name == "tensord" else [[binary, command, "--help"] for command in self.commands]
                for flag in {flag for command in words for flag in re.findall(r"^  (?:-\w, )?(--[a-z0-9-]+)", run(command), re.MULTILINE)}:
                    self.assertIn(flag, text)
                if shutil.which("groff") is None:
                    self.assertFalse(ALL, "there is no groff")
                    continue
                made = subprocess.run(["groff", "-k", "-man", "-ww", "-Tutf8", os.path.join(self.prefix, path)], capture_output=True, text=True, check=False)
                self.assertEqual((made.returncode, made.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
