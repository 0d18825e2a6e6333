#!/usr/bin/env python3
"""Prints the SPDX list of what is part of the binary tensord: python3 deploy/dev/spdx.py BUILD_FOLDER [NOTICES_FOLDER]

A scanner of packages sees what is installed beside the binary, and none of what was linked into it. That is asked of the build:
which archives the linker takes, and linked_in.txt and sources.txt say what they are. Into NOTICES_FOLDER go the licences' texts of
all of them, NAME.txt."""
import datetime
import fnmatch
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def rows_of(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return [line.split() for line in file if line.strip() and not line.startswith("#")]


def version():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.search(r"project\(tensord[^)]*VERSION ([\d.]+)", file.read()).group(1)


def linked_archives(build):
    """Names of the archives from outside of the build that the linker puts into tensord."""
    commands = subprocess.run(["ninja", "-C", build, "-t", "commands", "bin/tensord"], capture_output=True, text=True, check=True).stdout
    words = commands.splitlines()[-1].split()
    return {os.path.basename(word) for word in words if word.startswith("/") and word.endswith(".a") and not word.startswith(build + "/")}


def source_of(package):
    """Name and version of the source of a Debian package; None where it is not installed."""
    result = subprocess.run(["dpkg-query", "--show", "--showformat=${db:Status-Status} ${source:Package} ${source:Version}", package],
                            capture_output=True, text=True, check=False)
    status, *source = result.stdout.split() or [""]
    return source if result.returncode == 0 and status == "installed" else None


def parts_of(build):
    """Rows of linked_in.txt that this build has, and the archives that no row has."""
    left, parts = linked_archives(build), []
    for name, licence, package, *what in rows_of("linked_in.txt"):
        taken = {archive for archive in left if any(fnmatch.fnmatch(archive, pattern) for pattern in what)}
        left -= taken
        if taken or (what == ["headers"] and source_of(package)):
            parts.append((name, licence, package))
    return parts, sorted(left)


def entry(name, versioned, licence, purl):
    return {"SPDXID": f"SPDXRef-{name}", "name": name, "versionInfo": versioned, "licenseDeclared": licence, "licenseConcluded": "NOASSERTION",
            "copyrightText": "NOASSERTION", "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}] if purl else []}


def entries_of(parts):
    entries = [entry("tensord", version(), "Apache-2.0", "")]
    for name, licence, package in parts:
        source, versioned = source_of(package)
        entries.append(entry(name, versioned, licence, f"pkg:deb/debian/{source}@{versioned}?arch=source".replace("+", "%2B")))
    for name, versioned, _, licence, _ in rows_of("sources.txt"):
        entries.append(entry(name, versioned, licence, f"pkg:pypi/{name}@{versioned}"))
    return entries


def document(entries):
    made = int(os.environ.get("SOURCE_DATE_EPOCH") or datetime.datetime.now().timestamp())
    digest = hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()[:32]
    linked = [{"spdxElementId": "SPDXRef-tensord", "relationshipType": "CONTAINS", "relatedSpdxElement": part["SPDXID"]} for part in entries[1:]]
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"tensord-{version()}",
            "documentNamespace": f"https://spdx.org/spdxdocs/tensord-{version()}-{digest}",
            "creationInfo": {"created": datetime.datetime.fromtimestamp(made, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                             "creators": ["Tool: deploy/dev/spdx.py"]},
            "documentDescribes": ["SPDXRef-tensord"], "packages": entries, "relationships": linked}


def write_notices(parts, folder):
    os.makedirs(folder, exist_ok=True)
    for name, _, package in parts:
        shutil.copyfile(f"/usr/share/doc/{package}/copyright", os.path.join(folder, name + ".txt"))
    for name, versioned, _, _, notice in rows_of("sources.txt"):
        with open(os.path.join(ROOT, "build", "sources", f"{name}-{versioned}", notice), encoding="utf-8") as source:
            text = re.split(r"^#", source.read(), maxsplit=1, flags=re.MULTILINE)[0]
        with open(os.path.join(folder, name + ".txt"), "w", encoding="utf-8") as file:
            file.write(text)


def main():
    build = os.path.abspath(sys.argv[1])
    parts, unknown = parts_of(build)
    if unknown:
        print(f"spdx: the linker takes what deploy/dev/linked_in.txt does not name: {' '.join(unknown)}. Add it there and to docs/extend/dependencies.md",
              file=sys.stderr)
        return 1
    if len(sys.argv) > 2:
        write_notices(parts, sys.argv[2])
    json.dump(document(entries_of(parts)), sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
