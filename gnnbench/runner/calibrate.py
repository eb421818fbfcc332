"""A/A pairs: two workers of one system, measured by the code that compares two systems."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

from gnnbench import experiment as definitions
from gnnbench import grid, names, registry
from gnnbench.errors import CellsFailedError
from gnnbench.measure import noise
from gnnbench.measure.noise import Calibration
from gnnbench.overrides import Overrides, as_definition
from gnnbench.results import reader
from gnnbench.results.compare import counts
from gnnbench.runner import campaign, environment
from gnnbench.runner.campaign import Request
from gnnbench.runner.folder import utc_stamp
from gnnbench.runner.pairing import Observer
from gnnbench.runner.plan import Pair, Plan


@dataclass(frozen=True)
class Wish:
    """What to calibrate with; ``dataset`` and ``device`` default to the smoke profile's."""

    system: str = "baseline"
    dataset: str = ""
    device: str = ""
    pairs: int = 8
    rounds: int = 40
    options: tuple[str, ...] = ()


def make_request(wish: Wish, out: Path) -> Request:
    """A run of A/A pairs. Raises ``UsageError``; ``CellsFailedError`` for what cannot run here."""
    names.check("system", wish.system, registry.known(registry.SYSTEM))
    loaded = definitions.load("breakdown")
    over = Overrides(
        systems=(wish.system,),
        datasets=(wish.dataset,) if wish.dataset else (),
        device=wish.device,
        repeats=wish.rounds,
        options=wish.options,
    )
    raw = as_definition(over, loaded, environment.known_paths)
    raw |= {"name": "calibrate", "title": "A/A pairs", "reference": wish.system, "figures": []}
    raw["measure"] = {**raw["measure"], "unstable_half_width": 0.0}
    resolved = definitions.resolve(loaded, "smoke", raw)
    base = grid.expand(resolved, environment.resolve).cells[0]
    failure = environment.state(base).failure or environment.dataset_state(base.dataset)
    if failure is not None:
        raise CellsFailedError(failure.reason)
    plan = Plan([], [])
    for nth in range(wish.pairs):
        # Two lives of one system, new ones for every pair.
        a, b = (replace(base, replica=2 * nth + side) for side in (0, 1))
        plan.cells += [a, b]
        plan.pairs.append(Pair(b, a))
        plan.references |= {a.id: a, b.id: a}
        plan.names |= {a.id: [a.system], b.id: [b.system]}
    return Request(resolved, plan, out, profile="smoke")


def calibrate(wish: Wish, out: Path, observer: Observer) -> tuple[Calibration, Path]:
    """Measure, judge and store; returns the calibration and the folder of its samples.

    Raises ``CellsFailedError`` where a worker failed: nothing is stored then.
    """
    request = make_request(wish, out)
    outcome = campaign.run(request, observer)
    for row in outcome.rows:
        if row["status"] != "ok":
            raise CellsFailedError(
                f"no calibration: {row['system']} is {row['status']}: {row['reason']}"
            )
    run = reader.read(outcome.folder)
    base = request.plan.cells[0]
    walls = [s["wall_s"] for s in run.samples if counts(s)]
    found = Calibration(
        machine_id=run.record["machine_id"],
        device=base.device,
        system=base.system,
        dataset=base.dataset,
        threads=outcome.rows[0]["threads"],
        pairs=len(request.plan.pairs),
        epoch_wall_s=sorted(walls)[len(walls) // 2],
        at=utc_stamp(),
        levels=tuple(noise.assess(_ratios(run, request.plan))),
    )
    noise.store(found)
    return found, outcome.folder


def _ratios(run: reader.Run, plan: Plan) -> list[list[float]]:
    """Per pair the ratios of its rounds, in order."""
    walls: dict[tuple[str, int], dict[str, float]] = defaultdict(dict)
    for s in run.samples:
        if counts(s):
            walls[s["pair"], s["round"]][s["id"]] = s["wall_s"]
    series = []
    for pair in plan.pairs:
        assert pair.reference is not None
        rounds = [walls[key] for key in sorted(k for k in walls if k[0] == pair.id)]
        series.append([r[pair.reference.id] / r[pair.system.id] for r in rounds])
    return series
