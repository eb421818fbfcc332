"""The table of ranks, of rows written out."""

import json

import pytest

from gnnbench.results import metrics as m
from gnnbench.results.forecast_table import forecast_table
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
)

ROW = {
    "dataset": "d", "until": "compute", "model": "gcn", "device": "cpu", "system": "fastsample",
    "status": "ok", "verified": True, "hidden": 8, "batch_size": 40, "threads": 2, "batches": 10,
}  # fmt: skip
SERIAL = {**ROW, "id": "s", "recipe": json.dumps({"schedule": {"name": "serial"}})}


def cell(ranks, epoch_s, **values):
    recipe = {"schedule": {"name": "data-parallel", "ranks": ranks, "partition": "hybrid"}}
    return {
        **ROW, "id": f"of {ranks}", "recipe": json.dumps(recipe), "epoch_wall_s": epoch_s, **values,
    }  # fmt: skip


def counted(ranks, busy, exchange, reduce, sent):
    """Metrics of a cell; times of an epoch by rank."""
    ident, found = f"of {ranks}", []
    for rank in range(ranks):
        for stage, what, value in (
            *(("schedule", RANK_BUSY[phase], busy[phase]) for phase in busy),
            ("schedule", REDUCE_TIME, reduce),
            ("features", EXCHANGE_TIME, exchange),
            ("features", SENT_BYTES, sent),
        ):
            found.append(m.metric(ident, stage, what, value, where=str(rank)))
    for stage, what, value in (
        ("features", ROUNDS, 20), ("features", SIZE_ROUNDS, 10),
        ("schedule", REDUCE_BYTES, 1e6 * ranks),
    ):  # fmt: skip
        found.append(m.metric(ident, stage, what, value))
    return found


def split(ranks, most, share, sent):
    """What is counted at the gate of one rank: edges and rows of the rank with most; of all."""
    return [
        m.metric("of 1", stage, what, value, where=str(ranks))
        for stage, what, value in (
            ("sampler", SPLIT_EDGES, most), ("sampler", SPLIT_ALL_EDGES, share * ranks),
            ("features", SPLIT_ROWS, most), ("features", SPLIT_ALL_ROWS, share * ranks),
            ("features", SPLIT_SENT, sent * ranks),
        )
    ]  # fmt: skip


def ceilings(ident, **values):
    known = {"reduce": REDUCE_LATENCY, "exchange": EXCHANGE_LATENCY, "rate": REDUCE_RATE,
             "sent": EXCHANGE_RATE, **FLOOR}  # fmt: skip
    return [m.metric(ident, "schedule", known[name], value) for name, value in values.items()]


BUSY = {"sample": 1.0, "memory_io": 2.5, "compute": 3.5}
METRICS = [
    *counted(1, {"sample": 2.0, "memory_io": 4.5, "compute": 6.5}, 0.5, 0.5, 0.0),
    *counted(2, BUSY, 0.5, 0.5, 6e6),
    *ceilings("of 1", reduce=0.0, exchange=0.0),
    *ceilings("of 2", reduce=0.0, exchange=0.0, rate=1e7, sent=6e6,
              sample=0.0, memory_io=0.0, compute=0.0),
    *split(1, 100.0, 100.0, 0.0), *split(2, 50.0, 50.0, 6e5), *split(4, 25.0, 25.0, 3.3e5),
    *split(16, 10.0, 8.0, 1e5), *split(32, 6.0, 4.0, 5e4),
]  # fmt: skip
FOUR = counted(4, {p: v / 2 for p, v in BUSY.items()}, 0.25, 0.25, 3e6)


def told(rows, metrics):
    return {line["ranks"]: line for line in forecast_table(rows, metrics).lines}


def test_what_1_and_2_ranks_foretell_is_held_against_4():
    rows = [SERIAL, cell(1, 13.5), cell(2, 7.75), cell(4, 8.0)]
    found = told(rows, [*METRICS, *FOUR])
    assert found["1"] == {
        "system": "fastsample", "ranks": "1", "epoch": "13.5 s", "sent by a rank": "",
        "rows of a rank": "100.0%",
    }  # fmt: skip
    assert found["2"]["sent by a rank"] == "6 MB" and "foretold" not in found["2"]
    # 6 s of own work of two ranks, halved, and doubled on two cores; rounds and sums at their
    # rates: 3.3 MB, 3/2 of 1 MB; and what two ranks took beyond that.
    beyond = 7.75 - (6.0 + 1.0 + 0.1)
    right = 6.0 + 0.55 + 0.15 + beyond
    assert right == pytest.approx(7.35)
    assert found["4"] == {
        "system": "fastsample", "ranks": "4", "epoch": "8 s", "foretold": "7.35 s",
        "off by": "-8%", "rows of a rank": "25.0%", "sent by a rank": "3 MB",
        "sent, foretold": "3.3 MB", "sent, off by": "+10%",
    }  # fmt: skip
    part = forecast_table(rows, METRICS)
    assert "strong scaling" in part.title and "forecast" in part.title
    assert "Weak scaling is not foretold" in part.note


def test_beyond_what_was_measured_ranks_have_machines_like_it_and_batches_seeds():
    found = told([cell(1, 13.5), cell(2, 7.75)], METRICS)
    # 10 edges and rows at the rates of one of two ranks: 6 s of 500 of them; 0.1 MB a step.
    right = 6.0 * 10 / 50 + 1 / 6 + 2 * (15 / 16) * 0.1 + 0.65
    assert found["16"]["foretold"] == f"{right:.3g} s"
    assert found["16"]["rows of a rank"] == "10.0%" and "epoch" not in found["16"]
    # Of a batch of 40 seeds 64 ranks have none each.
    assert list(found) == ["1", "2", "16", "32", "64", "128", "256", "512", "1024"]
    assert all(found[n]["foretold"] == "no seeds" for n in ("64", "1024"))


def test_ranks_of_which_nothing_was_counted_are_not_foretold():
    """A partition into so many parts was not made."""
    few = [row for row in METRICS if row["where"] not in ("4", "16", "32")]
    found = told([cell(1, 13.5), cell(2, 7.75), cell(4, 8.0)], [*few, *FOUR])
    assert "foretold" not in found["4"] and found["4"]["epoch"] == "8 s"
    assert "16" not in found and found["64"]["foretold"] == "no seeds"


def test_systems_that_differ_in_more_than_ranks_are_foretold_each():
    def other(row):
        recipe = json.loads(row["recipe"])
        recipe["schedule"]["partition"] = "vanilla"
        return {**row, "id": row["id"] + "v", "recipe": json.dumps(recipe)}

    rows = [cell(1, 13.5), cell(2, 7.75)]
    metrics = [*METRICS, *({**x, "id": x["id"] + "v"} for x in METRICS)]
    part = forecast_table([*rows, *map(other, rows)], metrics)
    assert list(dict.fromkeys(line["system"] for line in part.lines)) == [
        "fastsample schedule.partition=hybrid", "fastsample schedule.partition=vanilla",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [SERIAL],
        [cell(1, 13.5)],
        [cell(1, 13.5), cell(2, None)],
        [cell(1, 13.5), cell(2, 7.75, status="incorrect")],
        [cell(2, 7.75), cell(4, 8.0)],
    ],
)
def test_nothing_is_foretold_without_1_and_2_ranks(rows):
    assert forecast_table(rows, [*METRICS, *FOUR]).lines == []


def test_nothing_is_foretold_without_counts_and_floors():
    rows = [cell(1, 13.5), cell(2, 7.75)]
    for lacks in (SPLIT_EDGES.name, SPLIT_ROWS.name, FLOOR["compute"].name):
        few = [row for row in METRICS if row["name"] != lacks]
        assert forecast_table(rows, few).lines == [], lacks
