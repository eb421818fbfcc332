"""Hit ratio, and bytes that a batch misses, by size of the cache and policy.

After GNNLab's Figs. 5, 10 and 11: lines are exact, out of the trace of one epoch; markers are what
the measured epochs found.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gnnbench.plots import style
from gnnbench.results import metrics as m
from gnnbench.results.labels import labels, paths_of
from gnnbench.results.metrics import Metrics
from gnnbench.results.reader import Run
from gnnbench.stages.counts import FEATURE_BYTES

Row = dict[str, Any]

# What a line is of, and what it may not mix: other draws have other hits.
APART = ("dataset", "fanouts", "batch_size", "pick", "device")
MARKERS = "osD^vPX*"
MEGABYTE = 1e6


def figure(run: Run) -> Figure | None:
    """Two panels for each dataset and each way to draw; None where no cell has a cache."""
    rows = [r for r in run.cells if _cached(r) and r["status"] != "incorrect"]
    if not rows:
        return None
    known, named = Metrics(run.metrics), labels(rows)
    groups = style.groups(rows, APART)
    policies = list(dict.fromkeys(p for r in rows for p in _policies(run, r)))
    result, axes = style.panels(2 * len(groups), 4.2, most=2)
    for number, (key, group) in enumerate(groups.items()):
        hits, missed = axes[2 * number : 2 * number + 2]
        for ax, column, scale in ((hits, "hit_ratio", 0.01), (missed, "missed_bytes", MEGABYTE)):
            _lines(ax, run, group, policies, column, scale)
        for row in group:
            _mark(hits, row, policies, known.value(row["id"], "features", m.HIT_RATIO), 0.01)
            _mark(missed, row, policies, _missed(known, row), MEGABYTE)
        hits.set_ylabel("hit ratio [%]", fontsize=8)
        missed.set_ylabel("missed rows per batch [MB]", fontsize=8)
        for ax in (hits, missed):
            ax.set_title(f"{key[0]}, {key[1]}, batch {key[2]}", fontsize=9)
            ax.set_xlabel("cached rows of all [%]", fontsize=8)
            ax.set_ylim(bottom=0)
            ax.tick_params(labelsize=8)
        if hits.get_legend_handles_labels()[0]:
            hits.legend(fontsize=7, frameon=False)
    result.suptitle(style.title("Feature cache", named, APART), fontsize=10)
    return result


def _cached(row: Row) -> bool:
    return paths_of(row).get("features") == "cache"


def _policies(run: Run, row: Row) -> Iterable[str]:
    yield str(paths_of(row)["features.policy"])
    yield from (c["policy"] for c in run.curves if c["id"] == row["id"])


def _lines(
    ax: Axes, run: Run, rows: list[Row], policies: list[str], column: str, scale: float
) -> None:
    """One line for each policy: cells that share one have the same trace, and the same line."""
    ids = {row["id"] for row in rows}
    for number, policy in enumerate(policies):
        found = [c for c in run.curves if c["id"] in ids and c["policy"] == policy]
        own = [c for c in found if c["id"] == found[0]["id"]]
        if own:
            ax.plot(
                [c["ratio"] * 100 for c in own], [c[column] / scale for c in own],
                color=style.PALETTE[number % len(style.PALETTE)], lw=1.2, label=policy,
            )  # fmt: skip


def _mark(ax: Axes, row: Row, policies: list[str], value: float | None, scale: float) -> None:
    """What a cell's epochs found; a cell that was not measured has no mark."""
    if value is None:
        return
    number = policies.index(str(paths_of(row)["features.policy"]))
    ax.plot(
        [paths_of(row)["features.ratio"] * 100], [value / scale], linestyle="none", markersize=4,
        color=style.PALETTE[number % len(style.PALETTE)], marker=MARKERS[number % len(MARKERS)],
    )  # fmt: skip


def _missed(known: Metrics, row: Row) -> float | None:
    """Bytes of rows a batch that were in no cache."""
    told = [
        r["value"] for r in known.of(row["id"])
        if (r["stage"], r["name"]) == ("features", FEATURE_BYTES.name) and r["where"] != "cache"
    ]  # fmt: skip
    return sum(told) / row["batches"] if told and row.get("batches") else None
