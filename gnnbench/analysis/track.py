"""Ratios of cells over many runs or versions, and where they changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import NamedTuple

from gnnbench.analysis.compare import (
    NOT_JUDGED,
    match_cells,
    other_gpu,
    other_reference,
    other_work,
    package_versions,
)
from gnnbench.analysis.labels import labels
from gnnbench.analysis.reliability import UNRELIABLE_MARK, is_unreliable
from gnnbench.analysis.table_layout import TextTable, nonempty
from gnnbench.core.errors import UsageError
from gnnbench.core.units import plural, times
from gnnbench.schema import CellRow
from gnnbench.schema.reader import Run
from gnnbench.statistics.stopping_rule import MIN_PAIRS

SIDES = ("before", "here")
FIRST, NONE, FASTER, SLOWER = "first", "none", "faster", "slower"
CHANGES = (FIRST, NONE, FASTER, SLOWER, NOT_JUDGED)
RUNS, VERSIONS = "run", "version"  # what a series goes over
HEADS = ("revision", "versions", "pairs", "speed-up [95 %]", "change", "remark")
_STAMP = "%Y%m%dT%H%M%SZ"
_REFERENCES = "the reference's "


class Measured(NamedTuple):
    """A row of a cell and its run."""

    row: CellRow
    run: Run


@dataclass(frozen=True)
class Point:
    """The ratio of a cell to its reference in one run, or with one version of its packages.

    ``name`` is when the run started (its folder if that is unknown), or the version. ``change`` is
    ``faster`` or ``slower`` if its interval does not overlap that of ``since``, ``none`` if it
    does. ``since`` is the run (or version) of the last change, not the one before, so that many
    small changes add up to one. ``first`` starts a sequence of comparable ratios, ``not judged`` is
    no usable ratio; ``remark`` says why. ``versions`` are those of the packages of the cell and
    of its reference, ``started`` is in UTC.
    """

    name: str
    run: str
    started: str
    revision: str
    machine_id: str
    versions: dict[str, str]
    status: str
    pairs: int | None
    ratio: float | None
    ratio_ci_low: float | None
    ratio_ci_high: float | None
    unreliable: bool
    change: str
    since: str
    remark: str


@dataclass(frozen=True)
class Series:
    """A cell in all runs or versions that have it, the oldest first.

    ``reference`` names all references.
    """

    cell: str
    reference: str
    points: list[Point]

    def before(self, point: Point) -> Point:
        """The point of the last change before this one, which has one."""
        return next(one for one in self.points if point.since in (one.run, one.name))

    def versions(self, point: Point) -> str:
        """The versions of a point that are not the same in all points."""
        varying = {
            name for name in point.versions if len({p.versions.get(name) for p in self.points}) > 1
        }
        return ", ".join(f"{name} {point.versions[name]}" for name in sorted(varying))


@dataclass(frozen=True)
class Track:
    """Cells that two runs or versions have a ratio of, and the settings that all of them share.

    ``over`` is what the series go over: ``run`` or ``version``.
    """

    common: str
    runs: list[str]
    series: list[Series] = field(default_factory=list)
    over: str = RUNS

    def changes(self) -> list[tuple[Series, Point]]:
        """Points that are faster or slower."""
        return [(s, p) for s in self.series for p in s.points if p.change in (FASTER, SLOWER)]


def track(runs: Iterable[Run]) -> Track:
    """Follow the cells of runs in the order in which the runs started.

    Raises ``UsageError`` for fewer than two runs, or if no two have a ratio of the same cell.
    """
    ordered = sorted(runs, key=lambda run: (_started(run), str(run.path)))
    if len(ordered) < 2:
        raise UsageError("there is only one run; name two or more, or a folder of runs")
    by_cell: list[list[Measured]] = []
    for run in ordered:
        rows = [row for row in run.cells if row["verdict"] != "reference"]
        last = {id(cell[-1].row): cell for cell in by_cell}
        matches, _, new = match_cells([cell[-1].row for cell in by_cell], rows)
        for before, row in matches:
            last[id(before)].append(Measured(row, run))
        by_cell += [[Measured(row, run)] for row in new]
    tracked = [cell for cell in by_cell if sum(_has_ratio(m.row) for m in cell) > 1]
    if not tracked:
        raise UsageError("no two of the runs have a ratio of the same cell; name runs that do")
    named = labels([cell[-1].row for cell in tracked])
    series = [Series(named.of(cell[-1].row), references(cell), points(cell)) for cell in tracked]
    return Track(named.title(), [str(run.path) for run in ordered], series)


def references(cell: Sequence[Measured]) -> str:
    """The references of a cell, by commas."""
    return ", ".join(dict.fromkeys(m.row["reference"] for m in cell if m.row["reference"]))


def points(cell: Sequence[Measured], names: Sequence[str] = ()) -> list[Point]:
    """Judge each ratio of a cell by that of the last change.

    ``names`` are those of its points; default: when the runs started.
    """
    made: list[Point] = []
    level: tuple[Measured, str] | None = None  # since when the ratio has not changed
    for nth, measured in enumerate(cell):
        path = str(measured.run.path)
        name = names[nth] if names else _started(measured.run) or path
        change, remark = NOT_JUDGED, _unusable(measured.row)
        since = ""
        if not remark:
            remark = _incomparable(level[0], measured) if level else ""
            change = FIRST
            if level and not remark:
                change, since = _change(level[0].row, measured.row), level[1]
            if change != NONE:
                level = measured, name if names else path
        made.append(_point(measured, name, change, since, remark))
    return made


def _has_ratio(row: CellRow) -> bool:
    return None not in (row["ratio"], row["ratio_ci_low"], row["ratio_ci_high"])


def _unusable(row: CellRow) -> str:
    """Why a row has no ratio that can be judged; "" if it has one."""
    if row["status"] != "ok":
        return row["status"]
    if not _has_ratio(row):
        return "it has no ratio with an interval"
    if is_unreliable(row):
        return "its time is unreliable"
    return f"fewer than {MIN_PAIRS} pairs" if (row["pairs"] or 0) < MIN_PAIRS else ""


def _incomparable(before: Measured, here: Measured) -> str:
    """Why two ratios cannot be compared; "" if they can. Other versions are no reason."""
    return (
        other_work(before.row, here.row, SIDES)
        or other_reference(before.row, here.row, SIDES)
        or other_gpu(before.row, here.row, before.run, here.run, SIDES)
    )


def _change(before: CellRow, here: CellRow) -> str:
    if here["ratio_ci_low"] > before["ratio_ci_high"]:
        return FASTER
    return SLOWER if here["ratio_ci_high"] < before["ratio_ci_low"] else NONE


def _point(measured: Measured, name: str, change: str, since: str, remark: str) -> Point:
    row, run = measured
    code = run.record.revision
    revision = (code.git_revision or code.source_digest or "")[:8]
    return Point(
        name, str(run.path), _started(run), revision + "-dirty" * bool(code.git_dirty),
        run.record.machine_id or "", _versions(row, run), row["status"], row["pairs"], row["ratio"],
        row["ratio_ci_low"], row["ratio_ci_high"], is_unreliable(row), change, since, remark,
    )  # fmt: skip


def _started(run: Run) -> str:
    """When a run started, from ``run.json`` or else from its folder's name; "" if unknown."""
    for text in (run.record.started, *run.path.name.split("-")[1:2]):
        with suppress(ValueError):
            return datetime.strptime(text, _STAMP).strftime("%Y-%m-%d %H:%M")
    return ""


def _versions(row: CellRow, run: Run) -> dict[str, str]:
    """Versions by package; the reference's where it ran with another version."""
    merged: dict[str, str] = {}
    for name, version in package_versions(row, run).items():
        package = name.removeprefix(_REFERENCES)
        merged[package if merged.get(package, version) == version else name] = version
    return merged


def tables(track: Track) -> list[TextTable]:
    """A table for each cell, with a line for each run or version."""
    made = []
    for series in track.series:
        heads = (track.over, *HEADS)
        lines = _lines(series, heads)
        made.append(TextTable(nonempty(heads, lines), lines, series.cell))
    return made


def _lines(series: Series, heads: Sequence[str]) -> list[dict[str, str]]:
    machine = ""
    lines = []
    for point in series.points:
        remarks = [point.remark] if point.remark else []
        if point.change in (FASTER, SLOWER):
            remarks.append(f"{_factor(series, point)} of {series.before(point).name}")
        if machine and not point.remark and point.machine_id not in ("", machine):
            remarks.append("another machine")
        machine = point.machine_id or machine
        ratio = times(point.ratio, point.ratio_ci_low, point.ratio_ci_high, point.pairs)
        texts = (
            point.name, point.revision,
            "" if heads[0] == VERSIONS else series.versions(point), str(point.pairs or ""),
            f"{ratio} {UNRELIABLE_MARK}" if point.unreliable else ratio, point.change,
            "; ".join(remarks),
        )  # fmt: skip
        lines.append(dict(zip(heads, texts, strict=True)))
    return lines


def _factor(series: Series, point: Point) -> str:
    """A ratio over that of the last change: ``0.80x``."""
    before = series.before(point).ratio
    return times(point.ratio / before) if point.ratio and before else ""


def rows(track: Track) -> list[dict[str, object]]:
    """Every point of every cell with plain numbers, for CSV."""
    return [
        {"cell": series.cell, "reference": series.reference, **asdict(point)}
        | {"versions": ", ".join(f"{n} {v}" for n, v in point.versions.items())}
        for series in track.series
        for point in series.points
    ]


def summary(track: Track) -> list[str]:
    """Sentences: each change, and the number of changes, cells and runs."""
    changed = track.changes()
    sentences = [
        f"{series.cell}: {point.change} since {point.name} ({_factor(series, point)})"
        for series, point in changed
    ]
    names = {point.name for series in track.series for point in series.points}
    many = len(track.runs) if track.over == RUNS else len(names)
    cells, over = plural(len(track.series), "cell"), plural(many, track.over)
    return [*sentences, f"{plural(len(changed), 'change')} in {cells} over {over}"]
