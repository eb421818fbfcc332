"""The table of a run whose systems train in 1, 2 and more ranks: measured, and what is foretold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gnnbench.cell import PHASES
from gnnbench.results import rank_series
from gnnbench.results.forecast import AHEAD, FITTED, Ceilings, Measured, Model, Split
from gnnbench.results.metrics import Metrics
from gnnbench.results.part import Part
from gnnbench.results.units import seconds
from gnnbench.stages.counts import (
    EXCHANGE_LATENCY,
    EXCHANGE_RATE,
    EXCHANGE_TIME,
    FLOOR,
    RANK_BUSY,
    REDUCE_BYTES,
    REDUCE_LATENCY,
    REDUCE_RATE,
    REDUCE_TIME,
    ROUNDS,
    SENT_BYTES,
    SIZE_ROUNDS,
    SPLIT_ALL_EDGES,
    SPLIT_ALL_ROWS,
    SPLIT_EDGES,
    SPLIT_ROWS,
    SPLIT_SENT,
    Measure,
)

Row = dict[str, Any]

HEADS = (
    "system", "ranks", "epoch", "foretold", "off by", "rows of a rank", "sent by a rank",
    "sent, foretold", "sent, off by",
)  # fmt: skip
TITLE = (
    "Ranks, strong scaling: by counts, ceilings and epochs of 1 and 2, held against what else was"
    " measured; all beyond is a forecast"
)
NOTE = (
    "rows of a rank: those of the rank with most, over a whole batch's, counted. Assumed: one batch"
    " is shared; a rank works and sends at the rates of one of 2, and no phase of a batch takes"
    " less than that of one seed; on the machine that was measured each doubling slows ranks as the"
    " first did, and by 2 once a CPU has fewer cores than ranks; beyond what was measured two ranks"
    " run on each of as many machines like it, with links between them as good as within it; a"
    " round's latency grows by rank, an all-reduce's by doubling; rows reused keep their share. no"
    " seeds: a batch has fewer of them than ranks. Weak scaling is not foretold"
)
NO_SEEDS = "no seeds"
# What a phase's work is counted by: of the rank with most, and of all.
WORK: dict[str, tuple[str, Measure, Measure]] = {
    "sample": ("sampler", SPLIT_EDGES, SPLIT_ALL_EDGES),
    "memory_io": ("features", SPLIT_ROWS, SPLIT_ALL_ROWS),
    "compute": ("sampler", SPLIT_EDGES, SPLIT_ALL_EDGES),
}
# The stage whose all-to-alls are in a phase.
EXCHANGES = {"sample": "sampler", "memory_io": "features"}


def forecast_table(rows: Sequence[Row], metrics: Sequence[Row]) -> Part:
    """Lines by system and ranks; none of a system that was not measured, and counted, on both 1 and
    2."""
    known, lines = Metrics(metrics), []
    for name, series in rank_series.strong(rows).items():
        points = {n: found for n, row in series.items() if (found := _measured(n, row, known))}
        model = _model(series, points, known)
        if model is None:
            continue
        most = series[1]["batch_size"]
        for ranks in sorted({*points, *AHEAD}):
            if ranks <= most and ranks not in model.splits and ranks not in points:
                continue  # of a graph of which so many parts were not made
            line = _line(ranks, points.get(ranks), model, most)
            lines.append({"system": name, "ranks": str(ranks), **line})
    told = [head for head in HEADS if any(line.get(head) for line in lines)]
    return Part(told, lines, TITLE, NOTE)


def _model(
    series: Mapping[int, Row], points: Mapping[int, Measured], known: Metrics
) -> Model | None:
    if not set(FITTED) <= points.keys():
        return None
    one, two = (series[n]["id"] for n in FITTED)
    counted = known.by_where(one, *WORK["memory_io"][:2])
    splits = {int(n): made for n in counted if (made := _split(one, n, known))}
    floors = {p: known.value(two, "schedule", FLOOR[p]) for p in points[2].own_s}
    if not set(FITTED) <= splits.keys() or None in floors.values():
        return None
    ceilings = Ceilings(
        known.value(two, "schedule", REDUCE_RATE) or 0.0,
        known.value(two, "schedule", EXCHANGE_RATE) or 0.0,
        {phase: value or 0.0 for phase, value in floors.items()},
    )
    cores = float(series[2]["threads"]) if series[2]["device"] == "cpu" else math.inf
    return Model(points[1], points[2], ceilings, splits, cores)


def _split(ident: str, ranks: str, known: Metrics) -> Split | None:
    """What was counted of so many ranks, or None where something was not."""
    most, mean = dict[str, float](), dict[str, float]()
    for phase, (stage, *what) in WORK.items():
        found = [known.value(ident, stage, measure, ranks) for measure in what]
        if None in found:
            return None
        most[phase], whole = (value or 0.0 for value in found)
        mean[phase] = whole / int(ranks)
    sent = sum(known.value(ident, stage, SPLIT_SENT, ranks) or 0.0 for stage in EXCHANGES.values())
    return Split(most, mean, sent / int(ranks))


def _measured(ranks: int, row: Row, known: Metrics) -> Measured | None:
    """What was measured of a cell, or None where something was not."""
    ident, steps = row["id"], row.get("batches")
    busy = {p: known.by_where(ident, "schedule", RANK_BUSY[p]) for p in PHASES}
    if not row.get("epoch_wall_s") or not steps or any(len(b) != ranks for b in busy.values()):
        return None
    waits = {p: known.by_where(ident, stage, EXCHANGE_TIME) for p, stage in EXCHANGES.items()}
    waits["compute"] = known.by_where(ident, "schedule", REDUCE_TIME)

    def mean(by_rank: Mapping[str, float]) -> float:
        return sum(by_rank.values()) / ranks / float(steps)

    def counted(what: Measure) -> float:
        return sum(known.value(ident, stage, what) or 0.0 for stage in EXCHANGES.values()) / steps

    return Measured(
        ranks,
        steps,
        row["epoch_wall_s"] / steps,
        {phase: max(mean(own) - mean(waits[phase]), 0.0) for phase, own in busy.items()},
        counted(ROUNDS) + counted(SIZE_ROUNDS),
        sum(mean(known.by_where(ident, stage, SENT_BYTES)) for stage in EXCHANGES.values()),
        (known.value(ident, "schedule", REDUCE_BYTES) or 0.0) / ranks / steps,
        known.value(ident, "schedule", REDUCE_LATENCY) or 0.0,
        known.value(ident, "schedule", EXCHANGE_LATENCY) or 0.0,
    )


def _line(ranks: int, here: Measured | None, model: Model, most: int) -> Row:
    steps, line = model.two.steps, Row()
    if here is not None:
        line["epoch"] = seconds(here.step_s * steps)
        line["sent by a rank"] = _megabytes(here.sent * steps)
    if ranks > most:
        return {**line, "foretold": NO_SEEDS}
    if ranks not in model.splits:
        return line
    share = model.splits[ranks].most["memory_io"] / model.splits[1].most["memory_io"]
    line["rows of a rank"] = f"{share:.1%}"
    if ranks in FITTED:
        return line
    foretold, sent = model.step_s(ranks, shared=here is not None), model.sent(ranks)
    line["foretold"] = seconds(foretold * steps)
    line["sent, foretold"] = _megabytes(sent * steps)
    if here is not None:
        line["off by"] = _error(foretold, here.step_s)
        line["sent, off by"] = _error(sent, here.sent) if here.sent else ""
    return line


def _megabytes(value: float) -> str:
    return f"{value / 1e6:.3g} MB" if value else ""


def _error(foretold: float, found: float) -> str:
    return f"{foretold / found - 1:+.0%}"
