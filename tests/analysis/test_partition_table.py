"""The table of partitions, of rows written out."""

import json

from gnnbench.analysis import metrics as m
from gnnbench.analysis.metric_tables import PARTITIONS
from gnnbench.core import counters

ROW = {
    "dataset": "d", "until": "compute", "model": "gcn", "device": "cpu", "system": "fastsample",
    "status": "ok", "verified": True, "hidden": 8, "batches": 4,
}  # fmt: skip


def cell(mode):
    recipe = {"schedule": {"name": "data-parallel", "ranks": 2, "partition": mode}}
    return {**ROW, "id": mode, "recipe": json.dumps(recipe)}


def metrics_of(ident, rounds):
    values = [
        ("partition", counters.PARTITION_TIME, 1.5, ""),
        ("partition", counters.EDGES_CUT, 1234.0, ""),
        ("partition", counters.CUT_SHARE, 0.125, ""),
        ("partition", counters.PART_IMBALANCE["nodes"], 1.03, ""),
        ("partition", counters.PART_IMBALANCE["edges"], 1.25, ""),
        ("partition", counters.PART_IMBALANCE["training"], 1.0, ""),
        ("features", counters.ROUNDS, 8.0, ""),
        ("features", counters.SENT_BYTES, 2e6, "0"),
        ("features", counters.SENT_BYTES, 3e6, "1"),
        ("schedule", counters.REDUCE_BYTES, 7e5, ""),
    ]
    if rounds > 8:
        values.append(("sampler", counters.ROUNDS, rounds - 8.0, ""))
        values += [("sampler", counters.SENT_BYTES, 1e5, str(rank)) for rank in (0, 1)]
    return [m.metric(ident, stage, measure, n, where=where) for stage, measure, n, where in values]


def test_a_partition_has_its_quality_rounds_and_bytes():
    rows = [{**ROW, "id": "s", "recipe": "{}"}, cell("vanilla"), cell("hybrid")]
    part = PARTITIONS.table(rows, [*metrics_of("vanilla", 24), *metrics_of("hybrid", 8)])
    common = {
        "partitioning": "1.50 s", "edges cut": "1,234", "of all": "12.5%", "nodes": "1.030",
        "edges": "1.250", "training": "1.000", "features sent": "5", "gradients": "0.7",
    }  # fmt: skip
    assert part.lines == [
        {
            "system": "fastsample schedule.partition=vanilla",
            **common, "rounds": "6.00", "sampling sent": "0.2",
        },
        {
            "system": "fastsample schedule.partition=hybrid",
            **common, "rounds": "2.00", "sampling sent": "",
        },
    ]  # fmt: skip


def test_without_partitions_there_is_no_line():
    assert PARTITIONS.table([{**ROW, "id": "s", "recipe": "{}"}], []).lines == []
