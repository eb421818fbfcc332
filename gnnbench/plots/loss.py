"""Training loss per epoch and system: curves of the same training should agree within noise."""

from __future__ import annotations

import statistics
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gnnbench.plots import style
from gnnbench.results.labels import system_label
from gnnbench.results.reader import Run

Row = dict[str, Any]


def figure(run: Run) -> Figure | None:
    """Mean over the run's workers of each epoch's loss; the band spans the lowest to the highest.

    A worker's epochs are numbered in the order in which it trained them, warm-up included.
    """
    curves = _curves(run)
    if not curves:
        return None
    result, axes = style.panels(len(curves), 3.6)
    systems = list(dict.fromkeys(s for panel in curves.values() for s in panel))
    for ax, ((dataset, model), panel) in zip(axes, curves.items(), strict=True):
        for system, series in panel.items():
            _curve(ax, system, series, systems.index(system))
        ax.set_title(f"{dataset}, {model}", fontsize=9)
        ax.set_xlabel("epoch trained", fontsize=8)
        ax.set_ylabel("mean training loss", fontsize=8)
        ax.tick_params(labelsize=8)
        ax.legend(fontsize=7, frameon=False)
    result.suptitle(f"Training loss\n{style.setting(run.cells)}", fontsize=10)
    return result


def _curves(run: Run) -> dict[tuple[str, str], dict[str, list[list[float]]]]:
    """(dataset, model) -> system -> one list of losses per worker."""
    # A cell that was cut off in its warm-up has samples but no row.
    label = {r["id"]: system_label(r) for r in run.cells if r["status"] != "incorrect"}
    lives: dict[tuple[str, str], dict[tuple[str, str], list[float]]] = {}
    for sample in run.samples:
        if sample["id"] not in label or sample["loss"] is None or sample["loss"] != sample["loss"]:
            continue
        panel = lives.setdefault((sample["dataset"], sample["model"]), {})
        panel.setdefault((label[sample["id"]], f"{sample['worker']}"), []).append(sample["loss"])
    result: dict[tuple[str, str], dict[str, list[list[float]]]] = {}
    for key, panel in lives.items():
        for (system, _), losses in panel.items():
            result.setdefault(key, {}).setdefault(system, []).append(losses)
    return result


def _curve(ax: Axes, system: str, series: list[list[float]], number: int) -> None:
    colour = style.PALETTE[number % len(style.PALETTE)]
    length = max(len(s) for s in series)
    columns = [[s[i] for s in series if i < len(s)] for i in range(length)]
    epochs = range(1, length + 1)
    means = [statistics.fmean(c) for c in columns]
    # Curves that agree lie on one another: later ones are dashed, markers get smaller.
    ax.plot(
        epochs, means, color=colour, label=system, marker="osD^vPX*"[number % 8],
        markersize=max(7 - 1.5 * number, 3), linestyle="-" if number == 0 else (0, (4, 2 + number)),
    )  # fmt: skip
    if len(series) > 1:
        ax.fill_between(
            epochs, [min(c) for c in columns], [max(c) for c in columns], color=colour, alpha=0.2
        )
