"""The files of the project, and the form of a finding. Used by the check_*.py scripts."""
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CODE_FOLDERS = ("proto", "engine", "backends", "server", "clients", "tests")


def list_files():
    """Paths from the repository root of all files that git tracks or would add; without git, all but the build's."""
    try:
        listed = subprocess.run(
            ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
        paths = [path for path in listed if path]
    except (OSError, subprocess.CalledProcessError):
        paths = []
        for folder, folders, names in os.walk(ROOT):
            folders[:] = [name for name in folders if name not in (".git", "build", "__pycache__", ".venv")]
            paths += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names]
    return sorted(path for path in set(paths) if os.path.isfile(os.path.join(ROOT, path)))


def code_files(suffixes):
    return [path for path in list_files() if path.split("/")[0] in CODE_FOLDERS and path.endswith(tuple(suffixes))]


def read_lines(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()


class Findings:
    """Counts what it prints: an error fails the check, a warning does not."""

    def __init__(self, rule):
        self.rule = rule
        self.error_count = 0

    def error(self, path, line, message):
        self.error_count += 1
        print(f"{path}:{line}: {self.rule}: {message}")

    def warning(self, path, line, message):
        print(f"{path}:{line}: {self.rule}: warning: {message}")

    def exit_status(self):
        return 1 if self.error_count else 0
