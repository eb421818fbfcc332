"""Training loss per epoch and cell. Curves of equal training agree within noise."""

from __future__ import annotations

import statistics

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.plots import style
from gnnbench.analysis.plots.page import SCREEN, Page, more
from gnnbench.schema.reader import Run

PANEL = ("dataset", "model")


def figure(run: Run, page: Page = SCREEN) -> Figure | None:
    """Mean loss of each epoch over the run's workers, with a band from lowest to highest.

    Epochs are numbered in the order of training, including warm-up.
    """
    named = labels(run.cells)
    curves = _curves(run, named)
    if not curves:
        return None
    kept = page.fitting(list(curves))
    result, axes = page.panels(len(kept))
    names = list(dict.fromkeys(name for panel in curves.values() for name in panel))
    for ax, key in zip(axes, kept, strict=True):
        for name, series in curves[key].items():
            _curve(ax, name, series, names.index(name))
        page.axis_texts(ax, ", ".join(key), "epoch trained", "mean training loss")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    systems = {r["system"] for r in run.cells}
    notes = [style.not_drawn(run.cells, named, PANEL), more(len(curves), len(kept), "panel")]
    page.head(result, "Training loss", named, PANEL, [style.group_note(systems), *notes])
    handles = [Line2D([], [], label=name, **_look(n)) for n, name in enumerate(names)]
    page.legend(result, [*handles, *style.doubts(run.cells)])
    style.set_groups(result, systems)
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
    length = max(len(s) for s in series)
    columns = [[s[i] for s in series if i < len(s)] for i in range(length)]
    epochs = range(1, length + 1)
    means = [statistics.fmean(c) for c in columns]
    look = _look(number)
    ax.plot(epochs, means, label=name, **look)
    if len(series) > 1:
        lowest, highest = [min(c) for c in columns], [max(c) for c in columns]
        ax.fill_between(epochs, lowest, highest, color=look["color"], alpha=0.2)


def _look(number: int) -> style.Look:
    """Equal curves overlap: later ones are dashed, with smaller markers."""
    dashes: style.Dashes = "-" if number == 0 else (0, (4, 2 + number))
    return style.look(number, 1.4, max(6 - 1.5 * number, 2.5), dashes)
