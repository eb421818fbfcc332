"""Hit ratio, missed bytes per batch and memory IO time by cache size and policy.

After GNNLab's Figs. 4, 5, 10 and 11 and FastGL's Fig. 10a. Lines without markers are exact, from
the trace of one epoch, of the policies that were run. Markers are measured epochs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gnnbench.analysis import metrics as m
from gnnbench.analysis.labels import Labels, labels, paths_of
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.plots import style
from gnnbench.analysis.plots.page import SCREEN, Page, more
from gnnbench.core.counters import CACHE_RATIO, FEATURE_BYTES
from gnnbench.schema import CellRow
from gnnbench.schema.reader import Run

# Each combination of these has its own lines, because hits depend on the sampled nodes.
APART = ("dataset", "fanouts", "batch_size", "pick", "device")
LINES = ("--", ":", "-.")  # of cells without a cache
TRACE = "trace"  # gid of lines that are not measured
Y_AXES = ("hit ratio [%]", "missed rows per batch [MB]", "memory IO per epoch [s]")
MEGABYTE = 1e6
CACHE = "cache"
NOT_FETCHED = (CACHE, "reused")  # sources of rows that were on the device already
PLAIN_ORDER = "as-drawn"


@dataclass(frozen=True)
class CellCache:
    """The cache of a cell. ``ratio`` is None if it was derived and not recorded.

    ``context`` names the store in front of the cache and the order of batches, if not default.
    """

    policy: str
    ratio: float | None
    context: str

    def kind(self, policy: str = "") -> str:
        """The label of a line: a policy (by default that of the cell) with the context."""
        return f"{policy or self.policy}{self.context}"


def figure(run: Run, page: Page = SCREEN) -> Figure | None:
    """Three panels for each dataset and sampling setting; None if no cell has a cache."""
    rows = [r for r in run.cells if r["status"] != "incorrect"]
    known, named = Metrics(run.metrics), labels(run.cells)
    caches = {r["id"]: cache for r in rows if (cache := _cache_of(r, known)) is not None}
    if not caches:
        return None
    groups = {
        key: group
        for key, group in style.groups(rows, APART).items()
        if any(r["id"] in caches for r in group)
    }
    kept = page.fitting(list(groups), each=3)
    shown = [r for key in kept for r in groups[key]]
    kinds = _by_hits([(r, caches[r["id"]]) for r in shown if r["id"] in caches], known)
    others = list(dict.fromkeys(_without(r, named) for r in shown if _is_line(r, caches)))
    result, axes = page.panels(3 * len(kept))
    for number, key in enumerate(kept):
        own = [(r, caches[r["id"]]) for r in groups[key] if r["id"] in caches]
        _panels(axes[3 * number : 3 * number + 3], run, own, kinds, known)
        _times(axes[3 * number + 2], groups[key], caches, kinds, others, named)
        for ax, name in zip(axes[3 * number :], Y_AXES, strict=False):
            title = f"{key[0]}, fanouts {key[1]}, batch {key[2]}"
            page.axis_texts(ax, title, "cached rows of all [%]", name)
            ax.margins(x=0.06)
            top = float(ax.dataLim.y1) if ax.lines else 0.0
            ax.set_ylim(0, 1.08 * top or None)  # markers at the edge are drawn whole
    notes = [style.not_drawn(run.cells, named), more(len(groups), len(kept), "setting")]
    page.head(result, "Feature cache", named, APART, notes)
    page.legend(result, [*_legend(kinds, others, axes), *style.doubts(shown)])
    return result


def _panels(
    axes: Sequence[Axes], run: Run, own: list[tuple[CellRow, CellCache]],
    kinds: list[str], known: Metrics,
) -> None:  # fmt: skip
    """The panels of hits and missed bytes of one setting."""
    hits, missed = axes[:2]
    for ax, column, scale in ((hits, "hit_ratio", 0.01), (missed, "missed_bytes", MEGABYTE)):
        _lines(ax, run, own, kinds, column, scale)
    for row, cache in own:
        number = kinds.index(cache.kind())
        _mark(hits, cache, number, known.value(row["id"], "features", m.HIT_RATIO), 0.01)
        _mark(missed, cache, number, _missed(known, row), MEGABYTE)


def _by_hits(own: Sequence[tuple[CellRow, CellCache]], known: Metrics) -> list[str]:
    """Labels of the lines: policies that were run, the one with the most hits first."""
    hits: dict[str, list[float]] = {}
    for row, cache in own:
        value = known.value(row["id"], "features", m.HIT_RATIO)
        hits.setdefault(cache.kind(), []).extend([] if value is None else [value])
    return sorted(hits, key=lambda kind: -sum(hits[kind]) / max(len(hits[kind]), 1))


def _legend(kinds: Sequence[str], others: Sequence[str], axes: Sequence[Axes]) -> list[Artist]:
    handles: list[Artist] = [
        Line2D([], [], label=kind, **style.look(n)) for n, kind in enumerate(kinds)
    ]
    handles += [
        Line2D([], [], color="0.4", lw=1, ls=LINES[n % len(LINES)], label=name)
        for n, name in enumerate(others)
    ]
    if any(line.get_gid() == TRACE for ax in axes for line in ax.lines):
        words = "line: from the trace of an epoch; marker: measured"
        handles.append(Line2D([], [], lw=0, label=words))
    return handles


def _cache_of(row: CellRow, known: Metrics) -> CellCache | None:
    """The cache at any depth of a cell's recipe; None without one."""
    paths = paths_of(row)
    place = next((p for p in paths if p.startswith("features") and paths[p] == CACHE), None)
    if place is None:
        return None
    ratio = paths[f"{place}.ratio"]
    if isinstance(ratio, str):
        ratio = known.value(row["id"], "features", CACHE_RATIO)
    context = "" if place == "features" else f" behind {paths['features']}"
    if paths.get("order", PLAIN_ORDER) != PLAIN_ORDER:
        context += f", {paths['order']} order"
    assert ratio is None or isinstance(ratio, int | float)
    return CellCache(str(paths[f"{place}.policy"]), ratio, context)


def _lines(
    ax: Axes,
    run: Run,
    rows: list[tuple[CellRow, CellCache]],
    kinds: list[str],
    column: str,
    scale: float,
) -> None:
    """One line of each kind. Cells of one kind have the same trace and thus the same line."""
    caches = {row["id"]: cache for row, cache in rows}
    points = [(c, caches[c["id"]].kind(c["policy"])) for c in run.curves if c["id"] in caches]
    for number, kind in enumerate(kinds):
        of_kind = [c for c, own in points if own == kind]
        own = [c for c in of_kind if c["id"] == of_kind[0]["id"]]
        if own:
            ax.plot(
                [c["ratio"] * 100 for c in own], [c[column] / scale for c in own],
                color=style.look(number)["color"], lw=1.2, label=kind, gid=TRACE,
            )  # fmt: skip


def _mark(ax: Axes, cache: CellCache, number: int, value: float | None, scale: float) -> None:
    """Mark the value of a cell's measured epochs, if any."""
    if value is not None and cache.ratio is not None:
        at = [cache.ratio * 100], [value / scale]
        ax.plot(*at, clip_on=False, **style.look(number, width=0.0))


def _is_line(row: CellRow, caches: Mapping[str, CellCache]) -> bool:
    """Whether a row has a measured time and no cache."""
    return row.get("memory_io_time_s") is not None and row["id"] not in caches


def _without(row: CellRow, named: Labels) -> str:
    return f"{named.system(row)}{style.doubt(row)}, no cache"


def _times(
    ax: Axes, rows: list[CellRow], caches: dict[str, CellCache], kinds: list[str],
    others: list[str], named: Labels,
) -> None:  # fmt: skip
    """Measured times by ratio; cells without a cache are horizontal lines."""
    measured = [r for r in rows if r.get("memory_io_time_s") is not None]
    for number, kind in enumerate(kinds):
        points = sorted(
            (cache.ratio * 100, r["memory_io_time_s"])
            for r in measured
            if (cache := caches.get(r["id"])) and cache.kind() == kind and cache.ratio is not None
        )
        if points:
            ax.plot(*zip(*points, strict=True), label=kind, **style.look(number, width=0.8))
    for row in measured:
        cache = caches.get(row["id"])
        if cache and cache.ratio is not None:
            style.mark_doubt(ax, cache.ratio * 100, row["memory_io_time_s"], row)
        if _is_line(row, caches):
            name = _without(row, named)
            dashes = LINES[others.index(name) % len(LINES)]
            ax.axhline(row["memory_io_time_s"], color="0.4", ls=dashes, lw=1, label=name)


def _missed(known: Metrics, row: CellRow) -> float | None:
    """Bytes per batch of rows that were neither cached nor reused from an earlier batch."""
    by_source = known.by_where(row["id"], "features", FEATURE_BYTES)
    fetched = [value for where, value in by_source.items() if where not in NOT_FETCHED]
    return sum(fetched) / row["batches"] if fetched and row.get("batches") else None
