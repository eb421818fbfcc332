"""A run in two precisions: who is compared with whom, and as which work."""

import pytest

from gnnbench.analysis.labels import labels

DEFINITION = """\
schema_version = 2
extends = "breakdown"
default_profile = ""
compare = [["baseline sampler=hop-by-hop precision=float32",
            "baseline sampler=hop-by-hop precision=bfloat16"]]
[axes]
dataset = ["products~twin@0.005"]
system = ["baseline"]
batch_size = [256]
fanouts = [[4, 3]]
hidden = [16]
model = ["graphsage"]
precision = ["float32", "bfloat16"]
"baseline.sampler" = ["hop-by-hop", "fused-map"]
[measure]
pairs = [1]
rounds = 2
max_batches = 4
unstable_half_width = 0.0
"""


@pytest.mark.timeout(300)
def test_systems_of_one_precision_are_compared_and_others_do_different_work(measured):
    run = measured(DEFINITION)
    assert [r["status"] for r in run.cells] == ["ok"] * 4, [r["reason"] for r in run.cells]
    by_id = {r["id"]: r for r in run.cells}
    assert [r["precision"] for r in run.cells] == ["", "", "bfloat16", "bfloat16"]
    for row in run.cells:
        assert by_id[row["reference_id"]]["precision"] == row["precision"]
    assert [r["work_class"] for r in run.cells] == ["", "identical", "", "identical"]
    (ratio,) = run.ratios
    assert (ratio["work_class"], ratio["precision"]) == ("different", "bfloat16")
    named = labels(run.cells)
    assert [named.of(r) for r in run.cells] == [
        "baseline sampler=hop-by-hop, float32", "baseline sampler=fused-map, float32",
        "baseline sampler=hop-by-hop, bfloat16", "baseline sampler=fused-map, bfloat16",
    ]  # fmt: skip
    losses = [r["loss"] for r in run.cells]
    assert losses[0] != losses[2]
    assert losses[0] == pytest.approx(losses[2], rel=0.02)
