"""Bandwidth of feature gathers by row width, number of rows, table size and multiprocessors.

After PyTorch-Direct's Figs. 8, 10 and 12. Dashed lines are contiguous copies of as many bytes,
measured alternately with the gathers. Requests per row follow its address model (Figs. 4 and 5).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gnnbench.analysis import metrics as m
from gnnbench.analysis.grouping import group_by
from gnnbench.analysis.labels import labels
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.plots import style
from gnnbench.schema import CellRow, MetricRow
from gnnbench.schema.reader import Run

GIGABYTE = 1e9
FLOAT_BYTES = 4
MARKERS = "osD^vPX*"
DASHES = ("--", ":")
NEAREST_LABEL = 0.06  # distance of two tick labels / length of the axis
COPIES = {
    "host": "copy, host", "host_copy": "copy over the link", "zero_copy": "copy over the link",
    "device": "copy, device", "cache": "copy, device",
}  # fmt: skip
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
    def error(self) -> list[list[float]] | None:
        """Distances to the ends of the 95 % interval; None without one."""
        low, high, value = self.rate.low, self.rate.high, self.rate.value
        if low is None or high is None:
            return None
        return [[(value - low) / GIGABYTE], [(high - value) / GIGABYTE]]


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


def figure(run: Run) -> Figure | None:
    """A panel of lines for every axis that varies, of bars if none does; None without rates."""
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
    names = list(dict.fromkeys(g.name for _, group in panels for g in group))
    requests = _requests(gathers, known)
    result, axes = style.panels(len(panels) + (len(requests) > 1), 4.6, most=2)
    for ax, (axis, group) in zip(axes, panels, strict=False):
        if axis is None:
            _bars(ax, group, names)
        else:
            _lines(ax, axis, group, names)
        ax.set_ylabel("GB/s of rows", fontsize=8)
        # Intervals of few pairs can be very long, so they do not extend the axis.
        rates = [g.gb_per_s for g in group]
        rates += [rate for g in group for rate in _median_copies([g]).values()]
        ax.set_ylim(0, 1.15 * max(rates))
    if len(requests) > 1:
        _request_counts(axes[-1], requests)
    for ax in axes:
        ax.tick_params(labelsize=8)
        ax.legend(fontsize=7, frameon=False)
    drawn = [g.row for g in gathers]
    style.add_doubt_legend(result, drawn, pale=any(axis is None for axis, _ in panels))
    style.head(result, "Gather bandwidth", labels(drawn), APART)
    return result


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


def _lines(ax: Axes, axis: Axis, gathers: list[Gather], names: list[str]) -> None:
    ticks = sorted({x for g in gathers if (x := axis.value(g))})
    for gather in gathers:
        if axis.value(gather):
            style.mark_doubt(ax, axis.value(gather), gather.gb_per_s, gather.row)
    for number, name in enumerate(names):
        own = sorted((g for g in gathers if g.name == name), key=axis.value)
        colour, mark = style.PALETTE[number % len(style.PALETTE)], MARKERS[number % len(MARKERS)]
        line = [(axis.value(g), g.gb_per_s) for g in own if axis.value(g)]
        if line:
            ax.plot(*zip(*line, strict=True), color=colour, lw=1.2, marker=mark, ms=4, label=name)
        for gather in own:
            x, rate = axis.value(gather), gather.gb_per_s
            if not x:  # a budget of 0 is no limit
                ax.axhline(rate, color=colour, lw=0.9, ls="-.", label=f"{name}, on all")
            elif error := gather.error:
                ax.errorbar([x], [rate], error, color=colour, lw=0.8, capsize=2)
    copies = {x: _median_copies([g for g in gathers if axis.value(g) == x]) for x in ticks}
    for number, words in enumerate(dict.fromkeys(w for own in copies.values() for w in own)):
        at = [x for x in ticks if words in copies[x]]
        ax.plot(
            at, [copies[x][words] for x in at], color="black", lw=0.9, ls=DASHES[number % 2],
            label=words,
        )  # fmt: skip
    _scale(ax, ticks)
    ax.set_xlabel(axis.words, fontsize=8)
    ax.set_title(axis.title(gathers[0]), fontsize=9)


def _scale(ax: Axes, ticks: Sequence[float]) -> None:
    """Set a tick for each value, on a logarithmic scale for a wide range.

    A tick too close to the previous label has no label.
    """
    far = ticks[0] > 0 and ticks[-1] / ticks[0] > len(ticks)
    at = [math.log(t) for t in ticks] if far else list(ticks)
    texts, last = [""] * len(ticks), -math.inf
    for n, position in enumerate(at):
        if position - last >= NEAREST_LABEL * (at[-1] - at[0]):
            texts[n], last = f"{ticks[n]:,g}", position
    if far:
        ax.set_xscale("log")
    ax.set_xticks(ticks, texts, rotation=30, ha="right")
    ax.minorticks_off()


def _bars(ax: Axes, gathers: list[Gather], names: list[str]) -> None:
    for x, gather in enumerate(gathers):
        colour = style.PALETTE[names.index(gather.name) % len(style.PALETTE)]
        ax.bar(
            x, gather.gb_per_s, 0.66, yerr=gather.error, color=colour, label=gather.name,
            error_kw={"lw": 0.8}, alpha=style.paleness(gather.row),
        )  # fmt: skip
        ax.annotate(
            f"{gather.gb_per_s:.3g}{style.doubt(gather.row)}", (x, gather.gb_per_s), xytext=(0, 3),
            textcoords="offset points", ha="center", va="bottom", fontsize=7,
        )  # fmt: skip
    for number, (words, copied) in enumerate(_median_copies(gathers).items()):
        ax.axhline(copied, color="black", lw=0.9, ls=DASHES[number % 2], label=words)
    ax.set_xticks([])
    first = gathers[0]
    ax.set_title(f"{first.memory}, {first.sizes}, {first.row['batch_size']:,} a gather", fontsize=9)


def _requests(gathers: Sequence[Gather], known: Metrics) -> dict[int, dict[str, float]]:
    """Requests per row by its bytes and by the way it is read."""
    by_width = {g.row_bytes: known.by_where(g.row["id"], "features", m.REQUESTS) for g in gathers}
    return {width: by_width[width] for width in sorted(by_width) if by_width[width]}


def _request_counts(ax: Axes, widths: dict[int, dict[str, float]]) -> None:
    words = {"naive": "naive", "aligned": "aligned (shifted)", "lines": "lines that contain it"}
    sizes = list(widths)
    for number, (way, label) in enumerate(words.items()):
        ax.plot(
            sizes, [widths[s][way] for s in sizes], color=style.PALETTE[number],
            marker=MARKERS[number], markersize=4, lw=1.2, label=label,
        )  # fmt: skip
    _scale(ax, sizes)
    ax.set_xlabel("bytes of a row", fontsize=8)
    ax.set_ylabel("requests of 128 B per row (model)", fontsize=8)
    ax.set_title("requests to host memory", fontsize=9)
    ax.set_ylim(bottom=0)
