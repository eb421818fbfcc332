"""Memory at an epoch's peak by what holds it, one panel per dataset and device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from gnnbench.analysis import metrics as m
from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.plots import style
from gnnbench.core.counters import MEMORY_BYTES
from gnnbench.schema.reader import Run

Row = Mapping[str, Any]

PANEL = ("dataset", "device")
HELD = "held"
OTHER, PROCESS = "other", "process"
# From below; anything else, of a stage from elsewhere, is drawn as other.
COMPONENTS = {
    "topology": ("#0072B2", "topology"),
    "sampler": ("#56B4E9", "sampler: tables, maps, working space"),
    "features": ("#E69F00", "features: table, cache, buffers"),
    "labels": ("#000000", "labels"),
    "order": ("#888888", "order of the seeds"),
    "model": ("#CC79A7", "model, gradients, optimizer"),
    "blocks": ("#009E73", "blocks of the batch"),
    "rows": ("#F0E442", "feature rows of the batch"),
    "activations": ("#D55E00", "activations"),
    "processes": ("#999933", "the system's other processes (producer, ranks), whole"),
    OTHER: ("#FFFFFF", "other: batches ahead and kept, what no allocator tells"),
}
UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def figure(run: Run) -> Figure | None:
    """Stacked bars whose sum is written above; None where nobody looked at memory.

    What a CPU's process held before anything was built, and what a run holds on the host for a GPU
    would make the bars unreadable: they are written above, too. A cell that was not looked at has
    its status alone.
    """
    known = Metrics(run.metrics)
    if not any(_parts(r, known) for r in run.cells):
        return None
    named = labels(run.cells)
    found = style.groups(run.cells, PANEL)
    widest = max(len(rows) for rows in found.values())
    slot = style.slot(_label(r, named) for rows in found.values() for r in rows)
    result, axes = style.panels(len(found), 1.4 + slot * widest, most=2)
    for ax, (key, rows) in zip(axes, found.items(), strict=True):
        _panel(ax, rows, named, known)
        ax.set_title(", ".join(key), fontsize=9)
    style.head(result, "Memory at an epoch's peak", named, PANEL)
    drawn = {c for r in run.cells for c, size in _parts(r, known).items() if size}
    handles: list[Any] = [
        Patch(facecolor=colour, label=words, edgecolor="#999999", lw=0.4)
        for component, (colour, words) in COMPONENTS.items()
        if component in drawn
    ]
    handles += style.doubts(run.cells)
    result.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return result


def _parts(row: Row, known: Metrics) -> dict[str, float]:
    """Bytes by component, in the order in which they are drawn."""
    told = {
        r["stage"]: r["value"]
        for r in known.of(row["id"])
        if r["name"] == MEMORY_BYTES.name
        and not r["where"]
        and r["stage"] not in (m.EPOCH, PROCESS)
    }
    parts = {component: told.pop(component, 0.0) for component in COMPONENTS} if told else {}
    return {**parts, OTHER: parts[OTHER] + sum(told.values())} if parts else {}


def _label(row: Row, named: Labels) -> str:
    name = named.system(row, "\n") + style.doubt(row)
    return "\n".join([name, *named.varying(row, PANEL).values()])


def _panel(ax: Axes, rows: Sequence[Row], named: Labels, known: Metrics) -> None:
    parts = [_parts(r, known) for r in rows]
    top = max((sum(p.values()) for p in parts), default=0.0) or 1.0
    size, unit = _unit(top)
    for x, (row, heights) in enumerate(zip(rows, parts, strict=True)):
        if not heights:
            style.failure(ax, x, row["status"])
            continue
        bottom = 0.0
        for component, height in heights.items():
            colour, _ = COMPONENTS[component]
            ax.bar(
                x, height / size, 0.66, bottom=bottom / size, color=colour, edgecolor="#999999",
                lw=0.4,
            )  # fmt: skip
            bottom += height
        ax.annotate(
            "\n".join([_text(bottom), *_beside(row, known)]), (x, bottom / size), xytext=(0, 3),
            textcoords="offset points", ha="center", va="bottom", fontsize=7,
        )  # fmt: skip
    ax.set_xticks(range(len(rows)), [_label(r, named) for r in rows], fontsize=8)
    ax.set_xlim(-0.6, len(rows) - 0.4)
    ax.set_ylim(0, top / size * 1.2)
    ax.set_ylabel(f"memory [{unit}]", fontsize=8)
    ax.tick_params(axis="y", labelsize=8)
    if not any(parts):
        style.nothing(ax)


def _beside(row: Row, known: Metrics) -> list[str]:
    """What is told in words alone."""
    found = []
    if process := known.value(row["id"], PROCESS, MEMORY_BYTES):
        found.append(f"+ {_text(process)} process")
    held = [known.value(row["id"], c, MEMORY_BYTES, HELD) or 0.0 for c in COMPONENTS]
    if any(held):
        found.append(f"+ {_text(sum(held))} on the host")
    return found


def _unit(size: float) -> tuple[int, str]:
    return next((u for u in UNITS if size >= u[0]), (1, "B"))


def _text(size: float) -> str:
    scale, unit = _unit(size)
    return f"{size / scale:.3g} {unit}"
