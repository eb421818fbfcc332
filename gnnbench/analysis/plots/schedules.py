"""Wall time by schedule beside its bound, and the phases run one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gnnbench.analysis import metrics as m
from gnnbench.analysis.labels import Labels, labels, paths_of
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.plots import style
from gnnbench.core.cell import PHASES
from gnnbench.schema.reader import Run

Row = Mapping[str, Any]

SCHEDULE = "schedule"
COLOUR = "#666666"
ROOM = 1.25  # above the highest bar: a longer interval runs out of the panel


def figure(run: Run) -> Figure | None:
    """A panel for all that is alike but for its schedule; None where no cell has a bound.

    First the phases of an epoch's batches run one by one, of the panel's first cell that was
    probed, then the measured wall time by schedule with its 95 % interval; a line across a bar is
    that cell's bound, the number above it the wall time over that.
    """
    known = Metrics(run.metrics)
    rows = [r for r in run.cells if r["epoch_wall_s"] is not None and r["status"] != "incorrect"]
    if not any(_bound(r, known) is not None for r in rows):
        return None
    named = labels(rows)
    rest = replace(
        named,
        paths={s: tuple(p for p in told if not _of_schedule(p)) for s, told in named.paths.items()},
    )
    panels: dict[str, list[Row]] = {}
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


def _bound(row: Row, known: Metrics) -> float | None:
    return known.value(row["id"], m.EPOCH, m.BOUND)


def _label(row: Row, named: Labels) -> str:
    """The schedule, and what varies of it: ``prefetch``, ``sms=8``."""
    recipe, told = paths_of(row), named.paths.get(row["system"], ())
    settings = [p for p in told if p.startswith(f"{SCHEDULE}.") and p in recipe]
    return "\n".join(
        [
            f"{recipe[SCHEDULE]}{style.doubt(row)}",
            *(f"{p.removeprefix(f'{SCHEDULE}.')}={recipe[p]}" for p in settings),
        ]
    )


def _panel(ax: Axes, rows: Sequence[Row], named: Labels, known: Metrics) -> None:
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


def _alone(row: Row, known: Metrics) -> dict[str, float]:
    """Seconds of an epoch's phases by themselves."""
    batches = row["seeds"] / min(row["batch_size"], row["seeds"])
    found = {phase: known.value(row["id"], phase, m.PROBED) for phase in PHASES}
    return {phase: batches * time for phase, time in found.items() if time is not None}


def _bar(ax: Axes, x: int, row: Row, known: Metrics, top: float) -> None:
    wall, bound = row["epoch_wall_s"], _bound(row, known)
    wall_row: Row = known.row(row["id"], m.EPOCH, m.WALL) or {}
    low, high = (wall if wall_row.get(end) is None else wall_row[end] for end in ("low", "high"))
    ax.bar(x, wall, 0.66, color=COLOUR, edgecolor="white", lw=0.4, alpha=style.paleness(row))
    end = style.interval(ax, x, wall, low, high, top)
    if bound is None:
        return
    ax.plot([x - 0.4, x + 0.4], [bound, bound], color=style.PALETTE[5], lw=2)
    ax.annotate(
        f"{known.value(row['id'], m.EPOCH, m.OF_BOUND):.2f}x", (x, min(max(end, bound), top)),
        xytext=(0, 4), textcoords="offset points", ha="center", va="bottom", fontsize=7,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
    )  # fmt: skip


def _legend() -> list[Any]:
    phase = Patch(facecolor=style.PHASE_COLOURS["memory_io"], label="a phase run by itself")
    return [
        phase,
        Patch(facecolor=COLOUR, label="measured wall time, 95 % interval"),
        Line2D([], [], color=style.PALETTE[5], lw=2, label="bound: least that overlap leaves"),
        Line2D([], [], lw=0, label="1.00x: wall time over its bound"),
    ]
