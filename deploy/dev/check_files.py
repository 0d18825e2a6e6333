#!/usr/bin/env python3
"""Checks sizes, names, include guards, begins of comments and open ends of the project's files. The rules are in docs/extend/style.md."""
import collections
import os
import re
import sys

from project_files import CODE_FOLDERS, ROOT, Findings, code_files, list_files, read_lines

# Lines at which a file is worth a look, and at which it has to be split.
HEADER_BUDGET = (300, 500)
SOURCE_BUDGET = (500, 800)
TEST_BUDGET = (800, 800)

# Below these each folder of code says in a README what it is.
READMES = ("backends", "engine", "server", "proto", "clients")
# Below these each folder holds so few files that a reader sees all.
ROOMS = ("backends/", "clients/", "engine/", "proto/", "server/", "tests/unit/", "tests/e2e/server/")
FILES_BUDGET = 45

# Names that say nothing about what is inside.
EMPTY_NAMES = {"util", "utils", "helper", "helpers", "common", "misc", "manager", "stuff", "impl"}

# A comment that begins so leaves open what it speaks of.
NO_SUBJECT = re.compile(r"\s*//+\s*(What|Whatever|Whether|Who|Whoever|Whose|Where|Which|Those|Nothing|Of|By|As)\b")

OPEN_END = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b(?!\(#\d+\))")


def check_budgets(findings):
    for path in code_files((".h", ".cc", ".cu", ".cuh", ".inc", ".py")):
        if path.startswith("tests/"):
            warn, fail = TEST_BUDGET
        else:
            warn, fail = HEADER_BUDGET if path.endswith((".h", ".cuh")) else SOURCE_BUDGET
        count = len(read_lines(path))
        if count > fail:
            findings.error(path, 1, f"{count} lines, at most {fail}. Split it by concept")
        elif count > warn:
            findings.warning(path, 1, f"{count} lines, more than {warn}. Look for the second concept in it")


def check_guards(findings):
    for path in code_files((".h",)):
        if path.endswith("-inl.h"):  # Highway includes these once for every instruction set
            continue
        spelled = path.removeprefix("clients/cpp/include/tensord/")  # where users see no other folder of ours
        guard = "TENSORD_" + re.sub(r"[^A-Za-z0-9]", "_", spelled).upper() + "_"
        lines = read_lines(path)
        directives = [(number, line) for number, line in enumerate(lines, 1) if line.startswith("#")]
        expected = [f"#ifndef {guard}", f"#define {guard}", f"#endif  // {guard}"]
        found = [line for _, line in directives[:2]] + [line for _, line in directives[-1:]]
        if found != expected:
            line = directives[0][0] if directives else 1
            findings.error(path, line, f"the include guard has to be {guard}, the last line '{expected[2]}'")


CONSTANT = re.compile(r"^(?:inline |static |alignas\(\d+\) )*const(?:expr)? [^;={(]*?\b(k[A-Z]\w*)(?: = |\[\] = |\{)")
ENUMERATORS = re.compile(r"^enum (?!class)\w* ?(?:: \w+ )?\{(.*)\};", re.MULTILINE)
UNNAMED = re.compile(r"^namespace \{$(.*?)^\}  // namespace$", re.MULTILINE | re.DOTALL)


def constants_of(text):
    names = {found.group(1) for found in map(CONSTANT.match, text.splitlines()) if found}
    for found in ENUMERATORS.finditer(text):
        names.update(re.findall(r"\bk[A-Z]\w*", found.group(1)))
    return names


def headers_behind(paths, includes):
    """The headers of the tree that the files include, directly or through others."""
    seen, waiting = set(), list(paths)
    while waiting:
        for header in includes.get(waiting.pop(), []):
            if header not in seen:
                seen.add(header)
                waiting.append(header)
    return seen


def target_folder(path):
    """The nearest folder above that makes a target: of the tests of a backend's rooms that is the backend's."""
    folder = os.path.dirname(path)
    while folder and not os.path.exists(os.path.join(ROOT, folder, "CMakeLists.txt")):
        folder = os.path.dirname(folder)
    return folder


def check_hidden_constants(findings):
    """Joined sources (docs/why/0045-builds-join-sources.md) see each other's unnamed namespaces before they see headers."""
    texts = {path: "\n".join(read_lines(path)) for path in code_files((".h", ".cc"))}
    includes = {path: re.findall(r'^#include "([^"]+)"', text, re.MULTILINE) for path, text in texts.items()}
    of_headers = {path: constants_of(text) for path, text in texts.items() if path.endswith(".h")}
    folders = {}
    for path, text in texts.items():
        if path.endswith(".cc") and "hwy/foreach_target.h" not in text:  # those stay apart
            folders.setdefault(target_folder(path), []).append(path)
    for sources in folders.values():
        headers = headers_behind(sources, includes)
        seen = {name: header for header in headers for name in of_headers.get(header, [])}
        for path in sources:
            for inside in UNNAMED.finditer(texts[path]):
                for name in sorted(constants_of(inside.group(1)) & seen.keys()):
                    line = texts[path].count("\n", 0, texts[path].index(name, inside.start())) + 1
                    findings.error(path, line, f"hides {name} of {seen[name]} from sources that are joined with this one")


def check_names(findings):
    for path in list_files():
        parts = path.split("/")
        for part in parts if parts[0] in CODE_FOLDERS or parts[0] == "deploy" else []:
            name = part.lower().split(".")[0].replace("common_subexpressions", "")  # which is a name of a thing
            words = set(re.split(r"[^a-z0-9]+", name))
            empty = words & EMPTY_NAMES
            if empty:
                findings.error(path, 1, f"'{empty.pop()}' says nothing about the contents. What do they have in common?")
        if path.endswith((".cpp", ".cxx", ".hpp", ".C")):
            findings.error(path, 1, "sources end in .cc, headers in .h")
        stem = os.path.basename(path).split(".")[0]
        if parts[0] in CODE_FOLDERS and path.endswith((".h", ".cc", ".cu", ".proto")) and not re.fullmatch(r"[a-z0-9_]+(-inl)?", stem):
            findings.error(path, 1, "file names are snake_case")


def check_rooms(findings):
    paths = list_files()
    counts = collections.Counter(os.path.dirname(path) for path in paths if path.startswith(ROOMS))
    with_code = {os.path.dirname(path) for path in code_files((".h", ".cc", ".cu", ".cuh", ".proto", ".py"))
                 if path.split("/")[0] in READMES}
    for folder, count in sorted(counts.items()):
        if count > FILES_BUDGET:
            findings.error(folder, 1, f"{count} files, at most {FILES_BUDGET}. Which of them are a room of their own?")
    for folder in sorted(with_code):
        if folder + "/README.md" not in paths:
            findings.error(folder, 1, "no README.md. Say in ten lines what it promises, its main types, and where to start reading")


# Rooms whose numbers somebody measured or chose; not those of functions and of formats of numbers.
TUNED, UNTUNED = "backends/cpu/", "backends/cpu/math/"
NUMBER = re.compile(r"^\s*(?:inline |static )*constexpr (?:u?int\w*|size_t|double|float) (k[A-Z]\w*) = ([^;]*);(.*)")
# In a number besides operators: digits, casts, and the instruction set that a source is compiled for.
NUMBER_WORD = re.compile(r"\bu?int\d*(?:_t)?\b|\bstatic_cast<\w+>|\bHWY_\w+|\b0x[\da-fp.+-]+|\d[\d'.]*(?:e\d+)?")
MOST_OF_GROUP = 4


def check_tuning_constants(findings):
    """A number says what it trades: on its line, or above it and at most three more."""
    for path in code_files((".h", ".cc")):
        if not path.startswith(TUNED) or path.startswith(UNTUNED):
            continue
        spoken_for = 0  # constants that the last comment may still speak for
        for number, line in enumerate(read_lines(path), 1):
            found = NUMBER.match(line)
            if line.strip().startswith("//"):
                spoken_for = MOST_OF_GROUP
            elif not found and not line.strip().startswith("template"):
                spoken_for = 0
            elif found:
                name, value, rest = found.groups()
                is_number = re.search(r"\d", value) and not re.search(r"[A-Za-z]", NUMBER_WORD.sub("", value))
                if is_number and "//" not in rest and spoken_for == 0:
                    findings.error(path, number, f"{name} is mute. Say what it trades and on what it was measured, in a comment "
                                   f"on its line or above at most {MOST_OF_GROUP} that belong together")
                spoken_for = max(0, spoken_for - 1)


def check_comments(findings):
    for path in code_files((".h",)):
        was_comment = False
        for number, line in enumerate(read_lines(path), 1):
            is_comment = line.lstrip().startswith("//")
            begin = NO_SUBJECT.match(line) if is_comment and not was_comment else None
            if begin:
                findings.error(path, number, f"a comment begins with '{begin.group(1)}'. Begin a function's with a verb, "
                                             "another's with a noun, and name the thing")
            was_comment = is_comment


def check_open_ends(findings):
    suffixes = (".h", ".cc", ".cu", ".cuh", ".inc", ".def", ".py", ".sh", ".proto", ".cmake", ".txt", ".yml", ".yaml")
    for path in list_files():
        if not path.endswith(suffixes) and path not in ("dev", "Dockerfile", ".ci/run"):
            continue
        for number, line in enumerate(read_lines(path), 1):
            match = OPEN_END.search(line)
            if match:
                word = match.group(1)
                findings.error(path, number, f"{word} without an issue's number. Do it, or write {word}(#123)")


def main():
    findings = Findings("files")
    check_budgets(findings)
    check_guards(findings)
    check_names(findings)
    check_hidden_constants(findings)
    check_rooms(findings)
    check_comments(findings)
    check_open_ends(findings)
    check_tuning_constants(findings)
    return findings.exit_status()


if __name__ == "__main__":
    sys.exit(main())
