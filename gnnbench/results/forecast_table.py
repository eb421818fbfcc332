"""The table of a run whose systems train in 1, 2 and more ranks: measured, and what is foretold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gnnbench.results import rank_series
from gnnbench.results.forecast import AHEAD, FITTED, Measured, Model
from gnnbench.results.metrics import Metrics
from gnnbench.results.part import Part
from gnnbench.results.units import seconds
from gnnbench.stages.counts import (
    AGAIN_NODES,
    EXCHANGE_TIME,
    FEATURE_BYTES,
    RANK_BUSY,
    REDUCE_TIME,
    SENT_BYTES,
)

Row = dict[str, Any]

HEADS = (
    "system", "ranks", "epoch", "foretold", "off by", "sent by a rank", "sent, foretold",
    "sent, off by",
)  # fmt: skip
TITLE = (
    "Ranks, strong scaling: fitted on 1 and 2, held against what else was measured; all beyond is a"
    " forecast"
)
NOTE = (
    "assumed: one batch is shared (strong scaling), every doubling does to a rank's own work, to"
    " rows fetched twice and to the share of rows at home what the first did, links keep the rate"
    " that 2 ranks had, a round has no latency; no rank is foretold that would have no seed of a"
    " batch. Measured on one machine that ranks share, the forecast is of that machine"
)


def forecast_table(rows: Sequence[Row], metrics: Sequence[Row]) -> Part:
    """Lines by system and ranks; none of a system that was not measured on both 1 and 2."""
    known, lines = Metrics(metrics), []
    for name, series in rank_series.strong(rows).items():
        points = {n: found for n, row in series.items() if (found := _measured(n, row, known))}
        if not set(FITTED) <= points.keys():
            continue
        model = Model(*(points[n] for n in FITTED))
        most = series[1]["batch_size"]
        for ranks in sorted({*points, *(n for n in AHEAD if n <= most)}):
            lines.append({"system": name, **_line(ranks, points.get(ranks), model)})
    told = [head for head in HEADS if any(line.get(head) for line in lines)]
    return Part(told, lines, TITLE, NOTE)


def _measured(ranks: int, row: Row, known: Metrics) -> Measured | None:
    """What was measured of a cell, or None where something was not."""
    ident = row["id"]
    busy = [known.by_where(ident, "schedule", what) for what in RANK_BUSY.values()]
    own = _by_rank(busy)
    if not row.get("epoch_wall_s") or not row.get("unique_nodes") or len(own) != ranks:
        return None
    exchanged = _by_rank(
        [known.by_where(ident, stage, EXCHANGE_TIME) for stage in ("sampler", "features")]
    )
    reduced = known.by_where(ident, "schedule", REDUCE_TIME)
    sent = _by_rank([known.by_where(ident, stage, SENT_BYTES) for stage in ("sampler", "features")])
    served = known.by_where(ident, "features", FEATURE_BYTES)
    for rank in own:
        own[rank] -= exchanged.get(rank, 0.0) + reduced.get(rank, 0.0)
    return Measured(
        ranks,
        row["epoch_wall_s"],
        sum(own.values()) / ranks,
        min(exchanged.values(), default=0.0),
        min(reduced.values(), default=0.0),
        row["unique_nodes"] + (known.value(ident, "schedule", AGAIN_NODES) or 0.0),
        served.get("network", 0.0) / (sum(served.values()) or 1.0),
        sum(sent.values()) / ranks,
    )


def _by_rank(tables: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Sums by rank."""
    found: dict[str, float] = {}
    for table in tables:
        for rank, value in table.items():
            found[rank] = found.get(rank, 0.0) + value
    return found


def _line(ranks: int, here: Measured | None, model: Model) -> Row:
    line: Row = {"ranks": str(ranks)}
    line["epoch"] = seconds(here.epoch_s) if here else ""
    line["sent by a rank"] = _megabytes(here.sent) if here else ""
    if ranks in FITTED:
        return line
    line["foretold"] = seconds(model.epoch_s(ranks))
    line["off by"] = _error(model.epoch_s(ranks), here.epoch_s) if here else ""
    line["sent, foretold"] = _megabytes(model.sent(ranks))
    line["sent, off by"] = _error(model.sent(ranks), here.sent) if here and here.sent else ""
    return line


def _megabytes(value: float) -> str:
    return f"{value / 1e6:.3g} MB" if value else ""


def _error(foretold: float, found: float) -> str:
    return f"{foretold / found - 1:+.0%}"
