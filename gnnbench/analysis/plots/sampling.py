"""Sampling time per batch: bars with their stages, or lines over a grid of batch sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.plots import bars, style
from gnnbench.analysis.plots.bars import Bar, Panel
from gnnbench.analysis.plots.page import SCREEN, Page, more
from gnnbench.analysis.ranking import ranked
from gnnbench.analysis.reliability import is_unreliable, verdict
from gnnbench.analysis.sample_tables import STAGES, stage_time
from gnnbench.core.units import per_batch, times
from gnnbench.schema import CellRow, StageRow
from gnnbench.schema.reader import Run

APART = ("dataset", "fanouts", "batch_size")  # one panel each; lines are drawn over batch sizes
GRID = 3  # number of batch sizes from which lines are drawn instead of bars
TITLE = "Sampling time per batch"
COLOURS = {
    "prepare": "#56B4E9", "pick": "#0072B2", "id_map": "#E69F00", "block": "#009E73",
    "whole": "#BBBBBB",
}  # fmt: skip


def figure(run: Run, page: Page = SCREEN) -> Figure | None:
    """One panel per dataset, fanouts, and batch size; with three batch sizes or more, lines.

    Parts of a bar are stages of the native trace; the marker is the measured time per batch with
    its 95 % interval. A system without stages has a plain bar. A column on the right has the
    ratios. None if nothing was sampled.
    """
    rows = [r for r in run.cells if _measured(r)]
    if not rows:
        return None
    if len({r["batch_size"] for r in rows}) >= GRID:
        return _lines(run.cells, rows, page)
    named = labels(run.cells)
    omitted = style.usual(run.cells, named)
    panels = [
        _panel(key, group, run.stages, named, omitted)
        for key, group in style.groups(run.cells, APART).items()
        if any(map(_measured, group))
    ]
    result, axes, hidden = bars.draw(page, panels)
    groups = style.group_note(r["system"] for r in run.cells)
    page.head(result, TITLE, named, APART, [style.usual_note(omitted), groups, hidden])
    handles = [
        *_legend(rows, run.stages), *style.cut_off(axes), *style.doubts(rows, pale=True),
    ]  # fmt: skip
    page.legend(result, handles)
    return result


def _time(row: CellRow) -> float | None:
    """Sampling time per batch (s)."""
    return per_batch(row, "sample_time_s")


def _milliseconds(row: CellRow) -> float:
    return (_time(row) or 0.0) * 1e3


def _measured(row: CellRow) -> bool:
    return _time(row) is not None and row["status"] != "incorrect"


def _compared(row: CellRow) -> bool:
    """Whether the row's ratio is one of sampling times."""
    return row.get("ratio") is not None and row["judged"] == "sample_time_s"


def _panel(
    key: tuple[str, ...], rows: Sequence[CellRow], stages: Sequence[StageRow], named: Labels,
    omitted: Mapping[str, str],
) -> Panel:  # fmt: skip
    references = [r for r in rows if r["id"] == r.get("reference_id") and _measured(r)]
    return Panel(
        f"{key[0]}, fanouts {key[1]}, batch {key[2]}", "time per batch [ms]",
        [_bar(row, stages, named, omitted) for row in ranked(rows)],
        column=style.speed_up_over(r for r in rows if _compared(r)),
        lines=[(_milliseconds(r), style.DASHED) for r in references] * (len(references) == 1),
        unit="ms",
    )  # fmt: skip


def _bar(
    row: CellRow, stages: Sequence[StageRow], named: Labels, omitted: Mapping[str, str]
) -> Bar:
    lines = (_label(row, named), style.settings(row, named, APART, omitted))
    if not _measured(row):
        return Bar(row["system"], lines, status=row["status"])
    wall = _milliseconds(row)
    traced = _parts(row, stages)
    low, high = _interval(row, wall)
    return Bar(
        row["system"], lines, [(COLOURS[n], t) for n, t in (traced or {"whole": wall}).items()],
        wall, low, high, text=_text(row), is_reliable=not is_unreliable(row),
        is_different=row.get("work_class") == "different",
        is_reference=row["id"] == row.get("reference_id"),
        outline=bool(traced),  # stages are from another pass
    )  # fmt: skip


def _parts(row: CellRow, stages: Sequence[StageRow]) -> dict[str, float]:
    """Measured stages of a batch (ms)."""
    own = [s for s in stages if s["id"] == row["id"]]
    parts = {name: (stage_time(own, name) or 0.0) * 1e3 for name in STAGES}
    return {name: time for name, time in parts.items() if time}


def _text(row: CellRow) -> str:
    words = ["reference"] if row["id"] == row.get("reference_id") else []
    if row["status"] != "ok":
        words.append(row["status"])
    if row.get("work_class") == "different":
        words.append("different work")
    elif _compared(row):
        ends = (row.get("ratio_ci_low"), row.get("ratio_ci_high"), row.get("pairs"))
        words += [times(row["ratio"], *ends), verdict(row)]
    return ", ".join(filter(None, words)) or f"{_milliseconds(row):.3g} ms"


def _label(row: CellRow, named: Labels) -> str:
    """The system and its settings, without the word ``sampler=``."""
    return named.system(row).replace(" sampler=", " ") + style.doubt(row)


def _interval(row: CellRow, wall: float) -> tuple[float, float]:
    """Interval of the time per batch (ms); its ends are ``wall`` if there is none.

    Only the primary metric has an interval.
    """
    low, high, batches = (row.get(k) for k in ("ci_low_s", "ci_high_s", "batches"))
    if low is None or high is None or row["judged"] != "sample_time_s":
        return wall, wall
    return low / batches * 1e3, high / batches * 1e3


def _lines(cells: Sequence[CellRow], rows: Sequence[CellRow], page: Page) -> Figure:
    """A panel of lines over batch sizes for each dataset and fanouts."""
    named = labels(cells)
    groups = style.groups(rows, APART[:2])
    kept = page.fitting(list(groups))
    result, axes = page.panels(len(kept))
    names = _by_time([r for key in kept for r in groups[key]], named)
    for ax, key in zip(axes, kept, strict=True):
        _series(ax, groups[key], names, named)
        page.axis_texts(ax, f"{key[0]}, fanouts {key[1]}", "batch size", "time per batch [ms]")
    systems = {r["system"] for r in rows}
    notes = [style.not_drawn(cells, named), more(len(groups), len(kept), "panel")]
    page.head(result, TITLE, named, APART, [style.group_note(systems), *notes])
    keys = [Line2D([], [], label=name, **style.look(n)) for n, name in enumerate(names)]
    page.legend(result, [*keys, *style.cut_off(axes), *style.doubts(rows)])
    style.set_groups(result, systems)
    return result


def _by_time(rows: Sequence[CellRow], named: Labels) -> list[str]:
    """The names of lines, the fastest at the largest batch first."""
    largest = max(r["batch_size"] for r in rows)
    at_largest = {
        _name(r, named): _milliseconds(r) for r in rows if r["batch_size"] == largest
    }  # fmt: skip
    names = dict.fromkeys(_name(r, named) for r in rows)
    return sorted(names, key=lambda name: at_largest.get(name, float("inf")))


def _name(row: CellRow, named: Labels) -> str:
    name = named.system(row).replace(" sampler=", " ")
    return ", ".join([name, *named.varying(row, APART).values()])


def _series(ax: Axes, rows: Sequence[CellRow], names: Sequence[str], named: Labels) -> None:
    top = bars.REACH * max(map(_milliseconds, rows))
    for number, name in enumerate(names):
        own = sorted((r for r in rows if _name(r, named) == name), key=lambda r: r["batch_size"])
        look = style.look(number)
        ax.plot([r["batch_size"] for r in own], [*map(_milliseconds, own)], **look)
        for row in own:
            wall = _milliseconds(row)
            ends = _interval(row, wall)
            style.upright_interval(ax, row["batch_size"], wall, ends, (0.0, top), look["color"])
            style.mark_doubt(ax, row["batch_size"], wall, row)
    style.set_ticks(ax, sorted({float(r["batch_size"]) for r in rows}))
    ax.set_ylim(bottom=0)


def _legend(rows: Sequence[CellRow], stages: Sequence[StageRow]) -> list[Artist]:
    """Legend entries of what is drawn."""
    names = {**{s: s.replace("_", " ") for s in STAGES}, "whole": "stages not measured"}
    drawn = {part for row in rows for part in _parts(row, stages) or {"whole": 0.0}}
    handles: list[Artist] = [
        Patch(facecolor=COLOURS[k], label=text) for k, text in names.items() if k in drawn
    ]
    handles.append(style.interval_key("measured sampling time (outline), 95 % interval"))
    if any(map(_compared, rows)):
        handles += style.reference_keys("time of the reference", "of sampling time")
    return handles
