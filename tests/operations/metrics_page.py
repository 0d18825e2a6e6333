"""The metrics that docs/operate/metrics.md declares, which ./dev check holds against the code, and who names them."""
import os
import re
import shutil

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROW = re.compile(r"^\| `(\w+)` \| (counter|gauge|histogram) \| ([^|]*) \|")
GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def declared():
    """Labels by metric; a histogram is its three series."""
    metrics = {}
    for line in read("docs/operate/metrics.md").splitlines():
        match = ROW.match(line)
        if match is None:
            continue
        name, kind, labels = match.groups()
        labels = set(re.findall(r"\w+", labels))
        if kind == "histogram":
            metrics[name + "_sum"] = metrics[name + "_count"] = labels
            metrics[name + "_bucket"] = labels | {"le"}
        else:
            metrics[name] = labels
    return metrics


def uses(expression):
    """Pairs of the metrics that an expression names and the labels that it selects them by."""
    found = []
    for match in re.finditer(r"(?<![\w:])((?:tensord|process)_\w+)(?:\{([^}]*)\})?", GROUPING.sub("", expression)):
        selected = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", re.sub(r'"[^"]*"', '""', match.group(2) or "")))
        found.append((match.group(1), selected))
    return found


def promtool():
    """Prometheus' own checker; None where it is missing."""
    built = os.path.join(ROOT, "build", "tools", "promtool")
    return shutil.which("promtool") or (built if os.access(built, os.X_OK) else None)
