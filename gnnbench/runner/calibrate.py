"""A/A pairs: two workers of one system, measured by the code that compares two systems."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gnnbench import experiment as definitions
from gnnbench import grid, names, registry
from gnnbench.cell import phases
from gnnbench.errors import CellsFailedError, UsageError
from gnnbench.files import read_journal
from gnnbench.measure import judged, noise
from gnnbench.measure.noise import Calibration, Verified
from gnnbench.measure.rule import Rule
from gnnbench.overrides import Overrides, as_definition
from gnnbench.results import reader
from gnnbench.results.compare import counts
from gnnbench.runner import available, campaign, environment
from gnnbench.runner.campaign import Request
from gnnbench.runner.folder import utc_stamp
from gnnbench.runner.pairing import MOST_DOUBTED, Observer
from gnnbench.runner.plan import Pair, Plan
from gnnbench.version import __version__


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


@dataclass(frozen=True)
class Found:
    """A calibration, what was verified of the rule (None: nothing was asked), and the samples."""

    calibration: Calibration
    verified: Verified | None
    folder: Path


def make_request(wish: Wish, out: Path) -> Request:
    """A run of A/A pairs. Raises ``UsageError``; ``CellsFailedError`` for what cannot run here."""
    names.check("system", wish.system, registry.known(registry.SYSTEM))
    loaded = definitions.load("breakdown")
    over = Overrides(
        systems=(wish.system,),
        datasets=(wish.dataset,) if wish.dataset else (),
        device=wish.device,
        options=(*((f"until={wish.until}",) if wish.until else ()), *wish.options),
    )
    raw = as_definition(over, loaded, environment.known_paths)
    raw |= {"name": "calibrate", "title": "A/A pairs", "reference": wish.system, "figures": []}
    raw["measure"] = {
        **raw.get("measure", {}), "unstable_half_width": 0.0, "pairs": [wish.pairs],
        "rounds": wish.rounds, "target_half_width": 1e-9, "time_budget_s": 1e9,
    }  # fmt: skip
    resolved = definitions.resolve(loaded, "smoke", raw)
    base = grid.expand(resolved, available.resolve).cells[0]
    failure = available.state(base).failure or environment.dataset_state(base.dataset)
    if failure is not None:
        raise CellsFailedError(failure.reason)
    a, b = (replace(base, replica=side) for side in (0, 1))
    plan = Plan([a, b], [Pair(b, a)], references={a.id: a, b.id: a})
    plan.names = {c.id: [c.system] for c in plan.cells}
    return Request(resolved, plan, out, profile="smoke")


def calibrate(wish: Wish, out: Path, observer: Observer) -> Found:
    """Measure, judge and store.

    Raises ``UsageError`` for too few pairs to verify by; ``CellsFailedError`` where a worker failed
    or the machine was not quiet: nothing is stored then.
    """
    rule = Rule()
    if wish.verify and wish.pairs < 2 * rule.looks[-1]:
        raise UsageError(f"--verify needs --pairs {2 * rule.looks[-1]} or more, not {wish.pairs}")
    request = make_request(wish, out)
    outcome = campaign.run(request, observer)
    for row in outcome.rows:
        if row["status"] not in ("ok", "unstable"):
            raise CellsFailedError(
                f"no calibration: {row['system']} is {row['status']}: {row['reason']}"
            )
        if row["status"] == "ok" and row["doubtful"]:
            raise CellsFailedError(
                f"no calibration: {row['system']} is doubtful: {row['doubtful']}"
            )
    run = reader.read(outcome.folder)
    base, pair = request.plan.cells[0], request.plan.pairs[0]
    lives, doubted = _lives(outcome.folder)
    if len(doubted) > MOST_DOUBTED * wish.pairs or len(lives) < 2:
        raise CellsFailedError(
            f"no calibration: {len(doubted)} of {wish.pairs} pairs are in doubt: {doubted[0]}"
        )
    samples = [s for s in run.samples if counts(s) and s["life"] in lives]
    keys = ["wall_s", *(f"{phase}_time_s" for phase in phases(base.until))]
    series = {key: _round_logs(samples, pair, key) for key in keys}
    found = Calibration(
        machine_id=run.record["machine_id"],
        device=base.device,
        threads=outcome.rows[0]["threads"],
        system=base.system,
        dataset=base.dataset,
        until=base.until,
        version=__version__,
        lives=2 * len(lives),
        rounds=wish.rounds,
        start_s=statistics.median(e["start_s"] for e in lives.values()),
        epoch_s=statistics.median(s["wall_s"] for s in samples),
        at=utc_stamp(),
        spreads={key: noise.spread(found) for key, found in series.items()},
    )
    noise.store(found)
    key = judged.of(base.until).key
    verified = noise.verify(series[key], rule, wish.verify) if wish.verify else None
    return Found(found, verified, outcome.folder)


def _lives(folder: Path) -> tuple[dict[int, dict[str, Any]], list[str]]:
    """Pairs that count, by number, and the doubts of those that count and should not."""
    events = [e for e in read_journal(folder / "events.jsonl") if e["event"] == "life"]
    counted = [e for e in events if not e["void"]]
    doubted = [e["doubt"] for e in counted if e["doubt"]]
    return {e["life"]: e for e in counted if not e["doubt"]}, doubted


def _round_logs(samples: list[dict[str, Any]], pair: Pair, key: str) -> list[list[float]]:
    """Log ratios of a pair's lives, round by round."""
    assert pair.reference is not None
    lives: dict[int, dict[int, dict[str, float]]] = {}
    for s in samples:
        lives.setdefault(s["life"], {}).setdefault(s["round"], {})[s["id"]] = s[key]
    sides = pair.reference.id, pair.system.id
    return [[math.log(r[sides[0]] / r[sides[1]]) for r in life.values()] for life in lives.values()]
