"""Kernels compared with the machine's measured peaks, and their times.

After FastGL's Figs. 11 and 12. A filled mark is drawn at operations / minimum traffic, a hollow one
at operations / requested traffic, and a cross at operations / measured traffic, where hardware
counters could be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from gnnbench.analysis.grouping import group_by
from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.plots import style
from gnnbench.analysis.plots.page import GREY, SCREEN, SMALL, Page, broken, more
from gnnbench.analysis.roofline_table import kernel_name
from gnnbench.core.units import plural
from gnnbench.schema import CellRow, RooflineRow
from gnnbench.schema.reader import Run

GIGA = 1e9
PANELS = ("forward", "backward")
APART = ("dataset", "device", "threads")  # the first combination is drawn
ROOM = 4.0  # factor between the outermost mark and the edge of the panel
TABLE = "roofline.csv"
BAR = 0.105  # height of a bar of a time (inches)
TIMES_REST = 0.7  # height of the panel of times without its bars (inches)
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
        return f"{name}, {self.work}" if self.row["layer"] else name

    @property
    def intensities(self) -> list[float]:
        """Operations per byte of minimum, requested and measured traffic, if known."""
        columns = ("intensity", "asked_intensity", "memory_intensity")
        return [x for x in map(self.row.get, columns) if x is not None]


def figure(run: Run, page: Page = SCREEN) -> Figure | None:
    """Panels of forward aggregations, of backward ones and of times; None without kernels.

    The first dataset, device and number of threads is drawn, others are counted.
    """
    correct = [r for r in run.cells if r["status"] != "incorrect"]
    named = labels(run.cells)
    cells = {r["id"]: r for r in reversed(correct)}
    kernels = [
        Kernel(r, named.system(cells[r["id"]]), _work(r, cells[r["id"]], named))
        for r in run.roofline
        if r["kind"] == "kernel" and r["id"] in cells
    ]
    if not kernels:
        return None
    groups = group_by(kernels, lambda k: tuple(cells[k.row["id"]][axis] for axis in APART))
    (dataset, device, threads), group = next(iter(groups.items()))
    systems = _by_time(group)
    works = list(dict.fromkeys(k.work for k in group if k.row["flops"]))
    times = _shown_times(group, systems, page)
    result, axes, below = _axes(page, times, systems)
    peaks = _peaks(run.roofline, device, threads)
    for ax, direction in zip(axes, PANELS, strict=True):
        own = [k for k in group if k.row["direction"] == direction and k.row["flops"]]
        _roofline(ax, own, peaks, systems, works)
        page.axis_texts(ax, f"aggregation, {direction}", "operations per byte [flop/B]", "GFLOP/s")
    _times(below, times, systems, page)
    hidden = [
        more(len(groups), 1, "setting", TABLE),
        more(len(_kernel_names(group)), len(times), "kernel", TABLE),
    ]
    setting = f"{dataset}, {device}" + f", {plural(threads, 'thread')}" * bool(threads)
    notes = [setting, style.not_drawn(run.cells, named), *hidden]
    title = "Kernels compared with the machine's peaks"
    page.head(result, title, named, APART, notes)
    handles = [_key(n, "s", name) for n, name in enumerate(systems)]
    handles += [_key(-1, style.MARKERS[n % len(style.MARKERS)], w) for n, w in enumerate(works)]
    page.legend(result, [*handles, *_peak_keys(peaks), *_mark_keys(group)])
    return result


def _by_time(kernels: Sequence[Kernel]) -> list[str]:
    """Systems by the sum of the times of all kernels, the fastest first."""
    sums: dict[str, float] = {}
    for kernel in kernels:
        sums[kernel.system] = sums.get(kernel.system, 0.0) + kernel.row["time_s"]
    return sorted(sums, key=lambda system: sums[system])


def _kernel_names(kernels: Iterable[Kernel]) -> list[str]:
    """Labels of kernels, without repeated backward passes that reuse a transpose."""
    return list(dict.fromkeys(k.label for k in kernels if k.row["direction"] != "backward, kept"))


def _shown_times(
    kernels: Sequence[Kernel], systems: Sequence[str], page: Page
) -> dict[str, list[Kernel]]:
    """Kernels by label, as many as fit the page below the rooflines."""
    rows = 2 if page.columns == 1 else 1
    room = page.free_height - rows * page.panel - TIMES_REST
    names = _kernel_names(kernels)
    shown = names[: max(int(room / _slot(systems)), 1)]
    return {name: [k for k in kernels if k.label == name] for name in shown}


def _slot(systems: Sequence[str]) -> float:
    """Height of the bars of a kernel (inches): one for each system, not less than two lines."""
    return max(BAR * (len(systems) + 1), 0.32)


def _axes(
    page: Page, times: Mapping[str, list[Kernel]], systems: Sequence[str]
) -> tuple[Figure, list[Axes], Axes]:
    """Two rooflines, and below them the axes of the times, over the whole width."""
    columns = min(page.columns, 2)
    heights = [page.panel] * (3 - columns) + [TIMES_REST + _slot(systems) * len(times)]
    figure = Figure(figsize=(page.width, sum(heights)), layout="constrained")
    grid = figure.add_gridspec(len(heights), columns, height_ratios=heights)
    axes = [figure.add_subplot(grid[n // columns, n % columns]) for n in range(2)]
    below = figure.add_subplot(grid[-1, :])
    for ax in (*axes, below):
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="x" if ax is below else "y", linewidth=0.4, alpha=0.5)
        ax.set_axisbelow(True)
        ax.tick_params(labelsize=page.names)
    return figure, axes, below


def _peaks(rows: Iterable[RooflineRow], device: object, threads: object) -> list[RooflineRow]:
    ceilings = (r for r in rows if r["kind"] == "ceiling")
    return [r for r in ceilings if (r["device"], r["threads"]) == (device, threads)]


def _peak_keys(peaks: Sequence[RooflineRow]) -> list[Line2D]:
    """Legend entries of the measured peaks."""
    keys = [
        Line2D([], [], color="black", lw=0.9, ls=LEVELS[level], label=_bandwidth_name(level, rate))
        for level, rate in _bandwidths(peaks).items()
    ]
    if (peak := _multiply_adds(peaks)) is not None:
        keys.append(Line2D([], [], color="black", lw=1.6, label=_peak_name(peak)))
    return keys


def _mark_keys(kernels: Sequence[Kernel]) -> list[Line2D]:
    """Legend entries of the traffic by which marks are placed."""
    marks = [("o", GREY, "operations / least traffic"), ("o", "none", "/ requested traffic")]
    if any(k.row["memory_intensity"] is not None for k in kernels):
        marks.append(("x", GREY, "/ measured traffic"))
    keys = [
        Line2D([], [], color=GREY, marker=mark, mfc=face, ls="", ms=5, label=words)
        for mark, face, words in marks
    ]
    return [*keys, Line2D([], [], lw=0, label="% at a bar: share of its peak")]


def _work(row: RooflineRow, cell: CellRow, named: Labels) -> str:
    """The layer of a model and the width of its rows: equal for all systems."""
    axes = named.varying(cell, but=(*APART, "pick", "frontier")).values()
    return ", ".join([*axes, f"layer {row['layer']}, {row['width']} wide"])


def _colour(number: int) -> str:
    return GREY if number < 0 else style.PALETTE[number % len(style.PALETTE)]


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
    if not kernels:
        return
    left, right = min(intensities) / ROOM, max(intensities) * ROOM
    peak = _multiply_adds(peaks)
    for level, bandwidth in _bandwidths(peaks).items():
        knee = right if peak is None else max(peak / bandwidth, left)
        xs = [left, min(knee, right)]
        ax.plot(
            xs,
            [x * bandwidth for x in xs],
            color="black",
            lw=0.9,
            ls=LEVELS[level],
            label=_bandwidth_name(level, bandwidth),
        )
    if peak is not None:
        ax.axhline(peak, color="black", lw=1.6, label=_peak_name(peak))
    for kernel in kernels:
        _mark(ax, kernel.row, _colour(systems.index(kernel.system)), works.index(kernel.work))
    rates = [k.row["value"] / GIGA for k in kernels]
    ax.set_xlim(left, right)
    ax.set_ylim(min(rates) / ROOM, max([*rates, peak or 0.0]) * 2)


def _multiply_adds(peaks: Iterable[RooflineRow]) -> float | None:
    """The peak of multiply-adds (GFLOP/s)."""
    return next((r["value"] / GIGA for r in peaks if r["name"] == "fma"), None)


def _bandwidth_name(level: str, rate: float) -> str:
    return f"{level}, {_rate(rate)}B/s"


def _peak_name(peak: float) -> str:
    return f"multiply-adds, {_rate(peak)}FLOP/s"


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
    mark, rate = style.MARKERS[work % len(style.MARKERS)], row["value"] / GIGA
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
            "(?)", (xs[1], rate), fontsize=SMALL, xytext=(5, 0), textcoords="offset points"
        )  # fmt: skip


def _times(
    ax: Axes, shown: Mapping[str, list[Kernel]], systems: Sequence[str], page: Page
) -> None:  # fmt: skip
    """Bars of time by kernel and system, with their share of the peak."""
    height = BAR / _slot(systems)
    for place, kernels in enumerate(shown.values()):
        for kernel in kernels:
            row, number = kernel.row, systems.index(kernel.system)
            y, time = place + (number - (len(systems) - 1) / 2) * height, row["time_s"] * 1e3
            ax.barh(y, time, height, color=_colour(number))
            if row["of_ceiling"] is not None:
                text = f"{row['of_ceiling']:.0%}" + "(?)" * bool(row["doubtful"])
                ax.annotate(
                    text, (time, y), fontsize=SMALL, va="center", xytext=(2, 0),
                    textcoords="offset points",
                )  # fmt: skip
    ax.set_xscale("log")
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.margins(x=0.12)
    ax.set_yticks(range(len(shown)), [broken(n, 1.3, SMALL) for n in shown], fontsize=SMALL)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    page.axis_texts(ax, "each alone, with cold caches", "time [ms]")
