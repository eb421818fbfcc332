"""Hit ratio, missed bytes per batch and memory IO time by cache size and policy.

After GNNLab's Figs. 4, 5, 10 and 11 and FastGL's Fig. 10a. Lines without markers are exact, from
the trace of one epoch. Markers are measured epochs.
"""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gnnbench.analysis import metrics as m
from gnnbench.analysis.labels import Labels, labels, paths_of
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.plots import style
from gnnbench.core.counters import CACHE_RATIO, FEATURE_BYTES
from gnnbench.schema import CellRow
from gnnbench.schema.reader import Run

# Each combination of these has its own lines, because hits depend on the sampled nodes.
APART = ("dataset", "fanouts", "batch_size", "pick", "device")
MARKERS = "osD^vPX*"
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


def figure(run: Run) -> Figure | None:
    """Three panels for each dataset and sampling setting; None if no cell has a cache."""
    rows = [r for r in run.cells if r["status"] != "incorrect"]
    known, named = Metrics(run.metrics), labels(rows)
    caches = {r["id"]: cache for r in rows if (cache := _cache_of(r, known)) is not None}
    if not caches:
        return None
    groups = {
        key: group
        for key, group in style.groups(rows, APART).items()
        if any(r["id"] in caches for r in group)
    }
    kinds = list(dict.fromkeys(kind for i, c in caches.items() for kind in _kinds(run, i, c)))
    result, axes = style.panels(3 * len(groups), 4.2)
    for number, (key, group) in enumerate(groups.items()):
        hits, missed, times = axes[3 * number : 3 * number + 3]
        own = [(r, caches[r["id"]]) for r in group if r["id"] in caches]
        for ax, column, scale in ((hits, "hit_ratio", 0.01), (missed, "missed_bytes", MEGABYTE)):
            _lines(ax, run, own, kinds, column, scale)
        for row, cache in own:
            number_of = kinds.index(cache.kind())
            _mark(hits, cache, number_of, known.value(row["id"], "features", m.HIT_RATIO), 0.01)
            _mark(missed, cache, number_of, _missed(known, row), MEGABYTE)
        _times(times, group, caches, kinds, named)
        hits.set_ylabel("hit ratio [%]", fontsize=8)
        missed.set_ylabel("missed rows per batch [MB]", fontsize=8)
        times.set_ylabel("memory IO per epoch [s]", fontsize=8)
        for ax in (hits, missed, times):
            ax.set_title(f"{key[0]}, {key[1]}, batch {key[2]}", fontsize=9)
            ax.set_xlabel("cached rows of all [%]", fontsize=8)
            ax.set_xlim(-4, 104)
            ax.set_ylim(bottom=0)
            ax.tick_params(labelsize=8)
            if ax is not missed and ax.get_legend_handles_labels()[0]:
                ax.legend(fontsize=7, frameon=False)
    style.add_doubt_legend(result, (r for group in groups.values() for r in group))
    style.head(result, "Feature cache", named, APART)
    return result


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


def _kinds(run: Run, cell: str, cache: CellCache) -> list[str]:
    return [cache.kind(), *(cache.kind(c["policy"]) for c in run.curves if c["id"] == cell)]


def _colour(number: int) -> str:
    return style.PALETTE[number % len(style.PALETTE)]


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
                color=_colour(number), lw=1.2, label=kind,
            )  # fmt: skip


def _mark(ax: Axes, cache: CellCache, number: int, value: float | None, scale: float) -> None:
    """Mark the value of a cell's measured epochs, if any."""
    if value is None or cache.ratio is None:
        return
    ax.plot(
        [cache.ratio * 100], [value / scale], linestyle="none", markersize=4,
        color=_colour(number), marker=MARKERS[number % len(MARKERS)],
    )  # fmt: skip


def _times(
    ax: Axes, rows: list[CellRow], caches: dict[str, CellCache], kinds: list[str], named: Labels
) -> None:
    """Measured times by ratio; cells without a cache are horizontal lines."""
    measured = [r for r in rows if r.get("memory_io_time_s") is not None]
    for number, kind in enumerate(kinds):
        points = sorted(
            (cache.ratio * 100, r["memory_io_time_s"])
            for r in measured
            if (cache := caches.get(r["id"])) and cache.kind() == kind and cache.ratio is not None
        )
        if points:
            ax.plot(
                *zip(*points, strict=True), color=_colour(number), lw=0.8, markersize=4,
                marker=MARKERS[number % len(MARKERS)], label=kind,
            )  # fmt: skip
    for row in measured:
        cache = caches.get(row["id"])
        if cache and cache.ratio is not None:
            style.mark_doubt(ax, cache.ratio * 100, row["memory_io_time_s"], row)
    for number, row in enumerate(r for r in measured if r["id"] not in caches):
        style_of = ("--", ":", "-.")[number % 3]
        ax.axhline(
            row["memory_io_time_s"],
            color="0.4",
            ls=style_of,
            lw=1,
            label=named.system(row) + style.doubt(row),
        )


def _missed(known: Metrics, row: CellRow) -> float | None:
    """Bytes per batch of rows that were neither cached nor reused from an earlier batch."""
    by_source = known.by_where(row["id"], "features", FEATURE_BYTES)
    fetched = [value for where, value in by_source.items() if where not in NOT_FETCHED]
    return sum(fetched) / row["batches"] if fetched and row.get("batches") else None
