"""Validation and test accuracy by epoch and by time."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gnnbench.analysis import metrics as m
from gnnbench.analysis.grouping import group_by
from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.plots import style
from gnnbench.analysis.plots.page import SCREEN, Page, more
from gnnbench.schema import CellRow, ConvergenceRow
from gnnbench.schema.reader import Run

PANEL = ("dataset", "model", "evaluate")
TABLE = "convergence.csv"
AXES = {"epoch": "epochs trained", "elapsed_s": "wall time of the epochs [s]"}

Trials = list[list[ConvergenceRow]]  # the epochs of each process run


def figure(run: Run, page: Page = SCREEN) -> Figure | None:
    """Two panels for each graph, model and evaluation: over epochs and over seconds.

    Lines are means over trials. Those of validation nodes have a band from the lowest to the
    highest trial, those of test nodes are dotted. A point is drawn at the mean time of its trials.
    A grey line is the target accuracy. None if nothing was evaluated.
    """
    trials: dict[str, Trials] = {}
    groups = group_by(run.convergence, lambda r: (r["id"], r["pair"], r["life"]))
    for (cell, *_), epochs in groups.items():
        trials.setdefault(cell, []).append(epochs)
    cells = [r for r in run.cells if r["id"] in trials and r["status"] != "incorrect"]
    if not cells:
        return None
    named = labels(run.cells)
    panels = style.groups(cells, PANEL)
    kept = page.fitting(list(panels), most=2, each=2)
    names = _by_accuracy(cells, trials, named)
    result, axes = page.panels(2 * len(kept), most=2)
    for at, key in enumerate(kept):
        for ax, x in zip(axes[2 * at : 2 * at + 2], AXES, strict=True):
            for row in panels[key]:
                name = _name(row, named)
                _line(ax, trials[row["id"]], x, name, names.index(name))
            for target in dict.fromkeys(_target(run, row) for row in panels[key]):
                if target is not None:
                    ax.axhline(target, color="#888888", linewidth=0.8, zorder=0)
            page.axis_texts(ax, ", ".join(key), AXES[x], "accuracy")
            ax.set_xlim(left=0)
    systems = {r["system"] for r in cells}
    notes = [style.not_drawn(run.cells, named, PANEL), more(len(panels), len(kept), "panel", TABLE)]
    title = "Accuracy on nodes not trained on"
    page.head(result, title, named, PANEL, [style.group_note(systems), *notes])
    lines = [Line2D([], [], label=name, **style.look(n, 1.4, 3.5)) for n, name in enumerate(names)]
    page.legend(result, [*lines, *_legend(), *style.doubts(cells)])
    style.set_groups(result, systems)
    return result


def _name(row: CellRow, named: Labels) -> str:
    return named.of(row, PANEL) + style.doubt(row)


def _by_accuracy(cells: Sequence[CellRow], trials: dict[str, Trials], named: Labels) -> list[str]:
    """The names of lines, the most accurate last epoch on validation nodes first."""
    last = {
        _name(r, named): statistics.fmean(epochs[-1]["val_accuracy"] for epochs in trials[r["id"]])
        for r in cells
    }
    return sorted(last, key=lambda name: -last[name])


def _target(run: Run, row: CellRow) -> float | None:
    """The target accuracy, if the run has one."""
    reached = (r for r in run.metrics if r["id"] == row["id"] and r["name"] == m.REACHED.name)
    return next((float(r["where"]) for r in reached), None)


def _line(ax: Axes, trials: Trials, x: str, name: str, number: int) -> None:
    """Draw one cell, up to the last epoch that all trials have."""
    points = list(zip(*trials, strict=False))
    places = [statistics.fmean(p[x] for p in point) for point in points]
    look = style.look(number, 1.4, 3.5)
    values = [[p["val_accuracy"] for p in point] for point in points]
    ax.plot(places, [statistics.fmean(v) for v in values], label=name, **look)
    ax.fill_between(
        places, [min(v) for v in values], [max(v) for v in values], color=look["color"], alpha=0.15
    )
    tested = [statistics.fmean(p["test_accuracy"] for p in point) for point in points]
    ax.plot(places, tested, color=look["color"], linewidth=1.0, linestyle=":")


def _legend() -> list[Artist]:
    return [
        Line2D([], [], color="black", linewidth=1.4, label="validation, band: all trials"),
        Line2D([], [], color="black", linewidth=1.0, linestyle=":", label="test"),
        Line2D([], [], color="#888888", linewidth=0.8, label="target accuracy"),
    ]
