"""Training loss per epoch and cell. Curves of equal training agree within noise."""

from __future__ import annotations

import statistics

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.plots import style
from gnnbench.schema.reader import Run

PANEL = ("dataset", "model")


def figure(run: Run) -> Figure | None:
    """Mean loss of each epoch over the run's workers, with a band from lowest to highest.

    Epochs are numbered in the order of training, including warm-up.
    """
    named = labels(run.cells)
    curves = _curves(run, named)
    if not curves:
        return None
    result, axes = style.panels(len(curves), 3.6)
    names = list(dict.fromkeys(name for panel in curves.values() for name in panel))
    for ax, (key, panel) in zip(axes, curves.items(), strict=True):
        for name, series in panel.items():
            _curve(ax, name, series, names.index(name))
        ax.set_title(", ".join(key), fontsize=9)
        ax.set_xlabel("epoch trained", fontsize=8)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_ylabel("mean training loss", fontsize=8)
        ax.tick_params(labelsize=8)
        ax.legend(fontsize=7, frameon=False)
    style.head(result, "Training loss", named, PANEL)
    return result


def _curves(run: Run, named: Labels) -> dict[tuple[str, ...], dict[str, list[list[float]]]]:
    """(dataset, model) -> cell's label -> one list of losses per worker."""
    # A cell that was interrupted in its warm-up has samples but no row.
    rows = [r for r in run.cells if r["status"] != "incorrect"]
    result: dict[tuple[str, ...], dict[str, list[list[float]]]] = {}
    for key, panel in style.groups(rows, PANEL).items():
        for row in panel:
            losses: dict[tuple[str, int, int], list[float]] = {}
            for s in [s for s in run.samples if s["id"] == row["id"]]:
                if not s["void"] and s["loss"] is not None and s["loss"] == s["loss"]:
                    losses.setdefault((s["pair"], s["life"], s["worker"]), []).append(s["loss"])
            if losses:
                panel_curves = result.setdefault(key, {})
                name = named.of(row, PANEL) + style.doubt(row)
                panel_curves.setdefault(name, []).extend(losses.values())
    return result


def _curve(ax: Axes, name: str, series: list[list[float]], number: int) -> None:
    colour = style.PALETTE[number % len(style.PALETTE)]
    length = max(len(s) for s in series)
    columns = [[s[i] for s in series if i < len(s)] for i in range(length)]
    epochs = range(1, length + 1)
    means = [statistics.fmean(c) for c in columns]
    # Equal curves overlap: later ones are dashed, with smaller markers.
    ax.plot(
        epochs, means, color=colour, label=name, marker="osD^vPX*"[number % 8],
        markersize=max(7 - 1.5 * number, 3), linestyle="-" if number == 0 else (0, (4, 2 + number)),
    )  # fmt: skip
    if len(series) > 1:
        ax.fill_between(
            epochs, [min(c) for c in columns], [max(c) for c in columns], color=colour, alpha=0.2
        )
