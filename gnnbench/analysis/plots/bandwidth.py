"""Bandwidth of feature gathers by row width, number of rows, table size and multiprocessors.

After PyTorch-Direct's Figs. 8, 10 and 12. Dashed lines are contiguous copies of as many bytes,
measured alternately with the gathers. Requests per row follow its address model (Figs. 4 and 5).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gnnbench.analysis import metrics as m
from gnnbench.analysis.grouping import group_by
from gnnbench.analysis.labels import labels
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.plots import style
from gnnbench.analysis.plots.page import SCREEN, SMALL, Page, more
from gnnbench.schema import CellRow, MetricRow
from gnnbench.schema.reader import Run

GIGABYTE = 1e9
FLOAT_BYTES = 4
COPIES = {
    "host": "copy, host", "host_copy": "copy over the link", "zero_copy": "copy over the link",
    "device": "copy, device", "cache": "copy, device",
}  # fmt: skip
DASHES = {words: "--" if "link" in words or "host" in words else ":" for words in COPIES.values()}
WAYS = {"naive": "naive", "aligned": "aligned (shifted)", "lines": "lines that contain it"}
APART = ("dataset", "batch_size", "device")


@dataclass(frozen=True)
class Gather:
    """A measured cell. ``memory`` names the memory that it reads, ``copies`` has rates in GB/s.

    ``name`` is the label of its line, ``budget`` the number of multiprocessors or blocks that it
    may use, if that is swept.
    """

    row: CellRow
    rate: MetricRow
    copies: dict[str, list[float]]
    memory: str
    name: str = ""
    budget: int | None = None

    @property
    def gb_per_s(self) -> float:
        """Rate of feature rows (GB/s)."""
        return self.rate.value / GIGABYTE

    @property
    def row_bytes(self) -> int:
        """Bytes of a feature row."""
        return int(self.row["feature_dim"]) * FLOAT_BYTES

    @property
    def table_gb(self) -> float:
        """Size of the feature table (GB), two significant digits."""
        return float(f"{self.row['nodes'] * self.row_bytes / GIGABYTE:.2g}")

    @property
    def table_per_gather(self) -> int:
        """Rows of the table / rows of a gather."""
        return round(self.row["nodes"] / self.row["batch_size"])

    @property
    def sizes(self) -> str:
        """Widths of rows and table, in words."""
        return f"rows of {self.row_bytes} B, table of {self.table_gb:g} GB"

    @property
    def ends(self) -> tuple[float, float] | None:
        """The ends of the 95 % interval (GB/s); None without one."""
        if self.rate.low is None or self.rate.high is None:
            return None
        return self.rate.low / GIGABYTE, self.rate.high / GIGABYTE


@dataclass(frozen=True)
class Axis:
    """The x axis of a panel. ``fixed`` is equal for all gathers of a panel."""

    words: str
    value: Callable[[Gather], float]
    fixed: Callable[[Gather], Hashable]
    title: Callable[[Gather], str]


def _budget(words: str) -> Axis:
    return Axis(
        words,
        lambda g: float(g.budget or 0),
        lambda g: (g.memory, g.row["dataset"], g.row["batch_size"]),
        lambda g: f"{g.memory}, {g.sizes}",
    )


# By the name of the option, at any depth of a recipe.
BUDGETS = {
    "sms": _budget("multiprocessors of a green context"),
    "blocks": _budget("thread blocks of a capped grid"),
}
AXES = (
    Axis(
        "bytes of a row",
        lambda g: g.row_bytes,
        lambda g: (g.memory, g.table_gb, g.table_per_gather),
        lambda g: f"{g.memory}, table of {g.table_gb:g} GB, 1/{g.table_per_gather} a gather",
    ),
    Axis(
        "rows of a gather",
        lambda g: float(g.row["batch_size"]),
        lambda g: (g.memory, g.row["dataset"]),
        lambda g: f"{g.memory}, {g.sizes}",
    ),
    Axis(
        "GB of the table",
        lambda g: g.table_gb,
        lambda g: (g.memory, g.row["feature_dim"], g.row["batch_size"]),
        lambda g: f"{g.memory}, rows of {g.row_bytes} B, {g.row['batch_size']:,} a gather",
    ),
)
Panel = tuple[Axis | None, list[Gather]]


def figure(run: Run, page: Page = SCREEN) -> Figure | None:
    """A panel of lines for every axis that varies; None without rates.

    Gathers for which no axis varies are points of a panel of their own.
    """
    known = Metrics(run.metrics)
    rows = [r for r in run.cells if r["status"] != "incorrect"]
    gathers = [gather for r in rows if (gather := _gather(r, known)) is not None]
    if not gathers:
        return None
    budgets: list[Panel] = [
        (axis, group)
        for option, axis in BUDGETS.items()
        for group in group_by(_named(_swept(gathers, option), option), axis.fixed).values()
    ]
    others = _named(_not_drawn(gathers, budgets))
    panels: list[Panel] = [
        (axis, group)
        for axis in AXES
        for group in group_by(others, axis.fixed).values()
        if len({axis.value(g) for g in group}) > 1
    ]
    single = group_by(
        _not_drawn(others, panels), lambda g: (g.row["dataset"], g.row["batch_size"], g.memory)
    )
    panels += [*budgets, *((None, group) for group in single.values())]
    requests = _requests(gathers, known)
    kept = page.fitting([*panels, *[None] * (len(requests) > 1)], most=2)
    drawn = [panel for panel in kept if panel is not None]
    names = _by_rate([g for _, group in drawn for g in group])
    result, axes = page.panels(len(kept), most=2)
    for ax, (axis, group) in zip(axes, drawn, strict=False):
        # Intervals of few pairs can be very long, so they do not extend the axis.
        rates = [g.gb_per_s for g in group]
        top = 1.15 * max([*rates, *(r for g in group for r in _median_copies([g]).values())])
        if axis is None:
            first = group[0]
            title = f"{first.memory}, {first.sizes}, {first.row['batch_size']:,} a gather"
            _points(ax, group, names, top)
        else:
            title = axis.title(group[0])
            _lines(ax, axis, group, names, top)
        page.axis_texts(ax, title, axis.words if axis else "", "GB/s of rows")
        ax.set_ylim(0, top * 1.05)
    ways = _request_counts(page, axes[-1], requests) if kept[-1] is None else []
    named = labels(run.cells)
    systems = {g.row["system"] for g in gathers}
    total = len(panels) + (len(requests) > 1)
    notes = [style.not_drawn(run.cells, named), more(total, len(kept), "panel")]
    page.head(result, "Gather bandwidth", named, APART, [style.group_note(systems), *notes])
    keys = [*_legend([g for _, group in drawn for g in group], names), *ways]
    page.legend(result, [*keys, *style.cut_off(axes), *style.doubts(g.row for g in gathers)])
    style.set_groups(result, systems)
    return result


def _by_rate(gathers: Sequence[Gather]) -> list[str]:
    """The names of lines, the highest rate first."""
    best: dict[str, float] = {}
    for gather in gathers:
        best[gather.name] = max(best.get(gather.name, 0.0), gather.gb_per_s)
    return sorted(best, key=lambda name: -best[name])


def _legend(gathers: Sequence[Gather], names: Sequence[str]) -> list[Line2D]:
    """Legend entries of gathers and copies."""
    handles = [Line2D([], [], label=name, **style.look(n)) for n, name in enumerate(names)]
    handles += [
        Line2D([], [], color="black", lw=0.9, ls=DASHES[words], label=words)
        for words in dict.fromkeys(words for g in gathers for words in g.copies)
    ]
    if any(g.budget == 0 for g in gathers):
        words = "not limited: all multiprocessors"
        handles.append(Line2D([], [], color="0.3", lw=0.9, ls="-.", label=words))
    return handles


def _gather(row: CellRow, known: Metrics) -> Gather | None:
    """The gather of a cell; None if no rate or no copy was measured."""
    rate = known.row(row["id"], "features", m.ROW_RATE)
    if rate is None or known.value(row["id"], "features", m.OF_COPY) is None:
        return None
    copies: dict[str, list[float]] = {}
    for where, copied in known.by_where(row["id"], "features", m.COPY_RATE).items():
        copies.setdefault(COPIES[where], []).append(copied / GIGABYTE)
    return Gather(row, rate, copies, _memory(row, known))


def _memory(row: CellRow, known: Metrics) -> str:
    """The memory that is read. Device memory is much faster than the link: it needs its scale."""
    if row["device"] == "cpu":
        return "cpu"
    own = "device" in known.by_where(row["id"], "features", m.COPY_RATE)
    return f"{row['device']}, {'its' if own else 'host'} memory"


def _named(gathers: Sequence[Gather], option: str = "") -> list[Gather]:
    """Gathers with the labels that they have among each other, without ``option`` (the budget)."""
    named = labels(g.row for g in gathers)
    return [_with_label(g, named.system(g.row), option) for g in gathers]


def _with_label(gather: Gather, label: str, option: str) -> Gather:
    settings = [word.partition("=") for word in label.split(" ")]
    budgets = [value for path, _, value in settings if path.rpartition(".")[2] == option]
    name = " ".join("".join(s) for s in settings if s[0].rpartition(".")[2] != option)
    return replace(gather, name=name, budget=int(budgets[0]) if budgets else None)


def _swept(gathers: Sequence[Gather], option: str) -> list[Gather]:
    """Gathers with several values of an option among those that differ in nothing else."""
    limited = [g for g in _named(gathers, option) if g.budget is not None]
    lines = group_by(
        limited, lambda g: (g.name, g.memory, g.row["dataset"], g.row["batch_size"])
    ).values()
    return [g for line in lines if len({x.budget for x in line}) > 1 for g in line]


def _not_drawn(gathers: Sequence[Gather], panels: Sequence[Panel]) -> list[Gather]:
    """Gathers that are in no panel."""
    drawn = {g.row["id"] for _, group in panels for g in group}
    return [g for g in gathers if g.row["id"] not in drawn]


def _median_copies(gathers: Sequence[Gather]) -> dict[str, float]:
    """Median rate of the copies of some gathers (GB/s) by label."""
    rates: dict[str, list[float]] = {}
    for gather in gathers:
        for words, copied in gather.copies.items():
            rates.setdefault(words, []).extend(copied)
    return {words: statistics.median(own) for words, own in rates.items()}


def _lines(ax: Axes, axis: Axis, gathers: list[Gather], names: list[str], top: float) -> None:
    ticks = sorted({x for g in gathers if (x := axis.value(g))})
    for number, name in enumerate(names):
        own = sorted((g for g in gathers if g.name == name), key=axis.value)
        look = style.look(number)
        line = [(axis.value(g), g.gb_per_s) for g in own if axis.value(g)]
        if line:
            ax.plot(*zip(*line, strict=True), label=name, **look)
        for gather in own:
            if x := axis.value(gather):
                _interval(ax, x, gather, top, look["color"])
            else:  # a budget of 0 is no limit
                ax.axhline(
                    gather.gb_per_s,
                    color=look["color"],
                    lw=0.9,
                    ls="-.",
                    label=f"{name}, not limited",
                )
    copies = {x: _median_copies([g for g in gathers if axis.value(g) == x]) for x in ticks}
    for words in dict.fromkeys(w for own in copies.values() for w in own):
        at = [x for x in ticks if words in copies[x]]
        rates = [copies[x][words] for x in at]
        ax.plot(at, rates, color="black", lw=0.9, ls=DASHES[words], label=words)
    style.set_ticks(ax, ticks)


def _interval(ax: Axes, x: float, gather: Gather, top: float, colour: str) -> None:
    style.mark_doubt(ax, x, gather.gb_per_s, gather.row)
    if ends := gather.ends:
        style.upright_interval(ax, x, gather.gb_per_s, ends, (0.0, top), colour)


def _points(ax: Axes, gathers: list[Gather], names: list[str], top: float) -> None:
    """A marker with its interval and rate for each gather, the fastest on the left."""
    for x, gather in enumerate(sorted(gathers, key=lambda g: -g.gb_per_s)):
        look = style.look(names.index(gather.name), width=0.0)
        ax.plot([x], [gather.gb_per_s], label=gather.name, **look)
        _interval(ax, x, gather, top, look["color"])
        ax.annotate(
            f"{gather.gb_per_s:.3g}", (x, gather.gb_per_s), xytext=(6, -2),
            textcoords="offset points", va="top", fontsize=SMALL,
        )  # fmt: skip
    for words, copied in _median_copies(gathers).items():
        ax.axhline(copied, color="black", lw=0.9, ls=DASHES[words], label=words)
    ax.set_xticks([])
    ax.set_xlim(-0.5, len(gathers))


def _requests(gathers: Sequence[Gather], known: Metrics) -> dict[int, dict[str, float]]:
    """Requests per row by its bytes and by the way it is read."""
    by_width = {g.row_bytes: known.by_where(g.row["id"], "features", m.REQUESTS) for g in gathers}
    return {width: by_width[width] for width in sorted(by_width) if by_width[width]}


def _request_counts(page: Page, ax: Axes, widths: dict[int, dict[str, float]]) -> list[Line2D]:
    """Draw requests by row width. Returns the legend entries; equal lines have one."""
    lines: dict[tuple[float, ...], list[str]] = {}
    for way, words in WAYS.items():
        lines.setdefault(tuple(counts[way] for counts in widths.values()), []).append(words)
    keys = []
    for number, (counts, names) in enumerate(lines.items()):
        look, label = style.look(7 - number), f"requests, {' = '.join(names)}"
        ax.plot(list(widths), counts, label=label, **look)
        keys.append(Line2D([], [], label=label, **look))
    style.set_ticks(ax, list(widths))
    title, y = "requests to host memory", "requests of 128 B per row (model)"
    page.axis_texts(ax, title, "bytes of a row", y)
    ax.set_ylim(bottom=0)
    return keys
