"""Wall time by schedule with its bound, and the phases run one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gnnbench.analysis import metrics as m
from gnnbench.analysis.grouping import group_by
from gnnbench.analysis.labels import Labels, labels, paths_of
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.plots import bars, style
from gnnbench.analysis.plots.bars import Bar, Panel
from gnnbench.analysis.plots.page import SCREEN, Page
from gnnbench.analysis.reliability import is_unreliable
from gnnbench.core.cell import PHASES
from gnnbench.schema import CellRow
from gnnbench.schema.reader import Run

SCHEDULE = "schedule"
COLOUR = "#888888"


def figure(run: Run, page: Page = SCREEN) -> Figure | None:
    """One panel for cells that differ in their schedule only; None if no cell has a bound.

    The first bars are the phases of an epoch run one by one, of the first cell that was probed.
    The others are wall times by schedule, the fastest first, with their 95 % intervals. A line
    across a bar is the cell's bound, the number on the right wall time / bound.
    """
    known = Metrics(run.metrics)
    if not any(_bound(r, known) is not None for r in run.cells):
        return None
    named = labels(run.cells)
    rest = replace(
        named,
        paths={
            system: tuple(path for path in paths if path.partition(".")[0] != SCHEDULE)
            for system, paths in named.paths.items()
        },
    )
    groups = group_by(run.cells, rest.of)
    panels = [_panel(title, rows, named, known) for title, rows in groups.items()]
    result, axes, hidden = bars.draw(page, panels)
    page.head(result, "Epoch time by schedule", named, last=[hidden])
    drawn = [bar for panel in panels for bar in panel.bars]
    handles = [*_legend(drawn), *style.cut_off(axes), *style.doubts(run.cells, pale=True)]
    page.legend(result, handles)
    return result


def _measured(row: CellRow) -> bool:
    return row["epoch_wall_s"] is not None and row["status"] != "incorrect"


def _bound(row: CellRow, known: Metrics) -> float | None:
    return known.value(row["id"], m.EPOCH, m.BOUND) if _measured(row) else None


def _name(row: CellRow, named: Labels) -> str:
    """The schedule and its varying options: ``prefetch sms=8``."""
    recipe, varying = paths_of(row), named.paths.get(row["system"], ())
    settings = [p for p in varying if p.startswith(f"{SCHEDULE}.") and p in recipe]
    words = [f"{p.removeprefix(f'{SCHEDULE}.')}={recipe[p]}" for p in settings]
    return " ".join([str(recipe.get(SCHEDULE, row["system"])), *words]) + style.doubt(row)


def _panel(title: str, rows: Sequence[CellRow], named: Labels, known: Metrics) -> Panel:
    probed = next((r for r in rows if _bound(r, known) is not None), None)
    alone = [] if probed is None else _alone(probed, known)
    ordered = sorted(rows, key=lambda r: (not _measured(r), r["epoch_wall_s"] or 0.0))
    schedules = [_bar(row, named, known) for row in ordered]
    return Panel(title, "time per epoch [s]", [*alone, *schedules], column="wall time / bound")


def _alone(row: CellRow, known: Metrics) -> list[Bar]:
    """Bars of the phases of an epoch, each run alone."""
    batches = row["seeds"] / min(row["batch_size"], row["seeds"])
    times = {phase: known.value(row["id"], phase, m.PROBED) for phase in PHASES}
    return [
        Bar(
            "", (f"{style.LABELS[phase]} alone",),
            [(style.PHASE_COLOURS[phase], batches * time)], batches * time, is_measured=False,
        )
        for phase, time in times.items()
        if time is not None
    ]  # fmt: skip


def _bar(row: CellRow, named: Labels, known: Metrics) -> Bar:
    name = _name(row, named)
    if not _measured(row):
        return Bar(row["system"], (name,), status=row["status"])
    wall = float(row["epoch_wall_s"])
    measured = known.row(row["id"], m.EPOCH, m.WALL)
    low, high = (measured.low, measured.high) if measured else (None, None)
    bound, text = _bound(row, known), ""
    share = known.value(row["id"], m.EPOCH, m.OF_BOUND)
    if bound is not None and share is not None:
        # Phases that took longer alone than in an epoch do not bound it.
        text = f"{share:.2f}x" if share >= 1 else "no bound: phases were slower alone"
    return Bar(
        "", (name,), [(COLOUR, wall)], wall, low, high, text=text,
        is_reliable=not is_unreliable(row), level=bound if share is None or share >= 1 else None,
    )  # fmt: skip


def _legend(drawn: Sequence[Bar]) -> list[Artist]:
    handles: list[Artist] = [
        Patch(facecolor=style.PHASE_COLOURS["memory_io"], label="a phase run alone"),
        Patch(facecolor=COLOUR, label="wall time of an epoch"),
        style.interval_key("measured time, 95 % interval"),
    ]
    if any(bar.level is not None for bar in drawn):
        words = "bound: shortest time with overlap, from the phases run alone"
        handles.append(Line2D([], [], color=style.PALETTE[5], lw=2, label=words))
    return handles
