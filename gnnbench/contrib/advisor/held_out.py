"""Compare the advice with measurements, on graphs that were not used to make the model.

``python -m gnnbench.contrib.advisor.held_out write PROFILE FILE`` writes down, for every graph of
a profile
of the experiment ``advise``, what is advised and all choices; then ``gnnbench run advise --profile
PROFILE`` measures these; ``... judge FILE RUN`` looks whether the advised one was within 10 % of
the fastest on all graphs but one. Leave the machine alone in both.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from gnnbench.contrib.advisor.model import OptionValue
from gnnbench.core.cell import flat
from gnnbench.core.errors import EXIT_OK, EXIT_REGRESSION, GnnbenchError, UsageError
from gnnbench.core.terminal import guard_streams
from gnnbench.schema import CellRow

if TYPE_CHECKING:
    from gnnbench.contrib.advisor.advice import AdviceRecord, Setting

EXPERIMENT = "advise"
WITHIN = 1.1  # times the fastest choice's time
MOST = 24  # choices a graph
SPARED = 1  # graphs on which the advice may be worse, of at least so many:
GRAPHS = 5
ASKED = ("dataset", "model", "hidden", "batch_size", "fanouts", "device", "seed")
STAMP = "%Y%m%dT%H%M%SZ"
Row = CellRow
T = TypeVar("T")


class RankedChoice(TypedDict):
    """What is read of a ranked choice: its settings and the expected seconds."""

    settings: dict[str, OptionValue]
    batch_s: float
    first_s: float


class RankedAdvice(TypedDict):
    """What is read of the advice on a graph: the setting by name, and the choices."""

    setting: dict[str, object]
    ranking: list[RankedChoice]


class WrittenAdvice(TypedDict):
    """What is read of a file that :func:`write` made: a time and the advice by dataset."""

    written: str
    advice: dict[str, RankedAdvice]


@dataclass(frozen=True)
class Judged:
    """The result for one graph.

    ``advised_over`` and ``fastest_over`` are a choice's time over that of the reference, which
    alternated with it; None where it has no result. ``advised_s`` and ``expected_s`` are seconds of
    an epoch as it was measured, which may be of fewer batches than the graph has.

    ``reason``: why there is nothing to be judged, or "".
    """

    dataset: str
    advised: dict[str, OptionValue]
    expected_s: float
    advised_s: float | None
    advised_over: float | None
    fastest_over: float | None
    fastest: dict[str, OptionValue]
    reason: str = ""

    @property
    def ok(self) -> bool:
        """Whether the advised choice came near enough to the fastest."""
        if self.advised_over is None or self.fastest_over is None or self.reason:
            return False
        return self.advised_over <= WITHIN * self.fastest_over


def write(profile: str, path: Path) -> dict[str, AdviceRecord]:
    """Advise on every graph of a profile and write a new file; returns the advice by dataset."""
    from gnnbench.contrib.advisor.advice import advise

    if path.exists():
        raise UsageError(f"'{path}' is there already; what was written down is not written again")
    advice = {s.dataset: advise(s).plain() for s in settings(profile)}
    record = {"profile": profile, "written": time.strftime(STAMP, time.gmtime()), "advice": advice}
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return advice


def _written(path: Path) -> WrittenAdvice:
    """What ``write`` has left there. Raises ``UsageError`` for anything else."""
    try:
        record = TypeAdapter(WrittenAdvice).validate_json(path.read_bytes())
    except (OSError, ValidationError):
        record = None
    if record is None or not record["advice"]:
        raise UsageError(f"'{path}' holds no advice; give a file that 'write' has made, whole")
    return record


def settings(profile: str) -> list[Setting]:
    """What each graph of a profile is to be advised on, by the definition's own axes."""
    from gnnbench.config import experiment
    from gnnbench.contrib.advisor.advice import SYSTEM, Setting
    from gnnbench.datasets.prepare import load_dataset

    asked = experiment.resolve(experiment.load(EXPERIMENT), profile)

    def one(axis: str, of: type[T]) -> T:
        values = asked.axis(axis)
        if len(values) != 1:
            raise UsageError(f"'{EXPERIMENT}' has one {axis} in a profile, not {len(values)}")
        return TypeAdapter(of).validate_python(values[0])

    settings_of = []
    for dataset in asked.names("dataset"):
        gib = None
        if one("device", str) == "cuda":
            graph = load_dataset(dataset, seed=one("seed", int))
            size = graph.num_nodes * graph.feature_dim * graph.features.element_size()
            gib = one(f"{SYSTEM}.features.ratio", float) * size / 2**30
        settings_of.append(
            Setting(
                dataset,
                one("model", str),
                one("hidden", int),
                one("batch_size", int),
                tuple(one("fanouts", list[int])),
                one("device", str),
                one("threads", int),
                one("seed", int),
                gib,
            )
        )
    return settings_of


def judge(record: WrittenAdvice, rows: Sequence[Row], started: str) -> list[Judged]:
    """Every graph's advice by the rows of a run. Raises ``UsageError`` where the run is older."""
    if started < record["written"]:
        raise UsageError("the run began before the advice was written down; measure again")
    return [_judged(name, advice, rows) for name, advice in record["advice"].items()]


def _judged(dataset: str, advice: RankedAdvice, rows: Sequence[Row]) -> Judged:
    ranking = advice["ranking"]
    cells = [_row(advice["setting"], choice["settings"], rows) for choice in ranking]
    times = [None if row is None else _over(row) for row in cells]
    no_settings: dict[str, OptionValue] = {}
    measured = [(t, choice["settings"]) for t, choice in zip(times, ranking, strict=True) if t]
    fastest_over, fastest = min(measured, key=lambda m: m[0], default=(None, no_settings))
    reason = ""
    if len(ranking) > MOST:
        reason = f"{len(ranking)} choices, more than {MOST}"
    elif len(measured) < len(ranking):
        reason = f"{len(ranking) - len(measured)} of {len(ranking)} choices have no result"
    best, batches = ranking[0], 0 if cells[0] is None else cells[0]["batches"]
    expected_s = best["batch_s"] * batches + best["first_s"]
    advised_s = None if cells[0] is None else float(cells[0]["judged_s"])
    return Judged(
        dataset, best["settings"], expected_s, advised_s, times[0], fastest_over, fastest, reason
    )


def _over(row: Row) -> float | None:
    """A choice's time over the reference's in their pairs: seconds of different pairs are those of
    a machine at different hours."""
    if row["id"] == row["reference_id"]:
        return 1.0
    return 1 / float(row["ratio"]) if row["ratio"] else None


def _row(
    asked_of: Mapping[str, object], wanted: Mapping[str, OptionValue], rows: Sequence[Row]
) -> Row | None:
    """Of the cell that is a choice: what was asked, all its settings, no cache below the store
    unsaid. One in doubt is none."""
    for row in rows:
        if row["status"] != "ok" or row["doubtful"] or not row["judged_s"]:
            continue
        if any(row[key] != _as_told(asked_of[key]) for key in ASKED):
            continue
        recipe = flat(json.loads(row["recipe"]))
        cached = "cache" in (recipe.get("features"), recipe.get("features.table"))
        asked = "cache" in (wanted["features"], wanted.get("features.table"))
        if cached == asked and all(recipe.get(path) == v for path, v in wanted.items()):
            return row
    return None


def _as_told(value: object) -> object:
    """A setting as a table of results has it."""
    return "/".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def passed(found: Sequence[Judged]) -> bool:
    """Whether the advice was good on all graphs, of ``GRAPHS`` or more on all but ``SPARED``."""
    spared = SPARED if len(found) >= GRAPHS else 0
    return bool(found) and sum(one.ok for one in found) >= len(found) - spared


def lines(found: Sequence[Judged]) -> list[str]:
    """A line a graph, and what they come to."""
    from gnnbench.core.units import seconds, times

    lines = []
    for one in found:
        if one.reason or not (one.advised_s and one.advised_over and one.fastest_over):
            lines.append(f"{one.dataset}: not judged: {one.reason or 'no result'}")
            continue
        settings = " ".join(f"{path}={value}" for path, value in one.advised.items())
        lines.append(
            f"{one.dataset}: {times(one.advised_over / one.fastest_over)} of the fastest; expected"
            f" {seconds(one.expected_s)}, took {seconds(one.advised_s)}; {settings}"
        )
    near = sum(one.ok for one in found)
    lines.append(f"within {WITHIN - 1:.0%} of the fastest on {near} of {len(found)} graphs")
    return lines


def main(words: Sequence[str]) -> int:
    """``write PROFILE FILE`` or ``judge FILE RUN``; 5 where the advice did not hold."""
    match list(words):
        case ["write", profile, file]:
            for dataset, advice in write(profile, Path(file)).items():
                print(dataset, advice["ranking"][0]["settings"])
            return EXIT_OK
        case ["judge", file, folder]:
            from gnnbench.schema.reader import read

            run = read(Path(folder))
            judged = judge(_written(Path(file)), run.cells, run.record["started"])
            print("\n".join(lines(judged)))
            return EXIT_OK if passed(judged) else EXIT_REGRESSION
    raise UsageError("give write PROFILE FILE, or judge FILE RUN")


if __name__ == "__main__":
    guard_streams()
    try:
        sys.exit(main(sys.argv[1:]))
    except GnnbenchError as error:
        print(f"gnnbench: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
