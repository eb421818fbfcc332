"""Speed-ups of a peer over its versions: each ran in an environment of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from packaging.version import InvalidVersion, Version

from gnnbench.analysis.compare import KEY, has_same_settings, own_versions
from gnnbench.analysis.labels import labels
from gnnbench.analysis.track import (
    VERSIONS,
    Measured,
    Point,
    Series,
    Track,
    points,
    references,
    summary,
    tables,
)
from gnnbench.core import text as safe
from gnnbench.core.errors import UsageError
from gnnbench.schema import CellRow
from gnnbench.schema.reader import Run


def history(runs: Iterable[Run]) -> Track:
    """Order the environments of cells (``--env``) by the versions of the packages that vary.

    Each ratio is over the same cell in the environment of the run, which is a point itself: 1. A
    series has one run, because the versions of different runs have no common reference. Raises
    ``UsageError`` if no run has a ratio of another environment.
    """
    runs = list(runs)
    histories = [cell for run in runs for cell in _by_cell(run)]
    if not histories:
        raise UsageError(
            "no run has a system in two environments; give one for each version, for example"
            " run sampling --systems pyg --env old=.venv-old"
        )
    named = labels([cell[0].row for cell in histories])
    series = [
        Series(named.of(cell[0].row), references(cell[1:]), _ordered(cell)) for cell in histories
    ]
    return Track(named.title(), [str(run.path) for run in runs], series, VERSIONS)


def _by_cell(run: Run) -> list[list[Measured]]:
    """The cells of a run that have other environments: the cell itself, then these."""
    rows = {row["id"]: row for row in run.cells}
    found: dict[str, list[Measured]] = {}
    for row in run.cells:
        base = rows.get(row["reference_id"] or "")
        if row["env"] and base and _is_same_cell(base, row):
            found.setdefault(base["id"], [Measured(base, run)]).append(Measured(row, run))
    return list(found.values())


def _is_same_cell(base: CellRow, row: CellRow) -> bool:
    return not base["env"] and has_same_settings(base, row, [key for key in KEY if key != "env"])


def _ordered(cell: Sequence[Measured]) -> list[Point]:
    """Points of a cell and its other environments, by version."""
    base, *others = cell
    # Of a reference the ratio is 1 by definition; it took part in the pairs of the others.
    pairs = max(m.row["pairs"] or 0 for m in others)
    first = replace(
        base.row, ratio=1.0, ratio_ci_low=1.0, ratio_ci_high=1.0, pairs=pairs, doubtful="",
        reference=others[0].row["reference"],
    )  # fmt: skip
    all_ = [Measured(first, base.run), *others]
    versions = [own_versions(m.row) for m in all_]
    everywhere = set.intersection(*(set(v) for v in versions))
    varying = sorted(name for name in everywhere if len({v[name] for v in versions}) > 1)
    order = sorted(range(len(all_)), key=lambda n: [_key(versions[n][v]) for v in varying])
    names = [", ".join(f"{v} {versions[n][v]}" for v in varying) or "same versions" for n in order]
    names = [
        name if names.count(name) == 1 else f"{name} ({all_[n].row['env'] or 'this environment'})"
        for n, name in zip(order, names, strict=True)
    ]
    return points([all_[n] for n in order], names)


def _key(version: str) -> tuple[bool, Version, str]:
    """Order versions as pip does; other texts first."""
    try:
        return True, Version(version), ""
    except InvalidVersion:
        return False, Version("0"), version


def page(track: Track, figure: str) -> str:
    """A Markdown page: the changes by name, the curves and a table for each cell.

    ``figure`` is the path of the figure, relative to the page.
    """
    changed = summary(track)
    parts = [
        "# Speed-ups over versions",
        safe.markdown_line(f"{track.common}. Each version ran in an environment of its own"
        " (`gnnbench run ... --env NAME=PATH`), in turn with the version in the environment of the"
        " run, whose speed-up is 1."),
        "\n".join(f"- {safe.markdown_line(sentence)}" for sentence in changed),
        f"![Speed-up over the reference by version.]({figure})",
    ]  # fmt: skip
    for table in tables(track):
        parts += [f"## {safe.markdown_line(table.title)}", "\n".join(table.markdown())]
    return "\n\n".join(parts) + "\n"
