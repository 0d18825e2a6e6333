"""An installation of the build, and outside projects that use it. The environment says which build: TENSORD_BUILD."""
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "deploy", "dev"), os.path.join(ROOT, "tests", "python")]
import project_files  # noqa: E402
import server_process  # noqa: E402

BUILD = os.environ["TENSORD_BUILD"]
# Always the same folder, so that the compiler's cache knows its paths.
WORK = os.path.join(BUILD, "packages")
OUTSIDE = os.path.join(ROOT, "tests", "packages", "outside")
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]


def run(command, **named):
    """Standard output. AssertionError with all that was printed if the command fails."""
    result = subprocess.run(command, capture_output=True, text=True, check=False, **named)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(command)} ended with {result.returncode}:\n{result.stdout[-6000:]}{result.stderr[-6000:]}")
    return result.stdout


def files_below(folder):
    return {os.path.relpath(os.path.join(parent, name), folder) for parent, _, names in os.walk(folder) for name in names}


def install(component, prefix):
    run(["cmake", "--install", BUILD, "--component", component, "--prefix", prefix])


def fresh(name):
    """An empty folder below WORK."""
    folder = os.path.join(WORK, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return folder


def copy_of_sources(name):
    """The project's files in a folder of another name, as somebody has them who fetches them."""
    folder = fresh(name)
    for path in project_files.list_files():
        if not path.startswith(("docs/", "tests/")):
            os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
            shutil.copy2(os.path.join(ROOT, path), os.path.join(folder, path))
    return folder


def library_folder(prefix):
    """The folder of the prefix that has the libraries: lib or, below /usr, lib/ARCHITECTURE."""
    (folder,) = {os.path.dirname(path) for path in files_below(prefix) if os.path.basename(path) == "libtensord_client.so"}
    return os.path.join(prefix, folder)


def build_outside(way, compiler, standard, prefix="", sources=""):
    """Path of the program that the outside project makes in this way."""
    folder = fresh(f"outside-{way}-{compiler}-{standard}")
    environment = dict(os.environ, PKG_CONFIG_PATH=os.path.join(library_folder(prefix), "pkgconfig") if prefix else "")
    run(["cmake", "-G", "Ninja", "-S", OUTSIDE, "-B", folder, f"-DWAY={way}", f"-DCMAKE_CXX_COMPILER={compiler}",
         f"-DCMAKE_CXX_STANDARD={standard}", "-DCMAKE_CXX_EXTENSIONS=OFF", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0",
         "-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=16", f"-DTENSORD_FOLDER={sources}", f"-DCMAKE_PREFIX_PATH={prefix}"], env=environment)
    run(["cmake", "--build", folder, "--target", "outside"])
    return os.path.join(folder, "outside")


def build_by_hand(compiler, standard, prefix):
    """The same program without CMake: the compiler and pkg-config."""
    libraries = library_folder(prefix)
    environment = dict(os.environ, PKG_CONFIG_PATH=os.path.join(libraries, "pkgconfig"))
    flags = run(["pkg-config", "--cflags", "--libs", "tensord-client"], env=environment).split()
    program = os.path.join(fresh(f"outside-by-hand-{compiler}-{standard}"), "outside")
    run([compiler, f"-std=c++{standard}", *WARNINGS, os.path.join(OUTSIDE, "main.cc"), "-o", program, *flags, f"-Wl,-rpath,{libraries}"])
    return program


def start_server(binary):
    os.environ["TENSORD_BINARY"] = binary
    return server_process.ServerProcess("--log-level=warning")
