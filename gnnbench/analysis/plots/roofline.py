"""Kernels below the machine's roofs, and how long they take.

After FastGL's Figs. 11 and 12. Roofs are measured, not read off a data sheet. A filled mark stands
at the operations over the fewest bytes that a kernel can do with, a hollow one over the bytes that
it asks for; where hardware counters could be read, a cross stands over the bytes that memory gave.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.plots import style
from gnnbench.analysis.roofline_table import kernel_name
from gnnbench.schema.reader import Run

Row = Mapping[str, Any]

GIGA = 1e9
MARKERS = "osD^vPX*"
PANELS = ("forward", "backward")
APART = ("dataset", "device", "threads")  # rows of panels
ROOM = 4.0  # times beyond the outermost mark, on each side
LEGEND = 0.4  # of the height of what is drawn: room for the legend below it
LEVELS = {"memory": "-", "L3": "--", "L2": "-.", "shared": ":"}


def figure(run: Run) -> Figure | None:
    """For every dataset, device and number of threads a panel of forward aggregations, one of
    backward and one of times; None without kernels."""
    right = [r for r in run.cells if r["status"] != "incorrect"]
    named = labels(right)
    cells = {r["id"]: r for r in reversed(right)}
    cells_by_id: dict[str, Row] = dict(cells)
    told = [r for r in run.roofline if r["kind"] == "kernel" and r["id"] in cells]
    if not told:
        return None
    kernels = [{**r, "who": named.system(cells[r["id"]]), "work": _work(r, cells_by_id, named)}
               for r in told]  # fmt: skip
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in kernels:
        cell = cells[row["id"]]
        groups.setdefault(tuple(cell[axis] for axis in APART), []).append(row)
    who = list(dict.fromkeys(r["who"] for r in kernels))
    works = list(dict.fromkeys(r["work"] for r in kernels if r["flops"]))
    result, axes = style.panels(3 * len(groups), 5.2)
    for nth, ((dataset, device, threads), rows) in enumerate(groups.items()):
        roofs = [
            r
            for r in run.roofline
            if r["kind"] == "ceiling" and (r["device"], r["threads"]) == (device, threads)
        ]
        for ax, direction in zip(axes[3 * nth :], PANELS, strict=False):
            own = [r for r in rows if r["direction"] == direction and r["flops"]]
            _roofline(ax, own, roofs, who, works)
            ax.set_title(f"{dataset}, {device}: aggregation, {direction}", fontsize=9)
        _times(axes[3 * nth + 2], rows, who)
    handles = [_key(who.index(name), "s", name) for name in who]
    handles += [_key(-1, MARKERS[n % len(MARKERS)], work) for n, work in enumerate(works)]
    result.legend(
        handles=handles, loc="outside lower center", ncols=4, fontsize=7, frameon=False
    )  # fmt: skip
    style.head(result, "Kernels below the machine's ceilings", named, APART)
    return result


def _work(row: Row, cells: dict[str, Row], named: Labels) -> str:
    """What a kernel does, whoever does it: the layer of a model, the width of its rows."""
    axes = named.varying(cells[row["id"]], but=(*APART, "pick", "frontier")).values()
    return ", ".join([*axes, f"layer {row['layer']}, {row['width']} wide"])


def _colour(number: int) -> str:
    return "#666666" if number < 0 else style.PALETTE[number % len(style.PALETTE)]


def _key(number: int, mark: str, words: str) -> Line2D:
    return Line2D([], [], color=_colour(number), marker=mark, ls="", ms=5, label=words)


def _roofline(
    ax: Axes, rows: Sequence[Row], roofs: Sequence[Row], who: list[str], works: list[str]
) -> None:
    places = [x for r in rows for x in _intensities(r)]
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("operations a byte [flop/B]", fontsize=8)
    ax.set_ylabel("GFLOP/s", fontsize=8)
    ax.tick_params(labelsize=8)
    if not rows:
        return
    left, right = min(places) / ROOM, max(places) * ROOM
    peak = next((r["value"] / GIGA for r in roofs if r["name"] == "fma"), None)
    for level, bandwidth in _bandwidths(roofs).items():
        knee = right if peak is None else max(peak / bandwidth, left)
        xs = [left, min(knee, right)]
        ax.plot(
            xs, [x * bandwidth for x in xs], color="black", lw=0.9, ls=LEVELS[level],
            label=f"{level}, {_rate(bandwidth)}B/s",
        )  # fmt: skip
    if peak is not None:
        ax.axhline(peak, color="black", lw=1.6, label=f"multiply-adds, {_rate(peak)}FLOP/s")
    ax.legend(loc="lower left", fontsize=6.5, frameon=False)
    for row in rows:
        _mark(ax, row, _colour(who.index(row["who"])), works.index(row["work"]))
    rates = [r["value"] / GIGA for r in rows]
    ax.set_xlim(left, right)
    bottom, top = min(rates) / ROOM, max([*rates, peak or 0.0]) * 2
    ax.set_ylim(bottom * (bottom / top) ** LEGEND, top)


def _intensities(row: Row) -> list[float]:
    found = (row["intensity"], row["asked_intensity"], row["memory_intensity"])
    return [x for x in found if x is not None]


def _rate(giga: float) -> str:
    """Of units of 10^9 a second, with the prefix that they are read in."""
    return f"{giga / 1e3:.3g} T" if giga >= 1e3 else f"{giga:.3g} G"


def _bandwidths(roofs: Iterable[Row]) -> dict[str, float]:
    """GB/s by level: of memory the faster of copies and reads."""
    found: dict[str, float] = {}
    for row in roofs:
        if row["unit"] == "B/s" and row["level"] and row["name"] != "rows":
            found[row["level"]] = max(found.get(row["level"], 0.0), row["value"] / GIGA)
    return found


def _mark(ax: Axes, row: Row, colour: str, work: int) -> None:
    mark, rate = MARKERS[work % len(MARKERS)], row["value"] / GIGA
    xs = [row["asked_intensity"], row["intensity"]]
    ax.plot(xs, [rate, rate], color=colour, lw=0.6, alpha=0.6)
    ax.plot(xs[:1], [rate], color=colour, marker=mark, ms=4, mfc="none", ls="")
    error = None
    if row["low"] is not None and row["high"] is not None:
        error = [[rate - row["low"] / GIGA], [row["high"] / GIGA - rate]]
    ax.errorbar(xs[1:], [rate], error, color=colour, marker=mark, ms=5, lw=0.8, capsize=2, ls="")
    if row["memory_intensity"] is not None:
        ax.plot([row["memory_intensity"]], [rate], color=colour, marker="x", ms=6, ls="")
    if row["doubtful"]:
        ax.annotate(
            "(?)", (xs[1], rate), fontsize=8, xytext=(5, 0), textcoords="offset points"
        )  # fmt: skip


def _times(ax: Axes, rows: Sequence[Row], who: list[str]) -> None:
    """Bars of time by kernel, beside one another by system; above each its share of the ceiling."""
    # What a block keeps from one backward to the next is told in the table alone.
    shown = [r for r in rows if r["direction"] != "backward, kept"]
    kernels = list(dict.fromkeys(_place(r) for r in shown))
    wide = 0.8 / len(who)
    for row in shown:
        nth = who.index(row["who"])
        x = kernels.index(_place(row)) + (nth - (len(who) - 1) / 2) * wide
        ax.bar(x, row["time_s"] * 1e3, wide, color=_colour(nth))
        if row["of_ceiling"] is not None:
            text = f"{row['of_ceiling']:.0%}" + "(?)" * bool(row["doubtful"])
            ax.annotate(
                text, (x, row["time_s"] * 1e3), fontsize=6, rotation=90, ha="center",
                va="bottom", xytext=(0, 2), textcoords="offset points",
            )  # fmt: skip
    ax.set_yscale("log")
    ax.margins(y=0.15)
    ax.set_xticks(range(len(kernels)), kernels, rotation=40, ha="right", fontsize=6.5)
    ax.set_ylabel("time [ms]; above: share of its ceiling", fontsize=8)
    ax.set_title("each by itself, from empty caches", fontsize=9)


def _place(row: Row) -> str:
    return kernel_name(row) if not row["layer"] else f"{kernel_name(row)}\n{row['work']}"
