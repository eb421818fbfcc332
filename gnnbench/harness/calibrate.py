"""A/A pairs: two workers of one system, measured by the code that compares two systems."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import JsonValue

from gnnbench.analysis.compare import is_in_statistics
from gnnbench.config import experiment as definitions
from gnnbench.config import grid
from gnnbench.config.merge import subtable
from gnnbench.config.overrides import Overrides, as_definition, spelled
from gnnbench.core import names, registry
from gnnbench.core.cell import phases
from gnnbench.core.errors import CellsFailedError, UsageError
from gnnbench.core.files import plain, write_text
from gnnbench.harness import campaign, environment
from gnnbench.harness.campaign import Request
from gnnbench.harness.pairing import MOST_DOUBTED, Observer
from gnnbench.harness.plan import CellPair, Plan
from gnnbench.schema import SampleRow, reader
from gnnbench.schema.events import TrialEvent, read_trials
from gnnbench.statistics import noise, primary_metric
from gnnbench.statistics.noise import Calibration, RuleValidation
from gnnbench.statistics.stopping_rule import Rule
from gnnbench.version import __version__

FILE = "calibrate.json"
DIGITS = 6  # of a logarithm: what is judged is what stands in the file


@dataclass(frozen=True)
class Wish:
    """What to calibrate with; ``dataset`` and ``device`` default to the smoke profile's.

    ``pairs`` of fresh processes of ``rounds`` rounds each; ``verify``: comparisons to regroup them
    into, 0 for none.
    """

    system: str = "baseline"
    dataset: str = ""
    device: str = ""
    until: str = ""
    pairs: int = 12
    rounds: int = 6
    verify: int = 0
    options: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """Return the same as a command line."""
        given = {**asdict(self), "options": ()}
        words = [f"--{k} {v}" for k, v in given.items() if v]
        return " ".join(["gnnbench calibrate", *words, *(f"-o {o}" for o in self.options)])


@dataclass(frozen=True)
class Found:
    """A calibration, what was verified of the rule (None: nothing was asked), and the samples."""

    calibration: Calibration
    verified: RuleValidation | None
    folder: Path


def make_request(wish: Wish, out: Path) -> Request:
    """A run of A/A pairs. Raises ``UsageError``; ``CellsFailedError`` for what cannot run here."""
    loaded = definitions.load("breakdown")
    if wish.rounds % 2:
        raise UsageError(
            f"--rounds {wish.rounds} is odd; give an even number, so that each side begins as often"
        )
    over = Overrides(
        systems=(wish.system,),
        datasets=(wish.dataset,) if wish.dataset else (),
        device=wish.device,
        options=(*((f"until={wish.until}",) if wish.until else ()), *wish.options),
    )
    over = spelled(over, loaded, registry.known(registry.SYSTEM))
    (system,) = over.systems
    names.check("system", system, registry.known(registry.SYSTEM))
    raw = as_definition(over, loaded, environment.known_paths)
    raw |= {"name": "calibrate", "title": "A/A pairs", "reference": system, "figures": []}
    fixed: dict[str, JsonValue] = {
        "unstable_half_width": 0.0, "pairs": [wish.pairs], "rounds": wish.rounds,
        "target_half_width": 1e-9, "time_budget_s": 1e9,
    }  # fmt: skip
    if given := [key for key in fixed if key in subtable(raw, "measure")]:
        raise UsageError(
            f"a calibration takes no '{given[0]}'; --pairs and --rounds say how much is measured"
        )
    raw["measure"] = {**subtable(raw, "measure"), **fixed}
    resolved = definitions.resolve(loaded, "smoke", raw)
    base, *others = grid.expand(resolved, environment.resolve, known=environment.known_paths).cells
    if others:
        raise UsageError(f"a calibration is of one cell, and {1 + len(others)} are named; give one")
    failure = environment.state(base).failure or environment.dataset_state(base.dataset)
    if failure is not None:
        raise CellsFailedError(failure.reason)
    a, b = (replace(base, replica=side) for side in (0, 1))
    plan = Plan([a, b], [CellPair(b, a)], references={a.id: a, b.id: a})
    plan.names = {c.id: [c.system] for c in plan.cells}
    return Request(resolved, plan, out, profile="smoke")


def calibrate(wish: Wish, out: Path, observer: Observer) -> Found:
    """Measure, judge and store.

    Raises ``UsageError`` for too few pairs to verify by; ``CellsFailedError`` where a worker failed
    or the machine was not quiet: nothing is stored then.
    """
    rule = Rule()
    least = 2 * rule.analyses[-1]
    if wish.verify and wish.pairs < least:
        raise UsageError(f"--verify needs --pairs {least} or more, not {wish.pairs}")
    request = make_request(wish, out)
    outcome = campaign.run(replace(request, wait=True), observer)
    for row in outcome.rows:
        if row["status"] not in ("ok", "unstable"):
            raise CellsFailedError(
                f"no calibration: {row['system']} is {row['status']}: {row['reason']}"
            )
        if row["status"] == "ok" and row["doubtful"]:
            raise CellsFailedError(
                f"no calibration: {row['system']} is doubtful: {row['doubtful']}"
            )
    result = judge(outcome.folder, request.plan.pairs[0], wish, rule)
    noise.store(result.calibration)
    return result


def judge(folder: Path, pair: CellPair, wish: Wish, rule: Rule) -> Found:
    """Evaluate a run of A/A pairs; write the result and its pairs to ``FILE`` in the run's folder.

    Raises ``CellsFailedError`` if too many pairs are unreliable, or too few are left to verify the
    rule.
    """
    run = reader.read(folder)
    base = pair.system
    lives, doubted = _lives(folder)
    if len(doubted) > MOST_DOUBTED * wish.pairs or len(lives) < 2:
        raise CellsFailedError(
            f"no calibration: {len(doubted)} of {wish.pairs} pairs are in doubt: {doubted[0]}"
        )
    if wish.verify and len(lives) < 2 * rule.analyses[-1]:
        raise CellsFailedError(
            f"no calibration: {len(lives)} of {wish.pairs} pairs count ({doubted[0]}) and --verify"
            f" needs {2 * rule.analyses[-1]}; give more --pairs"
        )
    samples = [s for s in run.samples if is_in_statistics(s) and s["life"] in lives]
    keys = ["wall_s", *(f"{phase}_time_s" for phase in phases(base.until))]
    series = {key: _round_logs(samples, pair, key) for key in keys}
    known = Calibration(
        machine_id=run.record["machine_id"],
        device=base.device,
        threads=run.cells[0]["threads"],
        system=base.system,
        dataset=base.dataset,
        until=base.until,
        version=__version__,
        lives=2 * len(lives),
        rounds=wish.rounds,
        start_s=statistics.median(e["start_s"] for e in lives.values()),
        epoch_s=statistics.median(s["wall_s"] for s in samples),
        at=run.record["started"],
        spreads={key: noise.spread(logs) for key, logs in series.items()},
    )
    earlier = noise.prior(noise.load(known.machine_id), base.device)  # not fitted to these pairs
    primary = primary_metric.of(base.until).key
    verified = {
        key: noise.verify(logs, rule, earlier if key == primary else None, wish.verify)
        for key, logs in series.items()
        if wish.verify
    }
    written = {
        "command": wish.command,
        "revision": run.record.revision.model_dump(mode="json", exclude_unset=True),
        "versions": run.record.versions,
        "doubted": len(doubted),
        "calibration": asdict(known),
        "verified": {key: asdict(check) for key, check in verified.items()},
        "log_ratios": series,
    }
    write_text(folder / FILE, json.dumps(plain(written), allow_nan=False) + "\n")
    return Found(known, verified.get(primary), folder)


def _lives(folder: Path) -> tuple[dict[int, TrialEvent], list[str]]:
    """Return the pairs that count, by number, and the doubts of those that count but are
    unreliable.
    """
    counted = [e for e in read_trials(folder / "events.jsonl") if not e["void"]]
    doubted = [e["doubt"] for e in counted if e["doubt"]]
    return {e["life"]: e for e in counted if not e["doubt"]}, doubted


def _round_logs(samples: Sequence[SampleRow], pair: CellPair, key: str) -> list[list[float]]:
    """Return the log ratios of a pair's trials, round by round, rounded to ``DIGITS``."""
    assert pair.reference is not None
    lives: dict[int, dict[int, dict[str, float]]] = {}
    for s in samples:
        lives.setdefault(s["life"], {}).setdefault(s["round"], {})[s["id"]] = s[key]
    sides = pair.reference.id, pair.system.id
    return [
        [round(math.log(r[sides[0]] / r[sides[1]]), DIGITS) for r in life.values()]
        for life in lives.values()
    ]
