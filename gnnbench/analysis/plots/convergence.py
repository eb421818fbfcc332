"""Validation and test accuracy by epoch and by second: who learns as fast, and in less time."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gnnbench.analysis import metrics as m
from gnnbench.analysis.labels import labels
from gnnbench.analysis.plots import style
from gnnbench.schema.reader import Run

PANEL = ("dataset", "model", "evaluate")
AXES = {"epoch": "epochs trained", "elapsed_s": "wall time of the epochs [s]"}

Row = Mapping[str, Any]
Lives = list[list[Row]]


def figure(run: Run) -> Figure | None:
    """Two panels for each graph, model and way to evaluate: over epochs and over seconds.

    Lines are means over lives, of validation nodes with a band from the lowest to the highest, of
    test nodes dotted; a point stands at the mean of its lives' seconds. A grey line is the accuracy
    that was stated. None where nothing was evaluated.
    """
    known: dict[str, Lives] = {}
    for (cell, *_), rows in _grouped(run.convergence, ("id", "pair", "life")).items():
        known.setdefault(cell, []).append(rows)
    cells = [r for r in run.cells if r["id"] in known and r["status"] != "incorrect"]
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
                _line(ax, known[row["id"]], x, name, names.index(name))
            for stated in dict.fromkeys(_stated(run, row) for row in rows):
                if stated is not None:
                    ax.axhline(stated, color="#888888", linewidth=0.8, zorder=0)
            ax.set_title(", ".join(key), fontsize=9)
            ax.set_xlabel(AXES[x], fontsize=8)
            ax.set_ylabel("accuracy", fontsize=8)
            ax.set_xlim(left=0)
            ax.tick_params(labelsize=8)
        axes[2 * at].legend(fontsize=7, frameon=False, loc="best")
    style.head(result, "Accuracy on nodes not trained on", named, PANEL)
    result.legend(handles=_legend(), loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return result


def _grouped(rows: Sequence[Row], keys: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[k] for k in keys), []).append(row)
    return found


def _stated(run: Run, row: Row) -> float | None:
    """The accuracy whose time is told."""
    told = (r for r in run.metrics if r["id"] == row["id"] and r["name"] == m.REACHED.name)
    return next((float(r["where"]) for r in told), None)


def _line(ax: Axes, lives: Lives, x: str, name: str, number: int) -> None:
    """One cell, as far as all of its lives go."""
    points = list(zip(*lives, strict=False))
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


def _legend() -> list[Any]:
    return [
        Line2D([], [], color="black", linewidth=1.4, label="validation, band: all lives"),
        Line2D([], [], color="black", linewidth=1.0, linestyle=":", label="test"),
        Line2D([], [], color="#888888", linewidth=0.8, label="stated accuracy"),
    ]
