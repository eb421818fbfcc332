"""The table of throughput by ranks, of rows written out."""

import json

from gnnbench.analysis.scaling_table import scaling_table

ROW = {
    "dataset": "d", "until": "compute", "model": "gcn", "device": "cpu", "system": "fastsample",
    "status": "ok", "verified": True, "hidden": 8, "seeds": 1000,
}  # fmt: skip


def row(ranks, batch, judged_s, **values):
    recipe = {"schedule": {"name": "data-parallel", "ranks": ranks}}
    return {
        **ROW, "id": f"{ranks} of {batch}", "recipe": json.dumps(recipe), "batch_size": batch,
        "judged_s": judged_s, **values,
    }  # fmt: skip


def lines_of(rows):
    return [[line[head] for head in list(line)] for line in scaling_table(rows).lines]


def test_strong_and_weak_scaling_share_the_row_of_one_rank():
    serial = {**ROW, "id": "s", "recipe": "{}", "batch_size": 500, "judged_s": 1.0}
    rows = [serial, row(1, 500, 2.0), row(2, 500, 1.25), row(4, 500, 0.8, doubtful="busy")]
    # Twice the seeds of a batch in the time of an epoch: 4/5 of what two of them would do alone.
    rows += [row(2, 1000, 1.25), row(4, 2000, None), row(8, 100, 1.0)]
    assert lines_of(rows) == [
        ["strong", "fastsample, batch 500", "1", "500", "500", "", "100%"],
        ["strong", "fastsample, batch 500", "2", "500", "800", "1.60x", "80%"],
        ["strong", "fastsample, batch 500", "4 (?)", "500", "1250", "2.50x", "62%"],
        ["weak", "fastsample, batch 500", "1", "500", "500", "", "100%"],
        ["weak", "fastsample, batch 500", "2", "1000", "800", "1.60x", "80%"],
    ]


def test_whole_batches_of_equal_size_scale_weakly():
    def whole(ranks, batch, judged_s):
        recipe = {"schedule": {"name": "data-parallel", "ranks": ranks, "batches": "whole"}}
        return row(ranks, batch, judged_s, recipe=json.dumps(recipe))

    rows = [whole(1, 500, 2.0), whole(2, 500, 1.25), whole(2, 250, 1.6)]
    assert lines_of(rows) == [
        ["strong", "fastsample, batch 500", "1", "500", "500", "", "100%"],
        ["strong", "fastsample, batch 500", "2", "250", "625", "1.25x", "62%"],
        ["weak", "fastsample, batch 500", "1", "500", "500", "", "100%"],
        ["weak", "fastsample, batch 500", "2", "500", "800", "1.60x", "80%"],
    ]


def test_failures_and_single_numbers_of_ranks_have_no_scaling():
    assert lines_of([row(1, 500, 2.0), row(2, 500, 1.0, status="incorrect")]) == []
    assert lines_of([row(2, 500, 2.0)]) == [] == lines_of([])
