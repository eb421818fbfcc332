"""Match degrees by dataset, and the share of feature rows that each cell loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.plots import bars, style
from gnnbench.analysis.plots.bars import Bar, Panel
from gnnbench.analysis.plots.page import SCREEN, Page
from gnnbench.analysis.table import loaded_share
from gnnbench.core import counters
from gnnbench.schema import CellRow
from gnnbench.schema.reader import Run

PANEL = ("dataset", "fanouts", "batch_size", "pick")
MARKS = ((counters.MATCH_DRAWN, "o", "as drawn"), (counters.MATCH_RUN, "D", "as run"))
ALL_PAIRS, ALL_WORDS = "#BBBBBB", "all pairs of batches"


def figure(run: Run, page: Page = SCREEN) -> Figure | None:
    """For each dataset the match degree of all pairs of an epoch's batches, and of each cell.

    A bar is the share of feature rows that were in no earlier batch and no cache, the smallest on
    top. Markers are the mean match degree of consecutive batches. None if no cell has a match
    degree.
    """
    known = Metrics(run.metrics)
    rows = [
        r
        for r in run.cells
        if r["status"] == "incorrect" or known.by_where(r["id"], "features", counters.FEATURE_BYTES)
    ]
    if not any(_degree(r, known, counters.MATCH_DEGREE) is not None for r in rows):
        return None
    named = labels(rows)
    omitted = style.usual(rows, named)
    panels = [
        _panel(key, panel, named, known, omitted)
        for key, panel in style.groups(rows, PANEL).items()
    ]
    result, _, hidden = bars.draw(page, panels)
    page.head(result, "Overlap of batches", named, PANEL, [style.usual_note(omitted), hidden])
    page.legend(result, [*_legend(panels), *style.doubts(rows)])
    return result


def _degree(row: CellRow, known: Metrics, measure: counters.Metric) -> float | None:
    if row["status"] == "incorrect":
        return None
    return known.value(row["id"], "order", measure)


def _panel(
    key: tuple[str, ...], rows: Sequence[CellRow], named: Labels, known: Metrics,
    omitted: Mapping[str, str],
) -> Panel:  # fmt: skip
    shares = {r["id"]: loaded_share(r, known) for r in rows}
    whole = {i: 1.0 if share is None else share for i, share in shares.items()}
    ordered = sorted(rows, key=lambda r: (r["status"] == "incorrect", whole[r["id"]]))
    own = [_bar(r, whole[r["id"]], named, known, omitted) for r in ordered]
    return Panel(
        f"{key[0]}, fanouts {key[1]}, batch {key[2]}", "match degree; rows loaded / rows needed",
        [*_all_pairs(rows, known), *own], column="rows loaded", widest=1.0,
    )  # fmt: skip


def _bar(
    row: CellRow, share: float, named: Labels, known: Metrics, omitted: Mapping[str, str]
) -> Bar:  # fmt: skip
    lines = (named.system(row) + style.doubt(row), style.settings(row, named, PANEL, omitted))
    if row["status"] == "incorrect":
        return Bar(row["system"], lines, status=row["status"])
    degrees = [(marker, _degree(row, known, measure)) for measure, marker, _ in MARKS]
    return Bar(
        row["system"], lines, [(style.PHASE_COLOURS["memory_io"], share)], share,
        is_measured=False, text=f"{share:.1%}",
        dots=[(marker, degree) for marker, degree in degrees if degree is not None],
    )  # fmt: skip


def _all_pairs(rows: Sequence[CellRow], known: Metrics) -> list[Bar]:
    """The mean match degree of all pairs of batches, with its lowest and highest."""
    for row in rows:
        ends = (counters.MATCH_DEGREE, counters.MATCH_LEAST, counters.MATCH_MOST)
        mean, low, high = (_degree(row, known, measure) for measure in ends)
        if mean is not None:
            parts = [(ALL_PAIRS, mean)]
            return [Bar("", (ALL_WORDS,), parts, mean, low, high, text=f"{mean:.1%} match")]
    return []


def _legend(panels: Sequence[Panel]) -> list[Artist]:
    handles: list[Artist] = [
        Patch(facecolor=style.PHASE_COLOURS["memory_io"], label="rows loaded / rows needed"),
        Patch(facecolor=ALL_PAIRS, label=f"match degree of {ALL_WORDS}"),
        style.interval_key("its lowest and highest"),
    ]
    drawn = {marker for p in panels for bar in p.bars for marker, _ in bar.dots}
    handles += [
        Line2D([], [], color="black", marker=marker, lw=0, markersize=4,
               label=f"mean match degree of neighbours {words}")
        for _, marker, words in MARKS
        if marker in drawn
    ]  # fmt: skip
    return handles
