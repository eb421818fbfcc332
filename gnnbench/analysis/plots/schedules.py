"""Wall time by schedule with its bound, and the phases run one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gnnbench.analysis import metrics as m
from gnnbench.analysis.labels import Labels, labels, paths_of
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.plots import style
from gnnbench.core.cell import PHASES
from gnnbench.schema import CellRow
from gnnbench.schema.reader import Run

SCHEDULE = "schedule"
COLOUR = "#666666"
ROOM = 1.25  # panel height / highest bar; longer intervals are cut off


def figure(run: Run) -> Figure | None:
    """One panel for cells that differ in their schedule only; None if no cell has a bound.

    The first bars are the phases of an epoch run one by one, of the first cell that was probed.
    The others are wall times by schedule with their 95 % intervals. A line across a bar is the
    cell's bound, the number above it wall time / bound.
    """
    known = Metrics(run.metrics)
    rows = [r for r in run.cells if r["epoch_wall_s"] is not None and r["status"] != "incorrect"]
    if not any(_bound(r, known) is not None for r in rows):
        return None
    named = labels(rows)
    rest = replace(
        named,
        paths={s: tuple(p for p in own if not _of_schedule(p)) for s, own in named.paths.items()},
    )
    panels: dict[str, list[CellRow]] = {}
    for row in rows:
        panels.setdefault(rest.of(row), []).append(row)
    widest = len(PHASES) + max(len(panel) for panel in panels.values())
    slot = style.slot(_label(r, named) for r in rows)
    result, axes = style.panels(len(panels), 1.4 + slot * widest, most=2)
    for ax, (name, panel) in zip(axes, panels.items(), strict=True):
        _panel(ax, panel, named, known)
        ax.set_title(name, fontsize=9)
        ax.set_ylabel("time per epoch [s]", fontsize=8)
        ax.tick_params(labelsize=8)
    style.head(result, "Epoch time by schedule", named)
    result.legend(
        handles=[*_legend(), *style.cut_off(axes), *style.doubts(rows, pale=True)],
        loc="outside lower center", ncols=2,
        fontsize=8, frameon=False,
    )  # fmt: skip
    return result


def _of_schedule(path: str) -> bool:
    return path.partition(".")[0] == SCHEDULE


def _bound(row: CellRow, known: Metrics) -> float | None:
    return known.value(row["id"], m.EPOCH, m.BOUND)


def _label(row: CellRow, named: Labels) -> str:
    """The schedule and its varying options: ``prefetch``, ``sms=8``."""
    recipe, varying = paths_of(row), named.paths.get(row["system"], ())
    settings = [p for p in varying if p.startswith(f"{SCHEDULE}.") and p in recipe]
    return "\n".join(
        [
            f"{recipe[SCHEDULE]}{style.doubt(row)}",
            *(f"{p.removeprefix(f'{SCHEDULE}.')}={recipe[p]}" for p in settings),
        ]
    )


def _panel(ax: Axes, rows: Sequence[CellRow], named: Labels, known: Metrics) -> None:
    probed = next((r for r in rows if _bound(r, known) is not None), None)
    alone = {} if probed is None else _alone(probed, known)
    for x, (phase, height) in enumerate(alone.items()):
        ax.bar(x, height, 0.66, color=style.PHASE_COLOURS[phase], edgecolor="white", lw=0.4)
    walls = [r["epoch_wall_s"] for r in rows]
    top = ROOM * max(*alone.values(), *walls, *(_bound(r, known) or 0.0 for r in rows), 0.0)
    for x, row in enumerate(rows, start=len(alone)):
        _bar(ax, x, row, known, top)
    ticks = [*(style.LABELS[phase] for phase in alone), *(_label(r, named) for r in rows)]
    ax.set_xticks(range(len(ticks)), ticks)
    ax.set_ylim(0, ROOM * top or None)


def _alone(row: CellRow, known: Metrics) -> dict[str, float]:
    """Time of each phase of an epoch, run alone (s)."""
    batches = row["seeds"] / min(row["batch_size"], row["seeds"])
    times = {phase: known.value(row["id"], phase, m.PROBED) for phase in PHASES}
    return {phase: batches * time for phase, time in times.items() if time is not None}


def _bar(ax: Axes, x: int, row: CellRow, known: Metrics, top: float) -> None:
    wall, bound = row["epoch_wall_s"], _bound(row, known)
    measured = known.row(row["id"], m.EPOCH, m.WALL)
    low, high = (measured.low, measured.high) if measured else (None, None)
    ax.bar(x, wall, 0.66, color=COLOUR, edgecolor="white", lw=0.4, alpha=style.paleness(row))
    end = style.interval(
        ax, x, wall, wall if low is None else low, wall if high is None else high, top
    )
    if bound is None:
        return
    ax.plot([x - 0.4, x + 0.4], [bound, bound], color=style.PALETTE[5], lw=2)
    ax.annotate(
        f"{known.value(row['id'], m.EPOCH, m.OF_BOUND):.2f}x", (x, min(max(end, bound), top)),
        xytext=(0, 4), textcoords="offset points", ha="center", va="bottom", fontsize=7,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
    )  # fmt: skip


def _legend() -> list[Artist]:
    return [
        Patch(facecolor=style.PHASE_COLOURS["memory_io"], label="a phase run alone"),
        Patch(facecolor=COLOUR, label="measured wall time, 95 % interval"),
        Line2D([], [], color=style.PALETTE[5], lw=2, label="bound: shortest time with overlap"),
        Line2D([], [], lw=0, label="1.00x: wall time / bound"),
    ]
