"""Match degrees by dataset, and the share of feature rows that each cell loads."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.plots import style
from gnnbench.analysis.table import loaded_share
from gnnbench.core import counters
from gnnbench.schema import CellRow
from gnnbench.schema.reader import Run

PANEL = ("dataset", "fanouts", "batch_size", "pick")
MARKS = ((counters.MATCH_DRAWN, "o", "as drawn"), (counters.MATCH_RUN, "D", "as run"))


def figure(run: Run) -> Figure | None:
    """For each dataset a box over all pairs of an epoch's batches, and the loaded share by cell.

    A bar is the share of feature rows that were in no earlier batch and no cache. Markers are the
    mean match degree of consecutive batches. None if no cell has a match degree.
    """
    known = Metrics(run.metrics)
    rows = [
        r
        for r in run.cells
        if r["status"] != "incorrect"
        and known.by_where(r["id"], "features", counters.FEATURE_BYTES)
    ]
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


def _degree(row: CellRow, known: Metrics, measure: counters.Measure) -> float | None:
    return known.value(row["id"], "order", measure)


def _label(row: CellRow, named: Labels) -> str:
    name = named.system(row, "\n") + style.doubt(row)
    return "\n".join([name, *named.varying(row, PANEL).values()])


def _panel(ax: Axes, rows: Sequence[CellRow], named: Labels, known: Metrics) -> None:
    with_degree = [r for r in rows if _degree(r, known, counters.MATCH_DEGREE) is not None]
    if with_degree:
        _box(ax, with_degree[0], known)
    for x, row in enumerate(rows, start=1):
        share = loaded_share(row, known)
        share = 1.0 if share is None else share
        ax.bar(x, share, 0.66, color=style.PHASE_COLOURS["memory_io"], edgecolor="white", lw=0.4)
        ax.annotate(
            f"{share:.1%}", (x, share), xytext=(0, 3), textcoords="offset points", ha="center",
            va="bottom", fontsize=7, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
        )  # fmt: skip
        for measure, marker, _ in MARKS:
            degree = _degree(row, known, measure)
            if degree is not None:
                ax.plot([x], [degree], marker, color="black", markersize=4)
                ax.vlines(x, 0, degree, color="black", lw=0.6, linestyles=":")
    ax.set_xticks(
        range(len(rows) + 1), ["all pairs", *(_label(r, named) for r in rows)], fontsize=8
    )
    ax.set_ylabel("match degree; rows loaded / rows needed", fontsize=8)
    ax.set_ylim(0, 1.12)
    ax.tick_params(axis="y", labelsize=8)


def _box(ax: Axes, row: CellRow, known: Metrics) -> None:
    names = {
        "whislo": counters.MATCH_LEAST, "q1": counters.MATCH_LOWER, "med": counters.MATCH_MEDIAN,
        "q3": counters.MATCH_UPPER, "whishi": counters.MATCH_MOST, "mean": counters.MATCH_DEGREE,
    }  # fmt: skip
    degrees = {key: _degree(row, known, measure) for key, measure in names.items()}
    stats = {key: degree for key, degree in degrees.items() if degree is not None}
    if len(stats) < len(names):
        return
    ax.bxp([stats], positions=[0], widths=0.5, showfliers=False, showmeans=True)
    ax.annotate(
        f"{stats['mean']:.1%}", (0, stats["whishi"]), xytext=(0, 3), textcoords="offset points",
        ha="center", va="bottom", fontsize=7,
    )  # fmt: skip
