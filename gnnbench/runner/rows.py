"""From a ledger to the rows of ``cells.csv`` and ``samples.csv``."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from gnnbench.cell import NO_MODEL, Cell
from gnnbench.experiment import Measure
from gnnbench.measure import machine
from gnnbench.measure.noise import Calibration
from gnnbench.measure.stats import Estimate, median_interval, paired_ratio, verdict
from gnnbench.measure.work import work_class
from gnnbench.results.labels import system_label
from gnnbench.results.schema import FEATURE_PATHS, PHASES, SAMPLES
from gnnbench.runner import audit
from gnnbench.runner.dead import dead_options
from gnnbench.runner.failures import Failure
from gnnbench.runner.ledger import Ledger, Record
from gnnbench.runner.plan import Pair, Plan

IDLE_SHARE = 0.02  # of a core
FOREIGN_SHARE = 0.2  # cores
IDLE_TICKS_S = 0.03  # three clock ticks: less cannot be told from rounding

Row = dict[str, Any]


def sample_rows(ledger: Ledger) -> list[Row]:
    """Raw samples in the order in which they were taken."""
    names = [c.name for c in SAMPLES]
    return [
        {**{name: s.get(name) for name in names}, "void": not ledger.counts(s)}
        for s in ledger.samples
    ]


def cell_rows(
    plan: Plan,
    ledger: Ledger,
    measure: Measure,
    calibrations: Mapping[str, Calibration] | None = None,
) -> list[Row]:
    """One row per planned cell whose fate is known; ``calibrations`` by device."""
    pairs = {p.system.id: p for p in plan.pairs if not p.direct}
    rows = []
    for cell in plan.cells:
        failure = plan.failures.get(cell.id) or ledger.failures.get(cell.id)
        if failure is None and not ledger.measured(cell):
            continue
        row = _identity(cell, plan, ledger)
        row |= _measured(cell, ledger)
        if failure is None:
            reference = plan.references[cell.id]
            pair = pairs.get(cell.id)
            row |= _comparison(cell, reference, pair, ledger, (calibrations or {}).get(cell.device))
            row |= _doubts(cell, ledger)
            failure = _throttled(cell, ledger) or _unstable(row, measure)
        row["status"] = failure.status if failure else "ok"
        row["reason"] = failure.reason if failure else ""
        rows.append(row)
    _withdraw_verdicts(rows, plan)
    for row, remark in dead_options(rows, {c.id: plan.references[c.id].id for c in plan.cells}):
        row["remark"] = remark
    return rows


def _withdraw_verdicts(rows: list[Row], plan: Plan) -> None:
    """A comparison in which either side is unstable gives numbers, but no verdict."""
    unstable = {r["id"] for r in rows if r["status"] == "unstable"}
    for row in rows:
        reference = plan.references[row["id"]].id
        if reference != row["id"] and unstable & {row["id"], reference}:
            row.pop("verdict", None)


def _identity(cell: Cell, plan: Plan, ledger: Ledger) -> Row:
    report = ledger.reports.get(cell.id, {})
    check = report.get("check", {})
    facts = report.get("facts") or _facts_of_dataset(cell, plan, ledger)
    trains = cell.model != NO_MODEL
    row: Row = {
        "id": cell.id,
        "experiment": cell.experiment,
        "system": cell.system,
        "reference": plan.references[cell.id].system,
        "dataset": cell.dataset,
        "model": cell.model,
        "device": cell.device,
        "pick": check.get("pick", cell.pick),
        "frontier": check.get("frontier", cell.frontier),
        "law": check.get("law", ""),
        "batch_size": cell.batch_size,
        "fanouts": "/".join(map(str, cell.fanouts)),
        "hidden": cell.hidden if trains else None,
        "learning_rate": cell.learning_rate if trains else None,
        "threads": machine.resolve_threads(cell.threads),
        "seed": cell.seed,
        "options": json.dumps(cell.options, sort_keys=True),
        "stand_in_for": plan.stand_ins.get(cell.id, ""),
        **facts,
    }
    if train := facts.get("train_nodes"):
        row["epoch_batches"] = math.ceil(train / cell.batch_size)
    if "setup" in report:
        row["setup_time_s"] = report["setup"]["seconds"]
    if check:
        row |= {"check_time_s": check["seconds"], "digest": check["digest"]}
    return row


def _facts_of_dataset(cell: Cell, plan: Plan, ledger: Ledger) -> Row:
    for other in plan.cells:
        facts: Row | None = ledger.reports.get(other.id, {}).get("facts")
        if other.dataset == cell.dataset and facts:
            return facts
    return {}


def stage_rows(plan: Plan, ledger: Ledger) -> list[Row]:
    """Rows of ``stages.csv``."""
    return _profile_rows(plan, ledger, "stages")


def kernel_rows(plan: Plan, ledger: Ledger) -> list[Row]:
    """Rows of ``kernels.csv``."""
    return _profile_rows(plan, ledger, "kernels")


def _profile_rows(plan: Plan, ledger: Ledger, kind: str) -> list[Row]:
    return [
        {"id": cell.id, "cell": system_label(asdict(cell)), **found}
        for cell in plan.cells
        if cell.id not in ledger.failures
        for found in ledger.profiles.get(cell.id, {}).get(kind, [])
    ]


def _measured(cell: Cell, ledger: Ledger) -> Row:
    samples = ledger.measured(cell)
    if not samples:
        return {"n": 0}
    wall = median_interval([s["wall_s"] for s in samples], cell.seed)
    row: Row = {
        "epoch_wall_s": wall.median,
        "ci_low_s": wall.low,
        "ci_high_s": wall.high,
        "n": wall.n,
        "throttled": sum(bool(s.get("throttle")) for s in samples),
        "first_epoch_s": max((s["wall_s"] for s in ledger.warm_ups(cell)), default=None),
        "loss": samples[-1]["loss"],
        "residual_s": statistics.median(s["wall_s"] - _phase_sum(s) for s in samples),
        "peak_alloc_bytes": max(s["peak_alloc_bytes"] for s in samples),
        "peak_rss_bytes": max(s["peak_rss_bytes"] for s in samples),
    }
    if outer := [s["outer_s"] for s in samples if s["outer_s"]]:
        row["outer_s"] = statistics.median(outer)
    counts = ("batches", "seeds", "sampled_edges", "unique_nodes", "h2d_bytes")
    for key in (*counts, *(f"feature_bytes_{p}" for p in FEATURE_PATHS)):
        row[key] = round(statistics.median(s[key] for s in samples))
    for key in (*(f"{phase}_time_s" for phase in PHASES), "device_time_s"):
        times = [s[key] for s in samples if s.get(key) is not None]
        row[key] = statistics.median(times) if times else None
    return row


def _phase_sum(sample: Record) -> float:
    return sum(sample[f"{phase}_time_s"] or 0.0 for phase in PHASES)


def _comparison(
    cell: Cell,
    reference: Cell,
    pair: Pair | None,
    ledger: Ledger,
    calibration: Calibration | None,
) -> Row:
    if pair is None or pair.reference is None or reference.id in ledger.failures:
        row: Row = {"stopped": ledger.done.get(cell.id, {}).get("why", "")}
        if calibration is not None:
            row["noise_floor"] = calibration.floor(len(ledger.measured(cell)))
        if cell.id == reference.id:
            row["verdict"] = "reference"
        return row
    reports = [ledger.reports[c.id]["check"] for c in (reference, cell)]
    work = work_class(*reports)
    rounds = ledger.rounds(pair)

    def ratio(value: Callable[[Record], float]) -> Estimate:
        return paired_ratio([value(a) for a, _ in rounds], [value(b) for _, b in rounds], cell.seed)

    def per(key: str, time: str) -> float:
        return ratio(lambda s: (s[time] or 0.0) / s[key] if s[key] else 0.0).median

    floor = None if calibration is None else calibration.floor(len(rounds))
    row = {
        "noise_floor": floor,
        "work_class": work,
        "rounds": len(rounds),
        "stopped": ledger.done.get(pair.id, {}).get("why", ""),
        "speedup_per_edge": per("sampled_edges", "wall_s"),
        "speedup_per_batch": per("batches", "wall_s"),
        "sample_speedup_per_edge": per("sampled_edges", "sample_time_s"),
        "sample_speedup_per_batch": per("batches", "sample_time_s"),
    }
    if work == "different":
        return row
    judged = "sample_" if cell.model == NO_MODEL else ""
    for name, key in (("", "wall_s"), *((f"{p}_", f"{p}_time_s") for p in PHASES)):
        found = ratio(lambda s, k=key: s[k] or 0.0)  # type: ignore[misc]
        row |= {
            f"{name}speedup": found.median,
            f"{name}speedup_ci_low": found.low,
            f"{name}speedup_ci_high": found.high,
        }
        if name == judged:
            row["verdict"] = verdict(found, floor or 0.0)
    return row


def _doubts(cell: Cell, ledger: Ledger) -> Row:
    """CPU use of this worker, or one beside it, while it should have been idle; moved work."""
    counted = [s for s in ledger.samples if ledger.counts(s)]
    pairs = {s["pair"] for s in counted if s["id"] == cell.id}
    beside = [s for s in counted if s["pair"] in pairs and s["id"] != cell.id]
    doubts = []
    if _spins(beside):
        doubts.append(f"its worker used {idle_share(beside):.0%} of a core while idle")
    for pair in sorted(pairs):
        during = [s for s in counted if s["pair"] == pair and s["id"] == cell.id]
        if _spins(during):
            others = {s["system"] for s in beside if s["pair"] == pair} or {"the other"}
            share = idle_share(during)
            doubts.append(f"the worker of '{min(others)}' used {share:.0%} of a core meanwhile")
    own = ledger.measured(cell)
    foreign = _share(own, "foreign_cpu_s")
    if foreign > FOREIGN_SHARE and sum(s["foreign_cpu_s"] for s in own) > IDLE_TICKS_S:
        doubts.append(f"other programs used {foreign:.1f} cores meanwhile; close them")
    doubts += [
        audit.first_epoch_doubt(ledger.warm_ups(cell), own),
        audit.clock_doubt(own),
        audit.after_doubt(own),
    ]
    if error := ledger.profiles.get(cell.id, {}).get("error"):
        doubts.append(f"its samples could not be looked into: {error}")
    return {
        "idle_cpu_share": idle_share(beside) if beside else None,
        "foreign_cpu_share": foreign,
        "doubtful": "; ".join(d for d in doubts if d),
    }


def idle_share(samples: Iterable[Record]) -> float:
    """CPU time of the idle worker over the length of the blocks."""
    return _share(list(samples), "idle_cpu_s")


def _share(samples: list[Record], key: str) -> float:
    length = sum(s["block_s"] for s in samples)
    return sum(s[key] for s in samples) / length if length else 0.0


def _spins(samples: list[Record]) -> bool:
    spent = sum(s["idle_cpu_s"] for s in samples)
    return spent > IDLE_TICKS_S and idle_share(samples) > IDLE_SHARE


def _throttled(cell: Cell, ledger: Ledger) -> Failure | None:
    samples = ledger.measured(cell)
    slowed = [s["throttle"] for s in samples if s.get("throttle")]
    if not slowed:
        return None
    return Failure(
        "unstable",
        f"the GPU was throttled ({slowed[-1]}) in {len(slowed)} of {len(samples)} epochs, and again"
        " when measured once more; cool it or lock lower clocks",
    )


def _unstable(row: Row, measure: Measure) -> Failure | None:
    limit = measure.unstable_half_width
    if not limit or row["n"] < 2 or math.isnan(row["ci_low_s"]):
        return None
    half_width = (row["ci_high_s"] - row["ci_low_s"]) / 2 / row["epoch_wall_s"]
    if half_width <= limit:
        return None
    return Failure(
        "unstable",
        f"the interval is still +-{half_width:.0%} after {row['n']} epochs; quieten the machine or"
        " raise -o time_budget_s and -o max_rounds",
    )
