"""Tables of ``docs/results.md`` from the output of the programs in ``native/bench``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TypedDict

from gnnbench.analysis.grouping import group_by
from gnnbench.analysis.table_layout import TextTable
from gnnbench.core.units import Time, binary, time


class BenchmarkResult(TypedDict, total=False):
    """One measurement. A program writes those of these keys that apply to it."""

    name: str
    what: str
    case: str
    way: str
    memory: str
    hubs: str
    worker: str
    window: int
    dim: int
    share: float
    ms: float
    wall_ms: float
    p10_ms: float
    p90_ms: float
    run_ms: float
    device_ms: float
    other_ms: float
    floor_ms: float
    ratio: float
    peak_over_blocks: float | None
    gb_s: float
    gb_per_s: float
    wall_gb_per_s: float
    peer_rows: int
    peer_gb_s: float
    peer_of_copy: float


class BenchmarkFile(TypedDict, total=False):
    """The file of a program, with the machine, the data and the results."""

    results: list[BenchmarkResult]
    device: str
    torch: str
    clock: str
    threads: int
    gpus: int
    nodes: int
    edges: int
    batches: int
    rows: int
    row_bytes: int
    table_rows: int
    table_bytes: int
    ids: int
    dst: int
    src: int
    copy_gb_s: float | None
    notes: list[str]


class PrepareFile(TypedDict):
    """The file of ``prepare``. ``lines`` has a linear fit by quantity."""

    dataset: str
    device: str
    threads: int
    store: str
    rounds: int
    results: list[dict[str, float]]
    lines: dict[str, dict[str, float]]


def bench_table(path: Path) -> tuple[str, TextTable] | None:
    """Description and table of a file; None for a file of no known program.

    The file's name begins with the name of the program that wrote it.
    """
    for program, table_of in PROGRAMS.items():
        if path.stem == program or path.stem.startswith(f"{program}_"):
            about, table = table_of(path.read_text(encoding="utf-8"))
            return f"`python native/bench/{program}.py`: {about}", table
    return None


def _texts(result: Mapping[str, object], keys: Sequence[str]) -> dict[str, str]:
    """The values of ``keys`` that a result has."""
    return {key: str(result[key]) for key in keys if key in result}


def _rounded(result: Mapping[str, object], key: str, decimals: int) -> str:
    """A number of a result, or "" where it has none."""
    number = result.get(key)
    return "" if number is None else f"{number:.{decimals}f}"


def _operators(text: str) -> tuple[str, TextTable]:
    file: BenchmarkFile = json.loads(text)
    keys = ("name", "batch", "fanouts", "pick", "rows", "row_bytes", "mode", "dim", "edges")
    lines = []
    for result in file["results"]:
        line = _texts(result, keys)
        line["ms"] = f"{result['wall_ms']:.3f} [{result['p10_ms']:.3f}, {result['p90_ms']:.3f}]"
        line["device ms"] = _rounded(result, "device_ms", 3)
        line["GB/s"] = _rounded(result, "gb_per_s", 0)
        lines.append(line)
    about = (
        f"{file['device']}, torch {file['torch']}; R-MAT graph of {file['nodes']} nodes and"
        f" {file['edges']} edges. Median and [10 %, 90 %] of the calls."
    )
    return about, TextTable((*keys, "ms", "device ms", "GB/s"), lines)


def _draws(text: str) -> tuple[str, TextTable]:
    file: BenchmarkFile = json.loads(text)
    keys = ("name", "batch", "fanouts", "pick", "edges")
    lines = []
    for result in file["results"]:
        line = _texts(result, keys)
        line["hubs"], line["workers"] = result.get("hubs", ""), result.get("worker", "")
        line["peak over blocks"] = _rounded(result, "peak_over_blocks", 2)
        line["ms, in a row"] = _rounded(result, "run_ms", 3)
        line["device ms"] = _rounded(result, "device_ms", 3)
        line["ms, one by one"] = _rounded(result, "wall_ms", 3)
        lines.append(line)
    about = (
        f"{file['device']}, torch {file['torch']}; R-MAT graph of {file['nodes']} nodes and"
        f" {file['edges']} edges, {file['batches']} batches."
    )
    heads = (*keys, "hubs", "workers", "ms, in a row", "device ms", "ms, one by one")
    return about, TextTable((*heads, "peak over blocks"), lines)


def _twins(text: str) -> tuple[str, TextTable]:
    results: list[dict[str, float]] = json.loads(text)
    heads = ("name", "scale", "edges", "threads", "CPU", "CPU M edges/s", "GPU", "GPU M edges/s")
    lines = []
    for twin in results:
        line: dict[str, str | Time] = {**_texts(twin, heads[:4])}
        for head, device in (("CPU", "cpu"), ("GPU", "cuda")):
            line[head] = time(twin.get(f"{device}_graph_s"))
            rate = twin.get(f"{device}_edges_per_s")
            line[f"{head} M edges/s"] = "" if rate is None else f"{rate / 1e6:.0f}"
        lines.append(line)
    return "Time to generate the structure of a twin.", TextTable(heads, lines)


def _prepare(text: str) -> tuple[str, TextTable]:
    file: PrepareFile = json.loads(text)
    times = {"edges, labels, splits": "topology_s", "features": "features_s", "all": "whole_s"}
    sizes = {
        "host's peak": "topology_rss_bytes", "GPU's peak": "gpu_bytes", "stored": "stored_bytes",
        "features in memory": "features_bytes",
    }  # fmt: skip
    lines = []
    for result in file["results"]:
        line: dict[str, str | Time] = {
            "scale": f"{result['scale']:g}",
            "edges": f"{result['edges']:,}",
        }
        line |= {head: time(result[key]) for head, key in times.items()}
        line |= {head: binary(result[key]) for head, key in sizes.items()}
        lines.append(line)
    for words, column in (
        ("ns or B an edge", "per_edge"), ("% off that line", "worst_off_percent"),
    ):  # fmt: skip
        if fits := file["lines"]:
            line = {"scale": words}
            for head, key in {**times, **sizes}.items():
                unit = 1e9 if column == "per_edge" and head in times else 1
                line[head] = f"{unit * fits[key][column]:.2f}"
            lines.append(line)
    about = (
        f"{file['dataset']} prepared anew, {file['device']}, {file['threads']} threads, the store"
        f" in {'memory' if file['store'] == 'memory' else 'a file system'}; medians of"
        f" {file['rounds']} rounds, start-up of processes included."
    )
    return about, TextTable(("scale", "edges", *times, *sizes), lines)


def _memory_io(text: str) -> tuple[str, TextTable]:
    """The fastest launch shape of each reader, and the slowest rate."""
    file: BenchmarkFile = json.loads(text)
    rated = [r for r in file["results"] if "memory" in r and "gb_per_s" in r]
    copy = next(r["gb_per_s"] for r in file["results"] if r["way"] == "pinned copy")
    keys = ("memory", "window", "way")
    rated.sort(key=lambda r: (r["memory"], r["window"]))  # ways as they were measured
    lines = []
    for (memory, window), rows in groupby(rated, lambda r: (r["memory"], r["window"])):
        for way, shapes in group_by(rows, lambda r: r["way"]).items():
            best = max(shapes, key=lambda r: r["gb_per_s"])
            slowest = min(r["gb_per_s"] for r in shapes)
            lines.append({
                "memory": memory, "window": str(window), "way": way,
                "ms": f"{best['ms']:.2f}", "share": f"{best['share']:.2f}",
                "GB/s": f"{best['gb_per_s']:.1f}",
                "of a copy": f"{best['gb_per_s'] / copy:.2f}",
                "best shape": _shape(best, ("blocks", "depth", "page_bytes")),
                "shapes": str(len(shapes)) if len(shapes) > 1 else "",
                "slowest GB/s": f"{slowest:.1f}" if len(shapes) > 1 else "",
            })  # fmt: skip
    gib = file["table_rows"] * file["row_bytes"] / 2**30
    about = (
        f"{file['device']}, torch {file['torch']}; rows of {file['row_bytes']} B out of"
        f" {gib:.0f} GiB. Rates are of distinct rows, ordering included; medians. A pinned copy of"
        f" a batch's bytes: {copy:.1f} GB/s."
    )
    heads = (*keys, "ms", "share", "GB/s", "of a copy", "best shape", "shapes", "slowest GB/s")
    return about, TextTable(heads, lines)


def _host_gather(text: str) -> tuple[str, TextTable]:
    file: BenchmarkFile = json.loads(text)
    torch_ms = next(
        (r["wall_ms"] for r in file["results"] if r["name"] == "index_select + pinned copy"), None
    )
    lines = []
    for result in file["results"]:
        line = {"name": result["name"], "ms": f"{result['wall_ms']:.2f}"}
        line["GB/s"] = f"{result['wall_gb_per_s']:.1f}"
        if torch_ms is not None:
            line["over torch's two"] = f"{torch_ms / result['wall_ms']:.2f}"
        lines.append(line)
    about = (
        f"{file.get('device') or 'no GPU'}, torch {file['torch']}, {file['threads']} threads;"
        f" {file['rows']} rows of {file['row_bytes']} B out of"
        f" {file['table_bytes'] / 2**30:.0f} GiB. Medians."
    )
    return about, TextTable(("name", "ms", "GB/s", "over torch's two"), lines)


def _sharded(text: str) -> tuple[str, TextTable]:
    """The fastest launch shape of each case, and the slowest rate."""
    file: BenchmarkFile = json.loads(text)
    lines = []
    for case, rows in groupby(file["results"], lambda r: r["case"]):
        shapes = list(rows)
        best = min(shapes, key=lambda r: r["ms"])
        of_copy = best["peer_of_copy"] if best["peer_rows"] else None
        slowest = min(r["gb_s"] for r in shapes)
        lines.append({
            "case": case, "ms": f"{best['ms']:.3f}", "GB/s": f"{best['gb_s']:.1f}",
            "from peers GB/s": f"{best['peer_gb_s']:.1f}",
            "of a peer copy": "" if of_copy is None else f"{of_copy:.2f}",
            "best shape": _shape(best, ("depth", "blocks_per_sm")),
            "slowest GB/s": f"{slowest:.1f}" if len(shapes) > 1 else "",
        })  # fmt: skip
    copy = file["copy_gb_s"]
    about = (
        f"{file['gpus']} x {file['device']}, torch {file['torch']}; {file['ids']} rows of"
        f" {file['row_bytes']} B a call and GPU, all GPUs at once, out of"
        f" {file['rows'] * file['row_bytes'] / 2**30:.0f} GiB; the slowest GPU's medians."
    )
    if copy is not None:
        about += f" A peer copy, all GPUs at once: {copy:.1f} GB/s into each."
    about += "".join(f" {note[0].upper()}{note[1:]}." for note in file.get("notes", ()))
    heads = ("case", "ms", "GB/s", "from peers GB/s", "of a peer copy", "best shape")
    return about, TextTable((*heads, "slowest GB/s"), lines)


def _aggregate(text: str) -> tuple[str, TextTable]:
    file: BenchmarkFile = json.loads(text)
    lines = []
    for result in file["results"]:
        line = {"name": result["name"], "dim": str(result.get("dim", ""))}
        line |= {"ms": f"{result['ms']:.2f}", "the other's ms": f"{result['other_ms']:.2f}"}
        line["ratio"] = f"{result['ratio']:.2f}"
        line["GB/s"] = _rounded(result, "gb_per_s", 1)
        lines.append(line)
    about = (
        f"torch {file['torch']}, {file['threads']} threads, {file['clock']} clock; a block of"
        f" {file['dst']} destinations, {file['src']} sources and {file['edges']} edges. The"
        " other is torch's operator unless the name says otherwise; medians of alternating calls."
    )
    return about, TextTable(("name", "dim", "ms", "the other's ms", "ratio", "GB/s"), lines)


def _aggregate_gpu(text: str) -> tuple[str, TextTable]:
    file: BenchmarkFile = json.loads(text)
    keys = ("what", "name", "dim")
    lines = []
    for result in file["results"]:
        line = _texts(result, keys) | {"ms": f"{result['ms']:.4f}"}
        line["floor ms"] = _rounded(result, "floor_ms", 4)
        lines.append(line)
    about = (
        f"{file['device']}, torch {file['torch']}. Medians of alternating calls; the floor is the"
        " time of a copy of the bytes that must cross memory."
    )
    return about, TextTable((*keys, "ms", "floor ms"), lines)


def _shape(result: Mapping[str, object], keys: Sequence[str]) -> str:
    """Parameters of a launch that are not 0."""
    return ", ".join(f"{key} {result[key]}" for key in keys if result.get(key))


PROGRAMS: dict[str, Callable[[str], tuple[str, TextTable]]] = {
    "operators": _operators,
    "draws": _draws,
    "twins": _twins,
    "prepare": _prepare,
    "memory_io": _memory_io,
    "host_gather": _host_gather,
    "sharded": _sharded,
    "aggregate_gpu": _aggregate_gpu,  # before its prefix
    "aggregate": _aggregate,
}
