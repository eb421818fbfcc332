"""Headlines of ``docs/results.md`` and ``README.md``: selected ratios of committed runs."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from gnnbench.analysis.labels import fits
from gnnbench.core.errors import UsageError
from gnnbench.core.units import times
from gnnbench.schema import CellRow, RatioRow, reader
from gnnbench.schema.reader import Run

SELECTION = Path(__file__).with_suffix(".toml")
HEADS = ("measured", "compared with", "machine", "pairs", "speed-up [95 %]", "run")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Headline(_Strict):
    """A ratio of a committed run.

    ``of`` is the label of the measured cell. The ratio is that to its reference, or with ``over``
    that of a pair of ``ratios.csv``. ``rows`` has column values that select one row; ``inverse``
    swaps the two sides. ``readme`` shows it in ``README.md`` too.
    """

    measured: str
    against: str
    run: str
    of: str
    over: str = ""
    rows: dict[str, str | int | float | bool] = {}
    inverse: bool = False
    readme: bool = False


class Group(_Strict):
    """Headlines under a common title."""

    title: str
    row: list[Headline]


class Figure(_Strict):
    """A figure of a run, by its path below the committed results; ``readme`` as of a headline."""

    path: str
    caption: str
    readme: bool = False


class Result(NamedTuple):
    """A headline with its run and the row that has its ratio."""

    headline: Headline
    run: Run
    row: CellRow | RatioRow


class Selection(_Strict):
    """All headlines and figures."""

    group: list[Group]
    figure: list[Figure] = []


def selection() -> Selection:
    """The shipped selection."""
    return Selection.model_validate(tomllib.loads(SELECTION.read_text(encoding="utf-8")))


def ratio_row(headline: Headline, run: Run) -> CellRow | RatioRow:
    """The row with the ratio of a headline. Raises ``UsageError`` unless one row fits."""
    rows: list[CellRow] | list[RatioRow]
    if headline.over:
        rows = [r for r in run.ratios if _is_pair(headline, r, run.cells)]
    else:
        rows = [r for r in run.cells if fits(r, headline.of) and r["ratio"] is not None]
    selected = [r for r in rows if all(r[key] == value for key, value in headline.rows.items())]
    if len(selected) != 1:
        raise UsageError(
            f"'{run.path}' has {len(selected)} ratios of the headline '{headline.measured}',"
            " expected one; correct 'of', 'over' or 'rows' in headlines.toml"
        )
    return selected[0]


def interval(headline: Headline, row: CellRow | RatioRow) -> tuple[float, float, float]:
    """The ratio of a headline and the ends of its interval."""
    value, low, high = (row[k] for k in ("ratio", "ratio_ci_low", "ratio_ci_high"))
    return (1 / value, 1 / high, 1 / low) if headline.inverse else (value, low, high)


def _is_pair(headline: Headline, row: RatioRow, cells: Iterable[CellRow]) -> bool:
    """Whether a row of ``ratios.csv`` is the time of ``over`` divided by the time of ``of``."""
    first, _, second = row["pair"].partition("-")
    by_id = {c["id"]: c for c in cells}
    if first not in by_id or second not in by_id:
        return False
    return fits(by_id[first], headline.over) and fits(by_id[second], headline.of)


def results(chosen: Iterable[Headline], committed: Path) -> list[Result]:
    """Read the runs of headlines below ``committed``. Raises as ``ratio_row``."""
    runs = [(headline, reader.read(committed / headline.run)) for headline in chosen]
    return [Result(headline, run, ratio_row(headline, run)) for headline, run in runs]


def table(
    measured: Iterable[Result], machine: Callable[[Run], str], link: Callable[[Run], str]
) -> list[dict[str, str]]:
    """Lines by head; ``machine`` and ``link`` give the texts of a run's machine and page."""
    return [
        {
            "measured": headline.measured, "compared with": headline.against,
            "machine": machine(run), "pairs": str(row["pairs"]),
            "speed-up [95 %]": times(*interval(headline, row)), "run": link(run),
        }
        for headline, run, row in measured
    ]  # fmt: skip
