"""From a journal to the rows of ``cells.csv``, ``metrics.csv`` and ``samples.csv``."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gnnbench.analysis import metrics as m
from gnnbench.analysis.doubts import NO_VERDICT
from gnnbench.analysis.labels import labels
from gnnbench.core.cell import PHASES, Cell, Until, flat
from gnnbench.core.counters import FEATURE_BYTES, LOCK_TIME
from gnnbench.core.units import plural
from gnnbench.harness.doubt import own_doubts, share
from gnnbench.harness.failures import Failure
from gnnbench.harness.gather_rates import rate_rows, request_rows
from gnnbench.harness.overlap_bounds import bound_rows
from gnnbench.harness.pair_columns import Value, compared, level, number, ratio, unsteady
from gnnbench.measure import machine
from gnnbench.schema import SAMPLES, VERSION
from gnnbench.statistics import primary_metric
from gnnbench.statistics.noise import Calibration
from gnnbench.statistics.work_class import work_class

if TYPE_CHECKING:
    from gnnbench.config.experiment import Measure
    from gnnbench.harness.journal import JournalState, Record
    from gnnbench.harness.plan import Pair, Plan

COUNTED = ("batches", "seeds", "sampled_edges", "unique_nodes")
TIMES = (*(f"{phase}_time_s" for phase in PHASES), "overlap_s", "idle_s")
UNCOMPARED = "no gradient of its weights was compared: it keeps all in a form of its own"
BY_CHANCE = "not deterministic: a training step may have other bits when it is computed again"

Row = dict[str, Any]


def sample_rows(journal: JournalState) -> list[Row]:
    """Raw samples in the order in which they were taken."""
    names = [c.name for c in SAMPLES]
    return [
        {**{name: s.get(name) for name in names}, "void": not journal.counts(s)}
        for s in journal.samples
    ]


def cell_rows(
    plan: Plan,
    journal: JournalState,
    measure: Measure,
    calibrations: Sequence[Calibration] = (),
) -> tuple[list[Row], list[Row]]:
    """Rows of ``cells.csv`` and of ``metrics.csv``.

    A planned cell whose fate is known has its metrics once, and a row for every name under which
    the plan has it.
    """
    pairs = {p.system.id: p for p in plan.pairs if not p.direct}
    rows: list[Row] = []
    metrics: list[Row] = []
    for cell in plan.cells:
        failure = plan.failures.get(cell.id) or journal.failures.get(cell.id)
        if failure is None and not journal.measured(cell):
            continue
        row = _identity(cell, plan, journal)
        metrics += [*_before(cell, journal), *_facts(cell, journal)]
        metrics += request_rows(cell, journal.reports.get(cell.id, {}).get("facts", {}))
        pair = _pair_of(cell, plan, pairs, journal)
        found, more = _measured(cell, journal, pair)
        row |= found
        metrics += more
        if failure is None:
            row["doubtful"] = _doubts(cell, pair, journal, measure)
            found, more = _comparison(cell, pair, journal, measure, calibrations, row["doubtful"])
            row |= found
            metrics += [*more, *_cpu(cell, pair, journal)]
            row["stopped"] = journal.done.get(pair.id if pair else cell.id, {}).get("why", "")
            if cell.id == plan.references[cell.id].id:
                row["verdict"] = "reference"
            failure = _in_doubt(cell, pair, journal, measure) or _unstable(
                cell, pair, journal, measure
            )
            void = journal.void_doubts(pair.id if pair else cell.id)
            if void and not row["doubtful"]:
                _remark(row, f"{plural(len(void), 'pair')} void and measured again: {void[0]}")
            if error := journal.profiles.get(cell.id, {}).get("error"):
                _remark(row, f"its samples could not be looked into: {error}")
        check = journal.reports.get(cell.id, {}).get("check", {})
        if check.get("deterministic") is False:
            _remark(row, BY_CHANCE)
        if check.get("details", {}).get("weight_gradients") == 0:
            _remark(row, UNCOMPARED)
        row["status"] = failure.status if failure else "ok"
        row["reason"] = failure.reason if failure else ""
        rows.append(row)
    return [{**r, "system": name} for r in rows for name in plan.names[r["id"]]], metrics


def _remark(row: Row, text: str) -> None:
    row["remark"] = "; ".join(filter(None, [row.get("remark"), text]))


def _pair_of(cell: Cell, plan: Plan, pairs: Mapping[str, Pair], journal: JournalState) -> Pair | None:
    """The comparison that a row tells of; None of a reference, and of a system that ran alone.

    A reference that failed later leaves what was finished beside it, unless it was incorrect.
    """
    pair = pairs.get(cell.id)
    if pair is None or pair.reference is None:
        return None
    failed = journal.failures.get(plan.references[cell.id].id)
    if failed is not None and (failed.status == "incorrect" or pair.id not in journal.done):
        return None
    return pair if journal.trials(pair) else None


def _identity(cell: Cell, plan: Plan, journal: JournalState) -> Row:
    report = journal.reports.get(cell.id, {})
    check = report.get("check", {})
    facts = report.get("facts") or _facts_of_dataset(cell, plan, journal)
    asked = flat(cell.recipe)
    row: Row = {
        "id": cell.id,
        "experiment": cell.experiment,
        "system": cell.system,
        "env": cell.env,
        "reference": plan.reference_label(cell),
        "reference_id": plan.references[cell.id].id,
        "dataset": cell.dataset,
        "until": cell.until,
        "model": cell.model,
        "device": cell.device,
        "pick": check.get("pick", asked.get("sampler.pick", "")),
        "frontier": check.get("frontier", asked.get("sampler.frontier", "")),
        "law": check.get("law", ""),
        "batch_size": cell.batch_size,
        "fanouts": "/".join(map(str, cell.fanouts)),
        "hidden": cell.hidden if cell.trains else None,
        "learning_rate": cell.learning_rate if cell.trains else None,
        "threads": machine.resolve_threads(cell.threads),
        "seed": cell.seed,
        "max_batches": cell.max_batches,
        "evaluate": cell.evaluate,
        "gpus": cell.gpus if cell.device == "cuda" or cell.gpus > 1 else None,
        "recipe": json.dumps(cell.recipe, sort_keys=True),
        "judged": primary_metric.of(cell.until).name,
        "verified": check.get("verified", None if cell.composed else False),
        "stand_in_for": plan.stand_ins.get(cell.id, ""),
        "schema_version": VERSION,
        **facts,
    }
    if train := facts.get("train_nodes"):
        row["epoch_batches"] = math.ceil(train / cell.batch_size)
    ran = report.get("setup", {}).get("versions", {})
    row["versions"] = ", ".join(f"{name} {version}" for name, version in ran.items())
    if check:
        row["digest"] = check["digest"]
    return row


def _before(cell: Cell, journal: JournalState) -> list[Row]:
    """What came before the first epoch."""
    report = journal.reports.get(cell.id, {})
    found = [
        m.metric(cell.id, stage, what, report[stage]["seconds"])
        for stage, what in (("setup", m.SETUP), ("check", m.CHECK))
        if stage in report
    ]
    if (same := report.get("check", {}).get("deterministic")) is not None:
        found.append(m.metric(cell.id, "check", m.DETERMINISTIC, float(same)))
    for told in (report.get("setup", {}), report.get("check", {})):
        for stage, name, where, value in told.get("counts", ()):
            found.append(m.metric(cell.id, stage, m.meaning(name), value, where=where))
    if "open_s" in report:
        imported = report["import_s"] + report.get("setup", {}).get("import_s", 0.0)
        found.append(m.metric(cell.id, "open", m.OPEN, report["open_s"]))
        found.append(m.metric(cell.id, "open", m.IMPORT, imported))
        if setup := report.get("setup"):
            locked = sum(c[3] for c in setup.get("counts", ()) if c[1] == LOCK_TIME.name)
            started = report["open_s"] + setup["seconds"] - locked
            found.append(m.metric(cell.id, "start", m.START, started))
    return found


def _facts(cell: Cell, journal: JournalState) -> list[Row]:
    """What a look inside has found, apart from any epoch."""
    return [
        m.metric(
            cell.id,
            fact["stage"],
            m.meaning(fact["name"]),
            fact["value"],
            where=fact.get("where", ""),
        )
        for fact in journal.profiles.get(cell.id, {}).get("facts", ())
    ]


def _facts_of_dataset(cell: Cell, plan: Plan, journal: JournalState) -> Row:
    for other in plan.cells:
        facts: Row | None = journal.reports.get(other.id, {}).get("facts")
        if other.dataset == cell.dataset and facts:
            return facts
    return {}


def stage_rows(plan: Plan, journal: JournalState) -> list[Row]:
    """Rows of ``stages.csv``."""
    return _profile_rows(plan, journal, "stages")


def kernel_rows(plan: Plan, journal: JournalState) -> list[Row]:
    """Rows of ``kernels.csv``."""
    return _profile_rows(plan, journal, "kernels")


def curve_rows(plan: Plan, journal: JournalState) -> list[Row]:
    """Rows of ``curves.csv``."""
    return _profile_rows(plan, journal, "curves")


def _profile_rows(plan: Plan, journal: JournalState, kind: str) -> list[Row]:
    named = labels([asdict(c) for c in plan.cells])
    return [
        {"id": cell.id, "cell": named.of(asdict(cell)), **found}
        for cell in plan.cells
        if cell.id not in journal.failures
        for found in journal.profiles.get(cell.id, {}).get(kind, [])
    ]


def _measured(cell: Cell, journal: JournalState, pair: Pair | None) -> tuple[Row, list[Row]]:
    """Times beside a ratio are those of its own rounds."""
    samples, lives = journal.measured(cell, pair), journal.by_trial(cell, pair)
    if not samples:
        return {"n": 0}, []
    found = level(lives, primary_metric.of(cell.until).value)
    wall = level(lives, lambda s: s["wall_s"])
    row: Row = {
        "epoch_wall_s": wall.value,
        "judged_s": found.value,
        "ci_low_s": number(found.low),
        "ci_high_s": number(found.high),
        "n": len(samples),
        "lives": len(lives),
        "loss": samples[-1]["loss"],
    }
    row |= {key: round(statistics.median(s[key] for s in samples)) for key in COUNTED}
    row |= {key: _time(lives, key) for key in TIMES}
    metrics = [m.metric(cell.id, m.EPOCH, m.WALL, wall), *_alone(cell, lives)]
    metrics += _beside(cell, pair, journal, samples)
    metrics += bound_rows(cell, journal, lives)
    if cell.goes_until > Until.SAMPLE:
        metrics += rate_rows(cell, lives)
    return row, metrics


def _alone(cell: Cell, lives: Sequence[Sequence[Record]]) -> list[Row]:
    """The parts of an epoch that are drawn: averages of the same kind as its wall time."""
    times = {phase: _time(lives, f"{phase}_alone_s") for phase in PHASES}
    return [
        m.metric(cell.id, phase, m.ALONE, value, n=len(lives))
        for phase, value in times.items()
        if value is not None
    ]


def _time(lives: Sequence[Sequence[Record]], key: str) -> float | None:
    found = level(lives, lambda s: s.get(key))
    return found.value if found.n else None


def _median(samples: Iterable[Record], key: str) -> float | None:
    known = [s[key] for s in samples if s.get(key) is not None]
    return statistics.median(known) if known else None


def _beside(cell: Cell, pair: Pair | None, journal: JournalState, samples: list[Record]) -> list[Row]:
    """All that was measured of a cell's epochs and is not in its row."""
    n = len(samples)
    warm = [s["wall_s"] for s in journal.warm_ups(cell, pair)]
    peaks = {what: max(s[what.name] for s in samples) for what in (m.PEAK_ALLOC, m.PEAK_RSS)}
    numbers: list[tuple[str, m.Measure, float | None]] = [
        (m.EPOCH, m.OUTER, _median(samples, "outer_s")),
        (m.EPOCH, m.FIRST, max(warm, default=None)),
        (m.EPOCH, m.THROTTLED, sum(bool(s.get("throttle")) for s in samples)),
        *((m.EPOCH, what, peak) for what, peak in peaks.items()),
    ]
    found = [
        m.metric(cell.id, stage, what, value, n=n)
        for stage, what, value in numbers
        if value is not None
    ]
    epochs = [{tuple(c[:3]): c[3] for c in s.get("counts", ())} for s in samples]
    if ratios := [ratio for epoch in epochs if (ratio := _hit_ratio(epoch)) is not None]:
        median = statistics.median(ratios)
        found.append(m.metric(cell.id, "features", m.HIT_RATIO, median, n=len(ratios)))
    for stage, name, where in dict.fromkeys(key for epoch in epochs for key in epoch):
        # What an epoch did not count at all it counted 0 times.
        value = statistics.median(epoch.get((stage, name, where), 0) for epoch in epochs)
        found.append(m.metric(cell.id, stage, m.meaning(name), value, where=where, n=n))
    return found


def _hit_ratio(epoch: Mapping[tuple[str, ...], float]) -> float | None:
    """Rows that an epoch found in a cache, its own or another rank's, over all its rows; None where
    there is no cache."""
    rows = {key[2]: n for key, n in epoch.items() if key[:2] == ("features", FEATURE_BYTES.name)}
    if "cache" not in rows or not any(rows.values()):
        return None
    return (rows["cache"] + rows.get("peer", 0)) / sum(rows.values())


def _comparison(
    cell: Cell,
    pair: Pair | None,
    journal: JournalState,
    measure: Measure,
    calibrations: Sequence[Calibration],
    doubtful: str,
) -> tuple[Row, list[Row]]:
    if pair is None or (reference := pair.reference) is None:
        return {}, []
    work = work_class(*(journal.reports[c.id]["check"] for c in (reference, cell)))
    by = primary_metric.of(cell.until)
    beside = level(journal.by_trial(reference, pair), by.value)
    row: Row = {"work_class": work, "reference_s": number(beside.value)}
    ran = PHASES[1 if cell.gathers else 0 :]  # seeds are not sampled
    times = {m.EPOCH: "wall_s", **{p: f"{p}_time_s" for p in ran}}

    def per(key: str, time: str) -> Value:
        return lambda s: (s[time] or 0.0) / s[key] if s[key] else None

    metrics = [
        m.metric(cell.id, stage, what, ratio(journal, pair, per(key, times[stage])))
        for stage in (() if cell.gathers else (m.EPOCH, PHASES[0]))
        for what, key in ((m.PER_EDGE, "sampled_edges"), (m.PER_BATCH, "batches"))
    ]
    found = compared(journal, pair, measure, calibrations, doubtful=bool(doubtful))
    if work == "different":
        kept = ("pairs", "rounds")
        return row | {key: found[key] for key in kept}, metrics
    for stage, time in times.items() if found["ratio"] is not None else ():
        speedup = ratio(journal, pair, lambda s, key=time: s[key])  # type: ignore[misc]
        if speedup.n:
            metrics.append(m.metric(cell.id, stage, m.SPEEDUP, speedup))
    return row | found, metrics


def _doubts(cell: Cell, pair: Pair | None, journal: JournalState, measure: Measure) -> str:
    """What makes a row doubtful: disturbances from outside, its own worker, and its reference's."""
    found = [*journal.pair_doubts(pair.id if pair else cell.id), *own_doubts(cell, pair, journal)]
    if pair is not None and pair.reference is not None:
        beside = own_doubts(pair.reference, pair, journal)
        found += [f"beside it '{pair.reference.who}': {text}" for text in beside]
        times = level(journal.by_trial(pair.reference, pair), primary_metric.of(cell.until).value)
        if unsteady(times, measure):
            found.append(f"the time of its reference '{pair.reference.who}' is not steady")
    return "; ".join(dict.fromkeys(found))


def _cpu(cell: Cell, pair: Pair | None, journal: JournalState) -> list[Row]:
    own = journal.measured(cell, pair)
    return [
        m.metric(cell.id, m.EPOCH, what, share(own, key), n=len(own))
        for what, key in ((m.FOREIGN_CPU, "foreign_cpu_s"), (m.IDLE_CPU, "idle_cpu_s"))
        if own
    ]


def _in_doubt(cell: Cell, pair: Pair | None, journal: JournalState, measure: Measure) -> Failure | None:
    """Where verdicts are given, a pair in doubt that was repeated leaves none; nor is a time of a
    reference known whose pairs are all in doubt."""
    if not measure.rule.gives_verdicts:
        return None
    if pair is None:
        found = journal.cell_doubts(cell)
        return _no_verdict(found) if found and all(found) else None
    return _no_verdict(journal.pair_doubts(pair.id))


def _no_verdict(doubts: Sequence[str]) -> Failure | None:
    return Failure("unstable", f"{doubts[0]}; {NO_VERDICT}") if doubts else None


def _unstable(cell: Cell, pair: Pair | None, journal: JournalState, measure: Measure) -> Failure | None:
    by, lives = primary_metric.of(cell.until), journal.by_trial(cell, pair)
    found = level(lives, by.value)
    if not unsteady(found, measure):
        return None
    longer = "" if any(journal.cell_doubts(cell)) else ", or raise -o pairs and -o time_budget_s"
    return Failure(
        "unstable",
        f"the interval of its {by.words} is still +-{found.relative_half_width:.0%} after"
        f" {len(lives)} lives; quieten the machine{longer}",
    )
