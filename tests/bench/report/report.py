"""docs/use/benchmarks/report.md and its plots, out of what ./dev bench measured and of docs/use/benchmarks/shortfalls.md."""
import math
import os
import re
import textwrap

import bars

PEERS = ["numpy", "scipy", "numexpr", "torch", "torch_compile", "jax", "onnxruntime", "onednn", "opt_einsum", "opt_einsum_torch", "graphblas"]
# The families of workloads: rows of the tables, by the beginnings of names.
FAMILIES = [
    ("Elementwise chains", ("G01", "G01_gelu", "G02", "G03", "G03_lion")),
    ("Softmax, normalization, reductions", ("G04", "G05", "G06", "G06b")),
    ("Vectors", ("G27_",)),
    ("Transposes", ("G07_",)),
    ("Stencil, gather, scatter, decoding step", ("G08", "G26", "G09_", "G10", "G10_")),
    ("Matrix products", ("G11_", "G12_")),
    ("Models", ("G13", "G13_wide", "G14", "G15", "G16")),
    ("Linear algebra", ("G17", "G18", "G19_", "G20_")),
    ("Fourier transforms", ("G21_convolution", "G21_poisson_solver")),
    ("Parts of transforms, circuits, contractions", ("G21_pad", "G21_spectrum", "G21_poisson", "G22", "G23_", "G25_")),
    ("Tensor networks", ("G24_",)),
    ("Other algebras", ("G28_", "G29_")),
]
# Shares of the limit that are wanted, by what the limit is.
WANTED_SHARE = {"dram": 0.85, "fma": 0.95}


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def belongs(workload, family):
    return any(workload == name or (name.endswith("_") and workload.startswith(name)) for name in family)


def number(value):
    if value < 0.1:
        return "%.3g" % value
    return "%.3f" % value if value < 10 else "%.1f" % value


def ratio_of(row, peer):
    return row["peers"][peer] / row["ours_ms"]


def is_graph(row):
    return bool(re.match(r"G\d", row["workload"])) and not row["workload"].startswith("G01b_")


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def peers_in(rows):
    return [name for name in PEERS if any(name in row["peers"] for row in rows)]


def workload_table(rows):
    names = peers_in(rows)
    body = []
    for row in rows:
        cells = [row["workload"], str(row["threads"]), number(row["ours_ms"]),
                 "%s (%s)" % (number(row["limit_ms"]), row["limit"]), "%.0f %%" % (100 * row["share"])]
        for name in names:
            if name not in row["peers"]:
                cells.append("–")
            else:
                ratio = ratio_of(row, name)
                text = "%s (%.2f)" % (number(row["peers"][name]), ratio)
                cells.append("**%s**" % text if ratio < 1 else text)
        body.append(cells)
    return table(["workload", "threads", "ours, ms", "limit, ms", "share"] + names, body)


def rates_table(rows, machines):
    """The workloads bounded by memory, beside non-temporal copies of this run, and those bounded by products, beside
    OpenBLAS."""
    copies = {machine["threads"]: machine["copy_gb_per_s"] for machine in machines}
    body = []
    for row in rows:
        if row["limit"] == "dram" and row["threads"] in copies:
            copy = copies[row["threads"]]
            body.append([row["workload"], str(row["threads"]), "%.1f GB/s" % row["gb_per_s"], "%.1f GB/s" % copy,
                         "%.0f %%" % (100 * row["gb_per_s"] / copy)])
        elif row["limit"] == "fma":
            ours, blas = (row["flops"] / ms / 1e6 for ms in (row["ours_ms"], row["floors_ms"]["fma"]))
            body.append([row["workload"], str(row["threads"]), "%.0f GF/s" % ours, "%.0f GF/s" % blas,
                         "%.0f %%" % (100 * ours / blas)])
    return table(["workload", "threads", "ours", "copies, or OpenBLAS", "share"], body)


def summary_table(rows):
    body = []
    for threads in sorted({row["threads"] for row in rows}):
        for name in peers_in(rows):
            ratios = {row["workload"]: ratio_of(row, name) for row in rows if row["threads"] == threads and name in row["peers"]}
            if ratios:
                behind = [w for w, ratio in ratios.items() if ratio < 1]
                body.append([name, str(threads), "%.2f" % geometric_mean(list(ratios.values())), str(len(ratios)),
                             str(len(behind)), ", ".join(sorted(behind)) or "–"])
    return table(["peer", "threads", "geometric mean", "workloads", "faster than ours in", "which"], body)


def fastest_peers_text(rows):
    """The time of the fastest peer of each workload over ours, by count of threads."""
    texts = []
    for threads in sorted({row["threads"] for row in rows}):
        ratios = [min(row["peers"].values()) / row["ours_ms"] for row in rows if row["threads"] == threads and row["peers"]]
        if ratios:
            texts.append("%.2f on %d thread%s" % (geometric_mean(ratios), threads, "" if threads == 1 else "s"))
    return "The fastest peer's time over ours, geometric mean: %s.\n" % ", ".join(texts) if texts else ""


def compile_table(rows):
    names = [n for n in PEERS if any(n in row["peers_first_run_ms"] for row in rows)]
    body = []
    for row in rows:
        first = row["peers_first_run_ms"]
        body.append([row["workload"], number(row["ours_compile_ms"])] +
                    [number(first[n]) if n in first else "–" for n in names])
    return table(["workload", "ours"] + names, body)


def ops_table(rows):
    """Ops alone, beside the peers."""
    body = []
    for row in rows:
        op, dtype = row["workload"][len("G01b_"):].rsplit("_", 1)
        each = row["ns_per_element"]
        body.append([op, dtype, str(row["threads"]), "%.2f" % each] +
                    ["%.2f" % (each * ratio_of(row, n)) if n in row["peers"] else "–" for n in peers_in(rows)])
    return table(["op", "dtype", "threads", "ours"] + peers_in(rows), body)


def ulps_of(path):
    """Largest errors by op and dtype, from the table of a Markdown page whose columns are op, F32, F64."""
    ulps = {}
    if os.path.exists(path):
        with open(path) as f:
            for line in f:
                cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
                if len(cells) >= 3 and re.fullmatch(r"[a-z0-9_]+", cells[0]) and re.fullmatch(r"[0-9.]*", cells[1] + cells[2]):
                    ulps[cells[0], "f32"], ulps[cells[0], "f64"] = cells[1], cells[2]
    return ulps


def functions_table(rows, ulps):
    """The functions' own loops, of bench_vector_math: on arrays in the cache and on 2^20 elements."""
    found = {}
    for row in rows:
        op, dtype, size = row["workload"][len("vector_math_"):].rsplit("_", 2)
        found.setdefault((op, dtype), {})[size] = row
    body = []
    for (op, dtype), by_size in found.items():
        cells = [op, dtype, ulps.get((op, dtype)) or "–"]
        for size in ("cached", "1M"):
            row = by_size.get(size)
            cells.append("%.2f" % row["ns_per_element"] if row else "–")
            peer = row and row["peers"].get("numpy")
            cells.append("%.2f" % (row["ns_per_element"] * peer / row["ours_ms"]) if peer else "–")
        body.append(cells)
    return table(["function", "dtype", "ulp", "in the cache", "NumPy", "2^20", "NumPy"], body)


def small_matrices_table(rows):
    """The table of bench_small_matrices: a line for each operation and dtype, a pair of columns for each size."""
    found = {}
    for row in rows:
        op, dtype, size = row["workload"][len("small_matrices_"):].rsplit("_", 2)
        found.setdefault((op, dtype), {})[int(size)] = row
    sizes = sorted({size for by_size in found.values() for size in by_size})
    body = []
    for (op, dtype), by_size in found.items():
        cells = [op, dtype]
        for size in sizes:
            row = by_size.get(size)
            cells.append("%.3f" % row["us_per_matrix"] if row else "–")
            cells.append("%.1f" % ratio_of(row, "numpy") if row and "numpy" in row["peers"] else "–")
        body.append(cells)
    return table(["op", "dtype"] + [cell for size in sizes for cell in ("%d x %d" % (size, size), "NumPy")], body)


def calls_table(rows):
    """The table of the cost of a call beside its kernels."""
    body = [[row["workload"], str(row["threads"]), number(row["ours_ms"]),
             ", ".join("%s %s" % (n, number(ms)) for n, ms in sorted(row.get("peers", {}).items())) or "–"] for row in rows]
    return table(["workload", "threads", "ours, ms", "beside it"], body)


def sections_of(path):
    """Sections of a Markdown file by their headings' first words, which are names of workloads."""
    if not os.path.exists(path):
        return {}
    with open(path) as f:
        parts = re.split(r"^## +", f.read(), flags=re.MULTILINE)[1:]
    return {part.split("\n", 1)[0].strip(): part.split("\n", 1)[1].strip() for part in parts}


def behind(rows):
    """The rows in which a peer is faster."""
    return [row for row in rows if any(ratio_of(row, n) < 1 for n in row["peers"])]


def shortfalls(rows, notes):
    lines = []
    for workload in dict.fromkeys(row["workload"] for row in rows):
        found = []
        for row in (r for r in rows if r["workload"] == workload):
            behind = ["%s %.2f" % (n, ratio_of(row, n)) for n in PEERS if n in row["peers"] and ratio_of(row, n) < 1]
            if behind:
                found.append("%d thread%s: %s" % (row["threads"], "" if row["threads"] == 1 else "s", ", ".join(behind)))
            elif row["share"] < WANTED_SHARE.get(row["limit"], 0):
                found.append("%d thread%s: %.0f %% of the limit" % (row["threads"], "" if row["threads"] == 1 else "s", 100 * row["share"]))
        if not found:
            continue
        note = [text for heading, text in notes.items() if any(workload == n or workload.startswith(n + "_")
                                                              for n in heading.split(", "))]
        lines.append("### %s\n\n%s\n" % (workload, textwrap.fill("; ".join(found) + ".", 100)) + ("\n" + note[0] + "\n" if note else ""))
    return "\n".join(lines)


def machine_text(measured):
    lines = []
    for machine in measured.get("machine", []):
        lines.append([str(machine["threads"]), "%.1f" % machine["copy_gb_per_s"], "%.1f" % machine["triad_gb_per_s"],
                      "%.0f" % machine["f64_gflops"], "%.0f" % machine["f32_gflops"]])
    model = measured["machine"][0]["model"] if measured.get("machine") else ""
    versions = ", ".join("%s %s" % item for item in sorted(measured.get("versions", {}).items()))
    loads = ["%.1f" % m["load"] for m in measured.get("machine", []) if "load" in m]
    also = " Load of the machine when the runs began: %s." % ", ".join(loads) if loads else ""
    return textwrap.fill("Processor: %s. Peers: %s.%s" % (model, versions, also), 100) + "\n\n" + table(
        ["threads", "copy, GB/s", "triad, GB/s", "FMA F64, GF/s", "FMA F32, GF/s"], lines)


INTRODUCTION = """# Benchmark report

Written by `./dev bench --report`; [how it measures](README.md). Milliseconds are medians; in
brackets stands what the peer takes over what we take, bold where that is less than 1. The limit is
the longer of moving the operands and results once and of computing: products at OpenBLAS's rate on
these sizes, sums and products at the rate of fused multiply-adds, functions at our own in the
cache, all measured in the same run on as many threads; `share` is the limit over ours. Linear
algebra and transforms are counted in operations of the usual algorithms. The limit of a network,
`steps`, is that of contracting it step by step in the best order that is known: the sum, over the
steps, of the longer of computing and of moving operands and result.
"""


def write(measured, folder):
    rows = [row for row in measured["workloads"] if is_graph(row)]
    ops = [row for row in measured["workloads"] if row["workload"].startswith("G01b_")]
    os.makedirs(folder, exist_ok=True)
    notes = sections_of(os.path.join(folder, "shortfalls.md"))
    parts = [INTRODUCTION, "## Machine\n\n" + machine_text(measured), "## Summary\n\n" + summary_table(rows)]
    for threads in sorted({row["threads"] for row in rows}):
        chosen = [row for row in rows if row["threads"] == threads]
        names = [n for n in ("torch", "torch_compile", "jax") if n in peers_in(chosen)]
        files = {"ratios_%d.svg" % threads: bars.ratio_bars(
                     "A peer's time over ours, threads: %d" % threads,
                     [(row["workload"], {n: ratio_of(row, n) for n in names if n in row["peers"]}) for row in chosen], names),
                 "shares_%d.svg" % threads: bars.share_bars(
                     "Share of the limit, threads: %d" % threads, [(row["workload"], row["share"]) for row in chosen])}
        for file, text in files.items():
            with open(os.path.join(folder, file), "w") as f:
                f.write(text)
            parts.append("![%s](%s)\n" % (file[:-4], file))
    parts.append("## Workloads\n")
    for title, family in FAMILIES:
        members = [row for row in rows if belongs(row["workload"], family)]
        if members:
            parts.append("### %s\n\n%s\n%s" % (title, workload_table(sorted(members, key=lambda r: r["workload"])),
                                              fastest_peers_text(members)))
    if any(row["limit"] in ("dram", "fma") for row in rows):
        parts.append("## Rates\n\nBytes of operands and results a second beside non-temporal copies of 128 MiB; of what\n"
                     "computes products, their operations a second beside OpenBLAS on the same matrices.\n\n" +
                     rates_table(rows, measured.get("machine", [])))
    if ops:
        parts.append("## Ops alone\n\nNanoseconds an element of 2^20, a graph of one op.\n\n" + ops_table(ops))
    functions = [row for row in measured["workloads"] if row["workload"].startswith("vector_math_")]
    if functions:
        parts.append("## Functions\n\nNanoseconds an element on one thread, and the largest error that\n"
                     "docs/use/numerics.md has.\n\n" + functions_table(functions, ulps_of(os.path.join(folder, "..", "numerics.md"))))
    small = [row for row in measured["workloads"] if row["workload"].startswith("small_matrices_")]
    if small:
        parts.append("## Small matrices\n\nMicroseconds a matrix in batches of 1,024 on one thread, and what NumPy takes over\n"
                     "that.\n\n" + small_matrices_table(small))
    calls = [row for row in measured["workloads"] if row["workload"].startswith(("in_process", "S1", "S2"))]
    if calls:
        parts.append("## Calls\n\n" + calls_table(calls))
    fewest = min((row["threads"] for row in rows), default=1)
    if rows:
        parts.append("## Compile times\n\nMilliseconds: ours to a program that can run; of a peer its first run, which is\n"
                     "where it compiles.\n\n" + compile_table([row for row in rows if row["threads"] == fewest]))
        missed = shortfalls(rows + behind(ops), notes)
        parts.append("## Where it falls short\n\n" + (missed or "Nowhere.\n"))
    with open(os.path.join(folder, "report.md"), "w") as f:
        f.write("\n".join(parts))
