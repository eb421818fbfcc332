"""Bytes of feature rows a second, by their width, their number, the table's size and the budget of
multiprocessors.

After PyTorch-Direct's Figs. 8, 10 and 12. Dashed: copies of as many bytes in one piece, measured in
turn with the gathers. The requests for a row are its address model's (Figs. 4 and 5).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gnnbench.analysis import metrics as m
from gnnbench.analysis.labels import labels
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.plots import style
from gnnbench.schema.reader import Run

Row = Mapping[str, Any]
Number = Callable[[Row], float]

GIGABYTE = 1e9
FLOAT_BYTES = 4
MARKERS = "osD^vPX*"
DASHES = ("--", ":")
NEAREST_LABEL = 0.06  # of an axis, from one label to the next
COPIES = {
    "host": "copy, host", "host_copy": "copy over the link", "zero_copy": "copy over the link",
    "device": "copy, device", "cache": "copy, device",
}  # fmt: skip
APART = ("dataset", "batch_size", "device")
# Columns of the figure's own: whose memory rows are read from, whose line it is, and how large the
# budget is that its panel goes over.
PLACE, NAME, BUDGET = "place", "name", "budget"


@dataclass(frozen=True)
class Axis:
    """What lines go over, and what all cells of one panel have in common."""

    words: str
    of: Number
    fixed: Callable[[Row], tuple[Any, ...]]
    title: Callable[[Row], str]


def row_bytes(row: Row) -> int:
    """Bytes of a feature row of the cell's table."""
    return int(row["feature_dim"]) * FLOAT_BYTES


def table_size(row: Row) -> float:
    """Size of the cell's table in GB, two digits."""
    return float(f"{row['nodes'] * row_bytes(row) / GIGABYTE:.2g}")


def _share(row: Row) -> int:
    """The table's rows over those of a gather."""
    return round(row["nodes"] / row["batch_size"])


def _budget(words: str) -> Axis:
    return Axis(
        words,
        lambda r: float(r[BUDGET]),
        lambda r: (r[PLACE], r["dataset"], r["batch_size"]),
        lambda r: f"{r[PLACE]}, rows of {row_bytes(r)} B, table of {table_size(r):g} GB",
    )


# By the setting, at whatever depth of a recipe it stands.
BUDGETS = {
    "sms": _budget("multiprocessors of a green context"),
    "blocks": _budget("blocks that read: a capped grid"),
}
AXES = (
    Axis(
        "bytes of a row",
        row_bytes,
        lambda r: (r[PLACE], table_size(r), _share(r)),
        lambda r: f"{r[PLACE]}, table of {table_size(r):g} GB, 1/{_share(r)} a gather",
    ),
    Axis(
        "rows of a gather",
        lambda r: float(r["batch_size"]),
        lambda r: (r[PLACE], r["dataset"]),
        lambda r: f"{r[PLACE]}, rows of {row_bytes(r)} B, table of {table_size(r):g} GB",
    ),
    Axis(
        "GB of the table",
        table_size,
        lambda r: (r[PLACE], r["feature_dim"], r["batch_size"]),
        lambda r: f"{r[PLACE]}, rows of {row_bytes(r)} B, {r['batch_size']:,} a gather",
    ),
)


def figure(run: Run) -> Figure | None:
    """A panel for every axis that varies, bars where none does; None where no rate is known."""
    known = Metrics(run.metrics)
    rows: list[Row] = [r for r in run.cells if r["status"] != "incorrect" and _rate(r, known)]
    if not rows:
        return None
    named = labels(rows)
    rows = [{**r, PLACE: _place(r, known)} for r in rows]
    budgets: list[tuple[Axis | None, list[Row]]] = [
        (axis, g)
        for setting, axis in BUDGETS.items()
        for g in _groups(_named(_swept(rows, setting), setting), axis.fixed)
    ]
    others = _named(_but(rows, budgets))
    panels: list[tuple[Axis | None, list[Row]]] = [
        (axis, g)
        for axis in AXES
        for g in _groups(others, axis.fixed)
        if len({axis.of(r) for r in g}) > 1
    ]
    alone = _groups(_but(others, panels), lambda r: (r["dataset"], r["batch_size"], r[PLACE]))
    panels += [*budgets, *((None, g) for g in alone)]
    names = list(dict.fromkeys(r[NAME] for _, group in panels for r in group))
    widths = _requests(rows, known)
    result, axes = style.panels(len(panels) + (len(widths) > 1), 4.6, most=2)
    for ax, (over, group) in zip(axes, panels, strict=False):
        if over is None:
            _bars(ax, group, names, known)
        else:
            _lines(ax, over, group, names, known)
        ax.set_ylabel("GB/s of rows", fontsize=8)
        # An interval of few pairs may reach anywhere.
        ax.set_ylim(0, 1.15 * max(_told(group, known)))
    if len(widths) > 1:
        _staircase(axes[-1], widths)
    for ax in axes:
        ax.tick_params(labelsize=8)
        ax.legend(fontsize=7, frameon=False)
    style.tell_doubts(result, rows, pale=any(axis is None for axis, _ in panels))
    style.head(result, "Gather bandwidth", named, APART)
    return result


def _named(rows: Sequence[Row], setting: str = "") -> list[Row]:
    """Rows with the line that each belongs to among these, and what ``setting`` is where told."""
    named = labels(rows)
    return [{**r, **_parted(named.system(r), setting)} for r in rows]


def _parted(label: str, setting: str) -> Row:
    words = [word.partition("=") for word in label.split(" ")]
    told = [value for path, _, value in words if path.rpartition(".")[2] == setting]
    name = " ".join("".join(word) for word in words if word[0].rpartition(".")[2] != setting)
    return {NAME: name, BUDGET: int(told[0]) if told else None}


def _swept(rows: Sequence[Row], setting: str) -> list[Row]:
    """Those with more than one value of a setting where nothing else differs."""
    told = [r for r in _named(rows, setting) if r[BUDGET] is not None]
    lines = _groups(told, lambda r: (r[NAME], r[PLACE], r["dataset"], r["batch_size"]))
    return [r for line in lines if len({r[BUDGET] for r in line}) > 1 for r in line]


def _but(rows: Sequence[Row], panels: Sequence[tuple[Axis | None, list[Row]]]) -> list[Row]:
    """Rows that no panel has."""
    drawn = {r["id"] for _, group in panels for r in group}
    return [r for r in rows if r["id"] not in drawn]


def _groups(rows: Sequence[Row], key: Callable[[Row], tuple[Any, ...]]) -> list[list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return list(found.values())


def _rate(row: Row, known: Metrics) -> Row | None:
    """Told of gathers alone, where a copy stands beside it."""
    if known.value(row["id"], "features", m.OF_COPY) is None:
        return None
    return known.row(row["id"], "features", m.ROW_RATE)


def _place(row: Row, known: Metrics) -> str:
    """A device's own memory is many times as fast as the link: one scale does not show both."""
    if row["device"] == "cpu":
        return "cpu"
    own = "device" in known.by_where(row["id"], "features", m.COPY_RATE)
    return f"{row['device']}, {'its' if own else 'host'} memory"


def _copies(rows: Sequence[Row], known: Metrics) -> dict[str, float]:
    """Median rate of the copies beside some cells, by words."""
    found: dict[str, list[float]] = {}
    for row in rows:
        for where, rate in known.by_where(row["id"], "features", m.COPY_RATE).items():
            found.setdefault(COPIES[where], []).append(rate / GIGABYTE)
    return {words: statistics.median(rates) for words, rates in found.items()}


def _told(rows: Sequence[Row], known: Metrics) -> list[float]:
    """Every rate that a panel shows."""
    rates = [rate["value"] / GIGABYTE for r in rows if (rate := _rate(r, known))]
    return [*rates, *(c for r in rows for c in _copies([r], known).values())]


def _error(rate: Row) -> list[list[float]] | None:
    """Down and up to the ends of the interval; None without one."""
    if rate["low"] is None or rate["high"] is None:
        return None
    ends = (rate["value"] - rate["low"], rate["high"] - rate["value"])
    return [[e / GIGABYTE] for e in ends]


def _lines(ax: Axes, over: Axis, rows: list[Row], names: list[str], known: Metrics) -> None:
    ticks = sorted({x for r in rows if (x := over.of(r))})
    for row in rows:
        if over.of(row) and (rate := _rate(row, known)):
            style.query(ax, over.of(row), rate["value"] / GIGABYTE, row)
    for number, name in enumerate(names):
        mine = sorted((r for r in rows if r[NAME] == name), key=over.of)
        colour, mark = style.PALETTE[number % len(style.PALETTE)], MARKERS[number % len(MARKERS)]
        told = [(over.of(r), rate) for r in mine if (rate := _rate(r, known))]
        line = [(x, rate["value"] / GIGABYTE) for x, rate in told if x]
        if line:
            ax.plot(*zip(*line, strict=True), color=colour, lw=1.2, marker=mark, ms=4, label=name)
        for x, rate in told:
            if not x:  # no share of the multiprocessors, but all
                value = rate["value"] / GIGABYTE
                ax.axhline(value, color=colour, lw=0.9, ls="-.", label=f"{name}, on all")
            elif error := _error(rate):
                ax.errorbar([x], [rate["value"] / GIGABYTE], error, color=colour, lw=0.8, capsize=2)
    beside = {x: _copies([r for r in rows if over.of(r) == x], known) for x in ticks}
    for number, words in enumerate(dict.fromkeys(w for copies in beside.values() for w in copies)):
        at = [x for x in ticks if words in beside[x]]
        ax.plot(
            at, [beside[x][words] for x in at], color="black", lw=0.9, ls=DASHES[number % 2],
            label=words,
        )  # fmt: skip
    _scale(ax, ticks)
    ax.set_xlabel(over.words, fontsize=8)
    ax.set_title(over.title(rows[0]), fontsize=9)


def _scale(ax: Axes, ticks: Sequence[float]) -> None:
    """Every value is a tick; far from one another they are laid out by their logarithm.

    One that is too near the last that has a label has none.
    """
    far = ticks[0] > 0 and ticks[-1] / ticks[0] > len(ticks)
    at = [math.log(t) for t in ticks] if far else list(ticks)
    told, last = [""] * len(ticks), -math.inf
    for n, place in enumerate(at):
        if place - last >= NEAREST_LABEL * (at[-1] - at[0]):
            told[n], last = f"{ticks[n]:,g}", place
    if far:
        ax.set_xscale("log")
    ax.set_xticks(ticks, told, rotation=30, ha="right")
    ax.minorticks_off()


def _bars(ax: Axes, rows: list[Row], names: list[str], known: Metrics) -> None:
    for x, row in enumerate(rows):
        name = row[NAME]
        rate = _rate(row, known)
        assert rate is not None
        value = rate["value"] / GIGABYTE
        colour = style.PALETTE[names.index(name) % len(style.PALETTE)]
        ax.bar(
            x, value, 0.66, yerr=_error(rate), color=colour, label=name, error_kw={"lw": 0.8},
            alpha=style.paleness(row),
        )  # fmt: skip
        ax.annotate(
            f"{value:.3g}{style.doubt(row)}", (x, value), xytext=(0, 3),
            textcoords="offset points", ha="center", va="bottom", fontsize=7,
        )  # fmt: skip
    for number, (words, copied) in enumerate(_copies(rows, known).items()):
        ax.axhline(copied, color="black", lw=0.9, ls=DASHES[number % 2], label=words)
    ax.set_xticks([])
    row = rows[0]
    size = f"rows of {row_bytes(row)} B, table of {table_size(row):g} GB"
    ax.set_title(f"{row[PLACE]}, {size}, {row['batch_size']:,} a gather", fontsize=9)


def _requests(rows: Sequence[Row], known: Metrics) -> dict[int, dict[str, float]]:
    """Requests for a row by its bytes and by the way it is read."""
    found = {row_bytes(r): known.by_where(r["id"], "features", m.REQUESTS) for r in rows}
    return {size: found[size] for size in sorted(found) if found[size]}


def _staircase(ax: Axes, widths: dict[int, dict[str, float]]) -> None:
    words = {"naive": "naive", "aligned": "aligned (shifted)", "lines": "lines that it lies in"}
    sizes = list(widths)
    for number, (way, label) in enumerate(words.items()):
        ax.plot(
            sizes, [widths[s][way] for s in sizes], color=style.PALETTE[number],
            marker=MARKERS[number], markersize=4, lw=1.2, label=label,
        )  # fmt: skip
    _scale(ax, sizes)
    ax.set_xlabel("bytes of a row", fontsize=8)
    ax.set_ylabel("requests of 128 B for a row, by the model", fontsize=8)
    ax.set_title("what a GPU asks of the host", fontsize=9)
    ax.set_ylim(bottom=0)
