"""Validation and test accuracy by epoch and by time."""

from __future__ import annotations

import statistics

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gnnbench.analysis import metrics as m
from gnnbench.analysis.grouping import group_by
from gnnbench.analysis.labels import labels
from gnnbench.analysis.plots import style
from gnnbench.schema import CellRow, ConvergenceRow
from gnnbench.schema.reader import Run

PANEL = ("dataset", "model", "evaluate")
AXES = {"epoch": "epochs trained", "elapsed_s": "wall time of the epochs [s]"}

Trials = list[list[ConvergenceRow]]  # the epochs of each process run


def figure(run: Run) -> Figure | None:
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
    named = labels(cells)
    panels = style.groups(cells, PANEL)
    names = list(dict.fromkeys(named.of(row, PANEL) + style.doubt(row) for row in cells))
    result, axes = style.panels(2 * len(panels), 3.8, most=2)
    for at, (key, rows) in enumerate(panels.items()):
        for ax, x in zip(axes[2 * at : 2 * at + 2], AXES, strict=True):
            for row in rows:
                name = named.of(row, PANEL) + style.doubt(row)
                _line(ax, trials[row["id"]], x, name, names.index(name))
            for target in dict.fromkeys(_target(run, row) for row in rows):
                if target is not None:
                    ax.axhline(target, color="#888888", linewidth=0.8, zorder=0)
            ax.set_title(", ".join(key), fontsize=9)
            ax.set_xlabel(AXES[x], fontsize=8)
            ax.set_ylabel("accuracy", fontsize=8)
            ax.set_xlim(left=0)
            ax.tick_params(labelsize=8)
        axes[2 * at].legend(fontsize=7, frameon=False, loc="best")
    style.head(result, "Accuracy on nodes not trained on", named, PANEL)
    result.legend(handles=_legend(), loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return result


def _target(run: Run, row: CellRow) -> float | None:
    """The target accuracy, if the run has one."""
    reached = (r for r in run.metrics if r["id"] == row["id"] and r["name"] == m.REACHED.name)
    return next((float(r["where"]) for r in reached), None)


def _line(ax: Axes, trials: Trials, x: str, name: str, number: int) -> None:
    """Draw one cell, up to the last epoch that all trials have."""
    points = list(zip(*trials, strict=False))
    places = [statistics.fmean(p[x] for p in point) for point in points]
    colour = style.PALETTE[number % len(style.PALETTE)]
    values = [[p["val_accuracy"] for p in point] for point in points]
    ax.plot(
        places, [statistics.fmean(v) for v in values], color=colour, label=name, linewidth=1.4,
        marker="osD^vPX*"[number % 8], markersize=3.5,
    )  # fmt: skip
    ax.fill_between(
        places, [min(v) for v in values], [max(v) for v in values], color=colour, alpha=0.15
    )
    tested = [statistics.fmean(p["test_accuracy"] for p in point) for point in points]
    ax.plot(places, tested, color=colour, linewidth=1.0, linestyle=":")


def _legend() -> list[Artist]:
    return [
        Line2D([], [], color="black", linewidth=1.4, label="validation, band: all trials"),
        Line2D([], [], color="black", linewidth=1.0, linestyle=":", label="test"),
        Line2D([], [], color="#888888", linewidth=0.8, label="target accuracy"),
    ]
