"""Memory at an epoch's peak by component, one panel per dataset and device."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from gnnbench.analysis import metrics as m
from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.plots import style
from gnnbench.core.counters import MEMORY_BYTES
from gnnbench.schema import CellRow
from gnnbench.schema.reader import Run

PANEL = ("dataset", "device")
ON_HOST = "held"  # ``where`` of host memory that a run with a GPU uses
OTHER, PROCESS = "other", "process"
# From bottom to top. Stages of other packages are drawn as other.
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
    OTHER: ("#FFFFFF", "other: other batches, memory outside the allocator"),
}
UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def figure(run: Run) -> Figure | None:
    """Stacked bars with their sum; None if no cell's memory was measured.

    Memory of a CPU process before set-up and host memory of a run on a GPU are written above a bar,
    because they would dwarf it. A cell without a measurement shows its status.
    """
    known = Metrics(run.metrics)
    if not any(_parts(r, known) for r in run.cells):
        return None
    named = labels(run.cells)
    panels = style.groups(run.cells, PANEL)
    widest = max(len(rows) for rows in panels.values())
    slot = style.slot(_label(r, named) for rows in panels.values() for r in rows)
    result, axes = style.panels(len(panels), 1.4 + slot * widest, most=2)
    for ax, (key, rows) in zip(axes, panels.items(), strict=True):
        _panel(ax, rows, named, known)
        ax.set_title(", ".join(key), fontsize=9)
    style.head(result, "Memory at an epoch's peak", named, PANEL)
    drawn = {c for r in run.cells for c, size in _parts(r, known).items() if size}
    handles: list[Artist] = [
        Patch(facecolor=colour, label=words, edgecolor="#999999", lw=0.4)
        for component, (colour, words) in COMPONENTS.items()
        if component in drawn
    ]
    handles += style.doubts(run.cells)
    result.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return result


def _parts(row: CellRow, known: Metrics) -> dict[str, float]:
    """Bytes by component, in the order in which they are drawn."""
    sizes = {
        r["stage"]: r["value"]
        for r in known.of(row["id"])
        if r["name"] == MEMORY_BYTES.name
        and not r["where"]
        and r["stage"] not in (m.EPOCH, PROCESS)
    }
    parts = {component: sizes.pop(component, 0.0) for component in COMPONENTS} if sizes else {}
    return {**parts, OTHER: parts[OTHER] + sum(sizes.values())} if parts else {}


def _label(row: CellRow, named: Labels) -> str:
    name = named.system(row, "\n") + style.doubt(row)
    return "\n".join([name, *named.varying(row, PANEL).values()])


def _panel(ax: Axes, rows: Sequence[CellRow], named: Labels, known: Metrics) -> None:
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
            "\n".join([_text(bottom), *_additions(row, known)]), (x, bottom / size), xytext=(0, 3),
            textcoords="offset points", ha="center", va="bottom", fontsize=7,
        )  # fmt: skip
    ax.set_xticks(range(len(rows)), [_label(r, named) for r in rows], fontsize=8)
    ax.set_xlim(-0.6, len(rows) - 0.4)
    ax.set_ylim(0, top / size * 1.2)
    ax.set_ylabel(f"memory [{unit}]", fontsize=8)
    ax.tick_params(axis="y", labelsize=8)
    if not any(parts):
        style.hide_scale(ax)


def _additions(row: CellRow, known: Metrics) -> list[str]:
    """Sizes that are written above the bar."""
    texts = []
    if process := known.value(row["id"], PROCESS, MEMORY_BYTES):
        texts.append(f"+ {_text(process)} process")
    on_host = sum(known.value(row["id"], c, MEMORY_BYTES, ON_HOST) or 0.0 for c in COMPONENTS)
    if on_host:
        texts.append(f"+ {_text(on_host)} on the host")
    return texts


def _unit(size: float) -> tuple[int, str]:
    return next((u for u in UNITS if size >= u[0]), (1, "B"))


def _text(size: float) -> str:
    scale, unit = _unit(size)
    return f"{size / scale:.3g} {unit}"
