"""What the programs of ``native/bench`` measured, as tables of ``docs/results.md``."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

from gnnbench.analysis.table_layout import Part
from gnnbench.core.units import binary, time

Row = dict[str, Any]


def bench_table(path: Path) -> tuple[str, Part] | None:
    """What a file tells, and its table; None of a file of another kind.

    A file is known by the first word or words of its name: those of the program that wrote it.
    """
    for program, told in PROGRAMS.items():
        if path.stem == program or path.stem.startswith(f"{program}_"):
            about, part = told(json.loads(path.read_text(encoding="utf-8")))
            return f"`python native/bench/{program}.py`: {about}", part
    return None


def _operators(found: Row) -> tuple[str, Part]:
    keys = ("name", "batch", "fanouts", "pick", "rows", "row_bytes", "mode", "dim", "edges")
    lines = []
    for result in found["results"]:
        line = {key: str(result[key]) for key in keys if key in result}
        line["ms"] = f"{result['wall_ms']:.3f} [{result['p10_ms']:.3f}, {result['p90_ms']:.3f}]"
        line["device ms"] = f"{result['device_ms']:.3f}" if "device_ms" in result else ""
        line["GB/s"] = f"{result['gb_per_s']:.0f}" if "gb_per_s" in result else ""
        lines.append(line)
    about = (
        f"{found['device']}, torch {found['torch']}; R-MAT graph of {found['nodes']} nodes and"
        f" {found['edges']} edges. Median and [10 %, 90 %] of the calls."
    )
    return about, Part((*keys, "ms", "device ms", "GB/s"), lines)


def _draws(found: Row) -> tuple[str, Part]:
    keys = ("name", "batch", "fanouts", "pick", "edges")
    lines = []
    for result in found["results"]:
        line = {key: str(result[key]) for key in keys}
        line["hubs"], line["workers"] = result.get("hubs", ""), result.get("worker", "")
        over = result.get("peak_over_blocks")
        line["peak over blocks"] = "" if over is None else f"{over:.2f}"
        line["ms, in a row"] = f"{result['run_ms']:.3f}" if "run_ms" in result else ""
        line["device ms"] = f"{result['device_ms']:.3f}"
        line["ms, one by one"] = f"{result['wall_ms']:.3f}" if "wall_ms" in result else ""
        lines.append(line)
    about = (
        f"{found['device']}, torch {found['torch']}; R-MAT graph of {found['nodes']} nodes and"
        f" {found['edges']} edges, {found['batches']} batches."
    )
    heads = (*keys, "hubs", "workers", "ms, in a row", "device ms", "ms, one by one")
    return about, Part((*heads, "peak over blocks"), lines)


def _twins(found: list[Row]) -> tuple[str, Part]:
    heads = ("name", "scale", "edges", "threads", "CPU", "CPU M edges/s", "GPU", "GPU M edges/s")
    lines = []
    for twin in found:
        line: Row = {key: str(twin[key]) for key in heads[:4]}
        for side, key in (("CPU", "cpu"), ("GPU", "cuda")):
            rate = twin.get(f"{key}_edges_per_s")
            line[side] = time(twin.get(f"{key}_graph_s"))
            line[f"{side} M edges/s"] = "" if rate is None else f"{rate / 1e6:.0f}"
        lines.append(line)
    return "Time to make the structure of a twin.", Part(heads, lines)


def _prepare(found: Row) -> tuple[str, Part]:
    """A row a size, and below what an edge takes by the line through them."""
    times = {"edges, labels, splits": "topology_s", "features": "features_s", "all": "whole_s"}
    sizes = {
        "host's peak": "topology_rss_bytes", "GPU's peak": "gpu_bytes", "stored": "stored_bytes",
        "features held": "features_bytes",
    }  # fmt: skip
    lines = []
    for result in found["results"]:
        line: Row = {"scale": f"{result['scale']:g}", "edges": f"{result['edges']:,}"}
        line |= {head: time(result[key]) for head, key in times.items()}
        line |= {head: binary(result[key]) for head, key in sizes.items()}
        lines.append(line)
    for words, told in (("ns or B an edge", "per_edge"), ("% off that line", "worst_off_percent")):
        if fits := found["lines"]:
            line = {"scale": words}
            for head, key in {**times, **sizes}.items():
                unit = 1e9 if told == "per_edge" and head in times else 1
                line[head] = f"{unit * fits[key][told]:.2f}"
            lines.append(line)
    about = (
        f"{found['dataset']} made anew, {found['device']}, {found['threads']} threads, the store in"
        f" {'memory' if found['store'] == 'memory' else 'a file system'}; medians of"
        f" {found['rounds']} rounds, processes' start in them."
    )
    return about, Part(("scale", "edges", *times, *sizes), lines)


def _memory_io(found: Row) -> tuple[str, Part]:
    """Of the shapes of a reader the fastest, and the slowest rate."""
    rated = [r for r in found["results"] if "memory" in r and "gb_per_s" in r]
    copy = next(r["gb_per_s"] for r in found["results"] if r["way"] == "pinned copy")
    keys = ("memory", "window", "way")
    rated.sort(key=lambda r: (r["memory"], r["window"]))  # ways as they were measured
    lines = []
    for (memory, window), rows in groupby(rated, lambda r: (r["memory"], r["window"])):
        ways: dict[str, list[Row]] = {}
        for row in rows:
            ways.setdefault(row["way"], []).append(row)
        for way, shapes in ways.items():
            best = max(shapes, key=lambda r: float(r["gb_per_s"]))
            shape = [f"{k} {best[k]}" for k in ("blocks", "depth", "page_bytes") if best.get(k)]
            slowest = min(r["gb_per_s"] for r in shapes)
            lines.append({
                "memory": memory, "window": str(window), "way": way,
                "ms": f"{best['ms']:.2f}", "share": f"{best['share']:.2f}",
                "GB/s": f"{best['gb_per_s']:.1f}",
                "of a copy": f"{best['gb_per_s'] / copy:.2f}",
                "best shape": ", ".join(shape),
                "shapes": str(len(shapes)) if len(shapes) > 1 else "",
                "slowest GB/s": f"{slowest:.1f}" if len(shapes) > 1 else "",
            })  # fmt: skip
    gib = found["table_rows"] * found["row_bytes"] / 2**30
    about = (
        f"{found['device']}, torch {found['torch']}; rows of {found['row_bytes']} B out of"
        f" {gib:.0f} GiB. Rates are of distinct rows, ordering included; medians. A pinned copy of"
        f" a batch's bytes: {copy:.1f} GB/s."
    )
    heads = (*keys, "ms", "share", "GB/s", "of a copy", "best shape", "shapes", "slowest GB/s")
    return about, Part(heads, lines)


def _host_gather(found: Row) -> tuple[str, Part]:
    torch_ms = next(
        (r["wall_ms"] for r in found["results"] if r["name"] == "index_select + pinned copy"), None
    )
    lines = []
    for result in found["results"]:
        line = {"name": result["name"], "ms": f"{result['wall_ms']:.2f}"}
        line["GB/s"] = f"{result['wall_gb_per_s']:.1f}"
        if torch_ms is not None:
            line["over torch's two"] = f"{torch_ms / result['wall_ms']:.2f}"
        lines.append(line)
    about = (
        f"{found.get('device') or 'no GPU'}, torch {found['torch']}, {found['threads']} threads;"
        f" {found['rows']} rows of {found['row_bytes']} B out of"
        f" {found['table_bytes'] / 2**30:.0f} GiB. Medians."
    )
    return about, Part(("name", "ms", "GB/s", "over torch's two"), lines)


def _sharded(found: Row) -> tuple[str, Part]:
    """Of the shapes of a case the fastest, and the slowest rate."""
    lines = []
    for case, rows in groupby(found["results"], lambda r: str(r["case"])):
        shapes = list(rows)
        best = min(shapes, key=lambda r: float(r["ms"]))
        shape = [f"{k} {best[k]}" for k in ("depth", "blocks_per_sm") if best.get(k)]
        of_copy = best["peer_of_copy"] if best["peer_rows"] else None
        slowest = min(r["gb_s"] for r in shapes)
        lines.append({
            "case": case, "ms": f"{best['ms']:.3f}", "GB/s": f"{best['gb_s']:.1f}",
            "from peers GB/s": f"{best['peer_gb_s']:.1f}",
            "of a peer copy": "" if of_copy is None else f"{of_copy:.2f}",
            "best shape": ", ".join(shape),
            "slowest GB/s": f"{slowest:.1f}" if len(shapes) > 1 else "",
        })  # fmt: skip
    copy = found["copy_gb_s"]
    about = (
        f"{found['gpus']} x {found['device']}, torch {found['torch']}; {found['ids']} rows of"
        f" {found['row_bytes']} B a call and GPU, all GPUs at once, out of"
        f" {found['rows'] * found['row_bytes'] / 2**30:.0f} GiB; the slowest GPU's medians."
    )
    if copy is not None:
        about += f" A peer copy, all GPUs at once: {copy:.1f} GB/s into each."
    about += "".join(f" {note[0].upper()}{note[1:]}." for note in found.get("notes", ()))
    heads = ("case", "ms", "GB/s", "from peers GB/s", "of a peer copy", "best shape")
    return about, Part((*heads, "slowest GB/s"), lines)


def _aggregate(found: Row) -> tuple[str, Part]:
    lines = []
    for result in found["results"]:
        line = {"name": result["name"], "dim": str(result.get("dim", ""))}
        line |= {"ms": f"{result['ms']:.2f}", "the other's ms": f"{result['other_ms']:.2f}"}
        line["ratio"] = f"{result['ratio']:.2f}"
        line["GB/s"] = f"{result['gb_per_s']:.1f}" if "gb_per_s" in result else ""
        lines.append(line)
    about = (
        f"torch {found['torch']}, {found['threads']} threads, {found['clock']} clock; a block of"
        f" {found['dst']} destinations, {found['src']} sources and {found['edges']} edges. The"
        " other is torch's operator, but where the name says which; medians of calls in turns."
    )
    return about, Part(("name", "dim", "ms", "the other's ms", "ratio", "GB/s"), lines)


def _aggregate_gpu(found: Row) -> tuple[str, Part]:
    keys = ("what", "name", "dim")
    lines = []
    for result in found["results"]:
        line = {key: str(result[key]) for key in keys} | {"ms": f"{result['ms']:.4f}"}
        line["floor ms"] = f"{result['floor_ms']:.4f}" if "floor_ms" in result else ""
        lines.append(line)
    about = (
        f"{found['device']}, torch {found['torch']}. Medians of calls back to back, in turns; the"
        " floor is that of the bytes that must cross memory, at the rate of a copy."
    )
    return about, Part((*keys, "ms", "floor ms"), lines)


PROGRAMS: dict[str, Callable[[Any], tuple[str, Part]]] = {
    "operators": _operators,
    "draws": _draws,
    "twins": _twins,
    "prepare": _prepare,
    "memory_io": _memory_io,
    "host_gather": _host_gather,
    "sharded": _sharded,
    "aggregate_gpu": _aggregate_gpu,  # before what its name begins with
    "aggregate": _aggregate,
}
