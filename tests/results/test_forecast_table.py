"""The table of ranks, of rows written out."""

import json

import pytest

from gnnbench.results import metrics as m
from gnnbench.results.forecast_table import forecast_table
from gnnbench.stages.counts import (
    AGAIN_NODES,
    EXCHANGE_TIME,
    FEATURE_BYTES,
    RANK_BUSY,
    REDUCE_TIME,
    SENT_BYTES,
)

ROW = {
    "dataset": "d", "until": "compute", "model": "gcn", "device": "cpu", "system": "fastsample",
    "status": "ok", "verified": True, "hidden": 8, "batch_size": 40, "unique_nodes": 100,
}  # fmt: skip
SERIAL = {**ROW, "id": "s", "recipe": json.dumps({"schedule": {"name": "serial"}})}


def cell(ranks, epoch_s, **values):
    recipe = {"schedule": {"name": "data-parallel", "ranks": ranks, "partition": "hybrid"}}
    return {
        **ROW, "id": f"of {ranks}", "recipe": json.dumps(recipe), "epoch_wall_s": epoch_s, **values,
    }  # fmt: skip


def counted(ranks, busy, exchange, reduce, again, away, sent):
    """Metrics of a cell; times by rank, ``busy`` in sampling alone."""
    ident, found = f"of {ranks}", []
    for rank in range(ranks):
        where = str(rank)
        for stage, what, value in (
            ("schedule", RANK_BUSY["sample"], busy[rank]),
            ("schedule", REDUCE_TIME, reduce[rank]),
            ("features", EXCHANGE_TIME, exchange[rank]),
            ("features", SENT_BYTES, sent[rank]),
        ):
            found.append(m.metric(ident, stage, what, value, where=where))
    found.append(m.metric(ident, "schedule", AGAIN_NODES, again))
    found.append(m.metric(ident, "features", FEATURE_BYTES, 1000 * (1 - away), where="host"))
    found.append(m.metric(ident, "features", FEATURE_BYTES, 1000 * away, where="network"))
    return found


FITTED = [
    *counted(1, [8.5], [0.25], [0.25], 0, 0.0, [0]),
    # Both own 5 s; the one that comes last waits half a second for rows and a quarter to add up.
    *counted(2, [5.75, 6.5], [0.5, 1.0], [0.25, 0.5], 20, 0.5, [5e6, 7e6]),
]
FOUR = counted(4, [4.0] * 4, [0.5] * 4, [0.25] * 4, 44, 0.75, [5.4e6] * 4)


def test_what_1_and_2_ranks_foretell_is_held_against_4():
    rows = [SERIAL, cell(1, 8.6), cell(2, 6.9), cell(4, 5.0)]
    part = forecast_table(rows, [*FITTED, *FOUR])
    one, two, four, *ahead = part.lines
    assert one == {
        "system": "fastsample", "ranks": "1", "epoch": "8.6 s", "sent by a rank": "",
    }  # fmt: skip
    assert two == {
        "system": "fastsample", "ranks": "2", "epoch": "6.9 s", "sent by a rank": "6 MB",
    }  # fmt: skip
    assert four == {
        "system": "fastsample", "ranks": "4", "epoch": "5 s", "sent by a rank": "5.4 MB",
        "foretold": "4.74 s", "off by": "-5%", "sent, foretold": "5.4 MB", "sent, off by": "+0%",
    }  # fmt: skip
    # Of a batch of 40 seeds 64 ranks have none each.
    assert [line["ranks"] for line in ahead] == ["16", "32"]
    assert all(line["epoch"] == "" and line["foretold"] for line in ahead)
    assert "forecast" in part.title and "strong scaling" in part.note


def test_systems_that_differ_in_more_than_ranks_are_foretold_each():
    def other(row):
        recipe = json.loads(row["recipe"])
        recipe["schedule"]["partition"] = "vanilla"
        return {**row, "id": row["id"] + "v", "recipe": json.dumps(recipe)}

    rows = [cell(1, 8.6), cell(2, 6.9)]
    metrics = [*FITTED, *({**x, "id": x["id"] + "v"} for x in FITTED)]
    part = forecast_table([*rows, *map(other, rows)], metrics)
    assert list(dict.fromkeys(line["system"] for line in part.lines)) == [
        "fastsample schedule.partition=hybrid", "fastsample schedule.partition=vanilla",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [SERIAL],
        [cell(1, 8.6)],
        [cell(1, 8.6), cell(2, None)],
        [cell(1, 8.6), cell(2, 6.9, status="incorrect")],
        [cell(2, 6.9), cell(4, 5.0)],
    ],
)
def test_nothing_is_foretold_without_1_and_2_ranks(rows):
    assert forecast_table(rows, [*FITTED, *FOUR]).lines == []
