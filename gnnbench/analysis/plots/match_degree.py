"""Match degrees by dataset, and the rows that each store loads of those that its batches need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.plots import style
from gnnbench.core import counters
from gnnbench.schema.reader import Run

Row = Mapping[str, Any]

PANEL = ("dataset", "fanouts", "batch_size", "pick")
MARKS = ((counters.MATCH_DRAWN, "o", "as drawn"), (counters.MATCH_RUN, "D", "as run"))


def figure(run: Run) -> Figure | None:
    """For each dataset a box over all pairs of an epoch's batches, and what every cell loads.

    Above the bar of a cell stands the share of its rows that it found in no earlier batch and no
    cache; markers are the mean match degree of neighbours. None where no cell knows a match degree.
    """
    known = Metrics(run.metrics)
    rows = [r for r in run.cells if r["status"] != "incorrect" and loaded_bytes(r, known)]
    if not any(_degree(r, known, counters.MATCH_DEGREE) is not None for r in rows):
        return None
    named = labels(rows)
    panels = style.groups(rows, PANEL)
    widest = max(len(panel) for panel in panels.values())
    slot = style.slot(_label(r, named) for r in rows)
    result, axes = style.panels(len(panels), 1.6 + slot * (widest + 1))
    for ax, (key, panel) in zip(axes, panels.items(), strict=True):
        _panel(ax, panel, named, known)
        ax.set_title(f"{key[0]}, {key[1]}, batch {key[2]}", fontsize=9)
    style.head(result, "Overlap of batches", named, PANEL)
    handles = [
        Line2D([], [], color="black", marker=marker, lw=0, markersize=4,
               label=f"mean match degree of neighbours {words}")
        for _, marker, words in MARKS
    ]  # fmt: skip
    handles += style.doubts(rows)
    result.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    return result


def loaded_bytes(row: Row, known: Metrics) -> dict[str, float]:
    """Bytes of feature rows by where they were."""
    return known.by_where(row["id"], "features", counters.FEATURE_BYTES)


def loaded_share(row: Row, known: Metrics) -> float:
    """Rows that were loaded over all that the batches need; 1 where none was there already."""
    served = loaded_bytes(row, known)
    whole = sum(served.values())
    there = served.get("reused", 0.0) + served.get("cache", 0.0)
    return 1 - there / whole if whole else 1.0


def _degree(row: Row, known: Metrics, what: counters.Measure) -> float | None:
    return known.value(row["id"], "order", what)


def _label(row: Row, named: Labels) -> str:
    name = named.system(row, "\n") + style.doubt(row)
    return "\n".join([name, *named.varying(row, PANEL).values()])


def _panel(ax: Axes, rows: Sequence[Row], named: Labels, known: Metrics) -> None:
    told = [r for r in rows if _degree(r, known, counters.MATCH_DEGREE) is not None]
    if told:
        _box(ax, told[0], known)
    for x, row in enumerate(rows, start=1):
        share = loaded_share(row, known)
        ax.bar(x, share, 0.66, color=style.PHASE_COLOURS["memory_io"], edgecolor="white", lw=0.4)
        ax.annotate(
            f"{share:.1%}", (x, share), xytext=(0, 3), textcoords="offset points", ha="center",
            va="bottom", fontsize=7, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
        )  # fmt: skip
        for what, marker, _ in MARKS:
            degree = _degree(row, known, what)
            if degree is not None:
                ax.plot([x], [degree], marker, color="black", markersize=4)
                ax.vlines(x, 0, degree, color="black", lw=0.6, linestyles=":")  # what it stands on
    ax.set_xticks(
        range(len(rows) + 1), ["all pairs", *(_label(r, named) for r in rows)], fontsize=8
    )
    ax.set_ylabel("match degree; rows loaded over rows needed", fontsize=8)
    ax.set_ylim(0, 1.12)
    ax.tick_params(axis="y", labelsize=8)


def _box(ax: Axes, row: Row, known: Metrics) -> None:
    names = {
        "whislo": counters.MATCH_LEAST, "q1": counters.MATCH_LOWER, "med": counters.MATCH_MEDIAN,
        "q3": counters.MATCH_UPPER, "whishi": counters.MATCH_MOST, "mean": counters.MATCH_DEGREE,
    }  # fmt: skip
    stats: dict[str, Any] = {key: _degree(row, known, what) for key, what in names.items()}
    ax.bxp([stats], positions=[0], widths=0.5, showfliers=False, showmeans=True)
    ax.annotate(
        f"{stats['mean']:.1%}", (0, stats["whishi"]), xytext=(0, 3), textcoords="offset points",
        ha="center", va="bottom", fontsize=7,
    )  # fmt: skip
