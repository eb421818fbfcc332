"""Epoch time by phase and system, one panel per dataset and model, with failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from gnnbench.analysis import metrics as m
from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.plots import bars, style
from gnnbench.analysis.plots.bars import Bar, Panel
from gnnbench.analysis.plots.page import SCREEN, Page
from gnnbench.analysis.ranking import TWINS, is_twin, ranked
from gnnbench.analysis.reliability import is_unreliable, verdict
from gnnbench.core.cell import PHASES, Until
from gnnbench.core.units import plural, times
from gnnbench.schema import CellRow
from gnnbench.schema.reader import Run
from gnnbench.statistics import primary_metric

PANEL = ("dataset", "model")
WHOLE = "whole"
TWIN = "†"  # marks a system that was designed for a GPU and ran on a CPU
PARTS = (*PHASES, "overlap", "idle", WHOLE)


def figure(run: Run, page: Page = SCREEN) -> Figure | None:
    """Stacked bars of phases, overlap and idle time; a marker for the wall time and its interval.

    The fastest system is on top. A dashed line marks the reference's time, and a column on the
    right has the ratios. Epochs without training are bars of memory IO alone, which is what their
    ratios compare. A bar without phase times is plain. A cell without a time shows its status.
    Different work, unreliable rows and systems with substitute stages are marked. The legend names
    groups in which nothing could run.
    """
    if not run.cells:
        return None
    named, known = labels(run.cells), Metrics(run.metrics)
    groups = style.groups(run.cells, PANEL)
    drawn = {k: rows for k, rows in groups.items() if not _absent(rows)} or groups
    omitted = style.usual(run.cells, named)
    panels = [
        _panel(", ".join(filter(None, key)), rows, named, known, omitted)
        for key, rows in drawn.items()
    ]
    result, axes, hidden = bars.draw(page, panels)
    systems = {r["system"] for rows in drawn.values() for r in rows}
    twins = any(is_twin(r) for rows in drawn.values() for r in rows)
    notes = [
        style.usual_note(omitted), style.group_note(systems), f"{TWIN} {TWINS}" * twins, hidden,
    ]  # fmt: skip
    page.head(result, _title(run.cells), named, PANEL, notes)
    absent = "; ".join(", ".join(filter(None, key)) for key in groups if key not in drawn)
    handles = [
        *_legend(run.cells, known), *style.cut_off(axes), *style.doubts(run.cells, pale=True),
    ]  # fmt: skip
    page.legend(result, handles, f"not measured: {absent}" if absent else "")
    return result


def _absent(rows: Sequence[CellRow]) -> bool:
    return all(r["status"] in ("missing_dep", "missing_data") for r in rows)


def _cut(rows: Sequence[CellRow]) -> str:
    batches = {(r["batches"], r["epoch_batches"]) for r in rows if r.get("batches")}
    cut = {b for b, whole in batches if whole and b < whole}
    return f", first {plural(max(cut), 'batch')}" if cut else ""


def _panel(
    title: str, rows: Sequence[CellRow], named: Labels, known: Metrics, omitted: Mapping[str, str]
) -> Panel:
    references = [r for r in rows if r["id"] == r.get("reference_id") and _measured(r)]
    drawn = [_bar(r, named, known, omitted) for r in ranked(rows)]
    if len(references) > 1:  # without a comparison each row is its own reference
        drawn = [replace(b, text="" if b.text == "reference" else b.text) for b in drawn]
    return Panel(
        title, f"{_primary(rows)} [s]{_cut(rows)}",
        drawn,
        column=style.speed_up_over(rows),
        lines=[(_seconds(r), style.DASHED) for r in references] if len(references) == 1 else [],
    )  # fmt: skip


def _measured(row: CellRow) -> bool:
    return row["epoch_wall_s"] is not None and row["status"] != "incorrect"


def _seconds(row: CellRow) -> float:
    """The time that the bar shows: the one that ratios compare."""
    if row["until"] == Until.MEMORY_IO.word and row.get("memory_io_time_s"):
        return float(row["memory_io_time_s"])
    return float(row["epoch_wall_s"] or 0.0)


def _primary(rows: Sequence[CellRow]) -> str:
    loads = {r["until"] for r in rows} == {Until.MEMORY_IO.word}
    return "memory IO time per epoch" if loads else "time per epoch"


def _title(rows: Sequence[CellRow]) -> str:
    return "Memory IO time" if _primary(rows).startswith("memory") else "Epoch time by phase"


def _bar(row: CellRow, named: Labels, known: Metrics, omitted: Mapping[str, str]) -> Bar:
    name = named.system(row) + TWIN * is_twin(row) + style.doubt(row)
    lines = (name, style.settings(row, named, PANEL, omitted))
    if not _measured(row):
        return Bar(row["system"], lines, status=row["status"])
    parts = [(style.PHASE_COLOURS[part], s) for part, s in _parts(row, known).items()]
    low, high = _interval(row, known)
    return Bar(
        row["system"], lines, parts, _seconds(row), low, high, text=_text(row),
        is_reliable=not is_unreliable(row), is_different=row["work_class"] == "different",
        is_reference=row["id"] == row.get("reference_id"),
    )  # fmt: skip


def _parts(row: CellRow, known: Metrics) -> dict[str, float]:
    """Parts of an epoch's wall time (s); the whole if its phases were not measured."""
    if row["until"] == Until.MEMORY_IO.word and row.get("memory_io_time_s"):
        return {PHASES[1]: _seconds(row)}
    alone = {p: known.value(row["id"], p, m.ALONE) or 0.0 for p in PHASES}
    parts = {**alone, "overlap": row["overlap_s"] or 0.0, "idle": row["idle_s"] or 0.0}
    if not any(alone.values()):
        return {WHOLE: row["epoch_wall_s"] or 0.0}
    return {name: max(length, 0.0) for name, length in parts.items()}


def _interval(row: CellRow, known: Metrics) -> tuple[float, float]:
    """The 95 % interval of the wall time (s); its ends are the wall time if there is none."""
    wall = _seconds(row)
    if row["until"] == Until.MEMORY_IO.word:
        return row.get("ci_low_s") or wall, row.get("ci_high_s") or wall
    measured = known.row(row["id"], m.EPOCH, m.WALL)
    if measured is None or measured.low is None or measured.high is None:
        return wall, wall
    return measured.low, measured.high


def _text(row: CellRow) -> str:
    words = ["reference"] if row["id"] == row.get("reference_id") else []
    if row["status"] != "ok":
        words.append(row["status"])
    if row["work_class"] == "different":
        words.append("different work")
    elif row["ratio"] is not None:
        # Bars are not from alternating runs: only the ratio's interval compares two of them.
        words.append(
            times(row["ratio"], row["ratio_ci_low"], row["ratio_ci_high"], row.get("pairs"))
        )
        words.append(verdict(row))
    return ", ".join(filter(None, words))


def _legend(rows: Sequence[CellRow], known: Metrics) -> list[Artist]:
    """Legend entries of what is drawn."""
    measured = [r for r in rows if _measured(r)]
    if not measured:
        return []
    drawn = [_parts(r, known) for r in measured]
    handles: list[Artist] = [
        Patch(facecolor=style.PHASE_COLOURS[part], label=style.LABELS[part])
        for part in PARTS
        if any(parts.get(part) for parts in drawn)
    ]
    handles.append(style.interval_key("measured time, 95 % interval"))
    if any(r["ratio"] is not None for r in rows):
        words = ", ".join(dict.fromkeys(primary_metric.of(r["until"]).words for r in rows))
        handles += style.reference_keys("time of the reference", f"of {words}")
    if any(r["work_class"] == "different" for r in measured):
        handles.append(
            Patch(facecolor="white", edgecolor="black", linestyle=(0, (3, 2)),
                  label="different work: do not compare lengths")
        )  # fmt: skip
    return handles
