"""Memory at an epoch's peak by component, one panel per dataset and device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from gnnbench.analysis import metrics as m
from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.plots import bars, style
from gnnbench.analysis.plots.bars import Bar, Panel
from gnnbench.analysis.plots.page import SCREEN, Page
from gnnbench.core.counters import MEMORY_BYTES
from gnnbench.schema import CellRow
from gnnbench.schema.reader import Run

PANEL = ("dataset", "device")
ON_HOST = "held"  # ``where`` of host memory that a run with a GPU uses
OTHER, PROCESS = "other", "process"
# From left to right. Stages of other packages are drawn as other.
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
    OTHER: ("#DDDDDD", "other: other batches, memory outside the allocator"),
}
UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def figure(run: Run, page: Page = SCREEN) -> Figure | None:
    """Stacked bars, the smallest on top; None if no cell's memory was measured.

    A column on the right has the sums. It also has the memory of a CPU process before set-up and
    the host memory of a run on a GPU, which would dwarf the bars. A cell without a measurement, or
    an incorrect one, shows its status. A dashed line marks the reference.
    """
    known = Metrics(run.metrics)
    measured = [r for r in run.cells if _parts(r, known)]
    if not measured:
        return None
    named = labels(run.cells)
    omitted = style.usual(run.cells, named)
    panels = [
        _panel(", ".join(key), rows, named, known, omitted)
        for key, rows in style.groups(run.cells, PANEL).items()
    ]
    result, axes, hidden = bars.draw(page, panels)
    notes = [
        style.usual_note(omitted), style.group_note(r["system"] for r in run.cells), hidden,
    ]  # fmt: skip
    page.head(result, "Memory at an epoch's peak", named, PANEL, notes)
    drawn = {c for r in measured for c, size in _parts(r, known).items() if size}
    handles: list[Artist] = [
        Patch(facecolor=colour, label=words)
        for component, (colour, words) in COMPONENTS.items()
        if component in drawn
    ]
    if any(panel.lines for panel in panels):
        handles.append(style.reference_line("memory of the reference"))
    page.legend(result, [*handles, *style.cut_off(axes), *style.doubts(run.cells)])
    return result


def _parts(row: CellRow, known: Metrics) -> dict[str, float]:
    """Bytes by component, in the order in which they are drawn; none of an incorrect cell."""
    if row["status"] == "incorrect":
        return {}
    sizes = {
        r["stage"]: r["value"]
        for r in known.of(row["id"])
        if r["name"] == MEMORY_BYTES.name
        and not r["where"]
        and r["stage"] not in (m.EPOCH, PROCESS)
    }
    parts = {component: sizes.pop(component, 0.0) for component in COMPONENTS} if sizes else {}
    return {**parts, OTHER: parts[OTHER] + sum(sizes.values())} if parts else {}


def _panel(
    title: str, rows: Sequence[CellRow], named: Labels, known: Metrics, omitted: Mapping[str, str]
) -> Panel:
    sums = {r["id"]: sum(_parts(r, known).values()) for r in rows}
    scale, unit = _unit(max(sums.values()))
    references = [r for r in rows if r["id"] == r.get("reference_id") and sums[r["id"]]]
    ordered = sorted(rows, key=lambda r: (not sums[r["id"]], sums[r["id"]]))
    return Panel(
        title, f"memory [{unit}]", [_bar(r, named, known, omitted, scale) for r in ordered],
        column="memory", unit=unit,
        lines=[(sums[r["id"]] / scale, style.DASHED) for r in references] * (len(references) == 1),
    )  # fmt: skip


def _bar(
    row: CellRow, named: Labels, known: Metrics, omitted: Mapping[str, str], scale: int
) -> Bar:  # fmt: skip
    lines = (named.system(row) + style.doubt(row), style.settings(row, named, PANEL, omitted))
    parts = _parts(row, known)
    if not parts:
        return Bar(row["system"], lines, status=row["status"])
    total = sum(parts.values())
    return Bar(
        row["system"], lines, [(COMPONENTS[c][0], size / scale) for c, size in parts.items()],
        total / scale, is_measured=False, text=", ".join([_text(total), *_additions(row, known)]),
        is_reference=row["id"] == row.get("reference_id"),
    )  # fmt: skip


def _additions(row: CellRow, known: Metrics) -> list[str]:
    """Sizes that are written next to the bar."""
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
