"""Kernels compared with the machine's measured peaks, and their times.

After FastGL's Figs. 11 and 12. A filled mark is drawn at operations / minimum traffic, a hollow one
at operations / requested traffic, and a cross at operations / measured traffic, where hardware
counters could be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gnnbench.analysis.grouping import group_by
from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.plots import style
from gnnbench.analysis.roofline_table import kernel_name
from gnnbench.schema import CellRow, RooflineRow
from gnnbench.schema.reader import Run

GIGA = 1e9
MARKERS = "osD^vPX*"
PANELS = ("forward", "backward")
APART = ("dataset", "device", "threads")  # each combination has a row of panels
ROOM = 4.0  # factor between the outermost mark and the edge of the panel
LEGEND = 0.4  # height of the legend / height of the drawn range
LEVELS = {"memory": "-", "L3": "--", "L2": "-.", "shared": ":"}


@dataclass(frozen=True)
class Kernel:
    """A measured kernel: its row, the label of its cell and a description of its work."""

    row: RooflineRow
    system: str
    work: str

    @property
    def label(self) -> str:
        """Name with direction, and for a layer its work."""
        name = kernel_name(self.row)
        return f"{name}\n{self.work}" if self.row["layer"] else name

    @property
    def intensities(self) -> list[float]:
        """Operations per byte of minimum, requested and measured traffic, if known."""
        columns = ("intensity", "asked_intensity", "memory_intensity")
        return [x for x in map(self.row.get, columns) if x is not None]


def figure(run: Run) -> Figure | None:
    """Panels of forward aggregations, of backward ones and of times; None without kernels.

    Each dataset, device and number of threads has a row of these three panels.
    """
    correct = [r for r in run.cells if r["status"] != "incorrect"]
    named = labels(correct)
    cells = {r["id"]: r for r in reversed(correct)}
    kernels = [
        Kernel(r, named.system(cells[r["id"]]), _work(r, cells[r["id"]], named))
        for r in run.roofline
        if r["kind"] == "kernel" and r["id"] in cells
    ]
    if not kernels:
        return None
    groups = group_by(kernels, lambda k: tuple(cells[k.row["id"]][axis] for axis in APART))
    systems = list(dict.fromkeys(k.system for k in kernels))
    works = list(dict.fromkeys(k.work for k in kernels if k.row["flops"]))
    result, axes = style.panels(3 * len(groups), 5.2)
    for number, ((dataset, device, threads), group) in enumerate(groups.items()):
        peaks = [
            r
            for r in run.roofline
            if r["kind"] == "ceiling" and (r["device"], r["threads"]) == (device, threads)
        ]
        for ax, direction in zip(axes[3 * number :], PANELS, strict=False):
            own = [k for k in group if k.row["direction"] == direction and k.row["flops"]]
            _roofline(ax, own, peaks, systems, works)
            ax.set_title(f"{dataset}, {device}: aggregation, {direction}", fontsize=9)
        _times(axes[3 * number + 2], group, systems)
    handles = [_key(systems.index(name), "s", name) for name in systems]
    handles += [_key(-1, MARKERS[n % len(MARKERS)], work) for n, work in enumerate(works)]
    result.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=7, frameon=False)
    style.head(result, "Kernels compared with the machine's peaks", named, APART)
    return result


def _work(row: RooflineRow, cell: CellRow, named: Labels) -> str:
    """The layer of a model and the width of its rows: equal for all systems."""
    axes = named.varying(cell, but=(*APART, "pick", "frontier")).values()
    return ", ".join([*axes, f"layer {row['layer']}, {row['width']} wide"])


def _colour(number: int) -> str:
    return "#666666" if number < 0 else style.PALETTE[number % len(style.PALETTE)]


def _key(number: int, mark: str, words: str) -> Line2D:
    return Line2D([], [], color=_colour(number), marker=mark, ls="", ms=5, label=words)


def _roofline(
    ax: Axes,
    kernels: Sequence[Kernel],
    peaks: Sequence[RooflineRow],
    systems: list[str],
    works: list[str],
) -> None:
    intensities = [x for k in kernels for x in k.intensities]
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("operations per byte [flop/B]", fontsize=8)
    ax.set_ylabel("GFLOP/s", fontsize=8)
    ax.tick_params(labelsize=8)
    if not kernels:
        return
    left, right = min(intensities) / ROOM, max(intensities) * ROOM
    peak = next((r["value"] / GIGA for r in peaks if r["name"] == "fma"), None)
    for level, bandwidth in _bandwidths(peaks).items():
        knee = right if peak is None else max(peak / bandwidth, left)
        xs = [left, min(knee, right)]
        ax.plot(
            xs, [x * bandwidth for x in xs], color="black", lw=0.9, ls=LEVELS[level],
            label=f"{level}, {_rate(bandwidth)}B/s",
        )  # fmt: skip
    if peak is not None:
        ax.axhline(peak, color="black", lw=1.6, label=f"multiply-adds, {_rate(peak)}FLOP/s")
    ax.legend(loc="lower left", fontsize=6.5, frameon=False)
    for kernel in kernels:
        _mark(ax, kernel.row, _colour(systems.index(kernel.system)), works.index(kernel.work))
    rates = [k.row["value"] / GIGA for k in kernels]
    ax.set_xlim(left, right)
    bottom, top = min(rates) / ROOM, max([*rates, peak or 0.0]) * 2
    ax.set_ylim(bottom * (bottom / top) ** LEGEND, top)


def _rate(giga: float) -> str:
    """A rate in units of 10^9 per second, with the prefix G or T."""
    return f"{giga / 1e3:.3g} T" if giga >= 1e3 else f"{giga:.3g} G"


def _bandwidths(peaks: Iterable[RooflineRow]) -> dict[str, float]:
    """Bandwidth by memory level (GB/s): the faster of copies and reads."""
    rates: dict[str, float] = {}
    for row in peaks:
        if row["unit"] == "B/s" and row["level"] and row["name"] != "rows":
            rates[row["level"]] = max(rates.get(row["level"], 0.0), row["value"] / GIGA)
    return rates


def _mark(ax: Axes, row: RooflineRow, colour: str, work: int) -> None:
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


def _times(ax: Axes, kernels: Sequence[Kernel], systems: list[str]) -> None:
    """Bars of time by kernel and system, with their share of the peak."""
    # Only the table shows repeated backward passes that reuse a transpose.
    shown = [k for k in kernels if k.row["direction"] != "backward, kept"]
    names = list(dict.fromkeys(k.label for k in shown))
    width = 0.8 / len(systems)
    for kernel in shown:
        row, number = kernel.row, systems.index(kernel.system)
        x = names.index(kernel.label) + (number - (len(systems) - 1) / 2) * width
        ax.bar(x, row["time_s"] * 1e3, width, color=_colour(number))
        if row["of_ceiling"] is not None:
            text = f"{row['of_ceiling']:.0%}" + "(?)" * bool(row["doubtful"])
            ax.annotate(
                text, (x, row["time_s"] * 1e3), fontsize=6, rotation=90, ha="center",
                va="bottom", xytext=(0, 2), textcoords="offset points",
            )  # fmt: skip
    ax.set_yscale("log")
    ax.margins(y=0.15)
    ax.set_xticks(range(len(names)), names, rotation=40, ha="right", fontsize=6.5)
    ax.set_ylabel("time [ms]; above: share of its peak", fontsize=8)
    ax.set_title("each alone, with cold caches", fontsize=9)
