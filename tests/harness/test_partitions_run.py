"""Runs of partitioned ranks: rounds, bytes and partition metrics."""

import json

import pytest

import gnnbench
from gnnbench.analysis.metrics import Metrics
from gnnbench.config.overrides import Overrides
from gnnbench.core import counters
from gnnbench.distributed.partition.stored import folder_of
from gnnbench.harness.launch import make_request

GRAPH, BATCHES, HOPS = "products~twin@0.001", 3, 2
DEFINITION = f"""
schema_version = 2
extends = "scalability"
default_profile = ""
[axes]
system = ["baseline", "fastsample"]
dataset = ["{GRAPH}"]
batch_size = [64]
fanouts = [[3, 2]]
hidden = [8]
"fastsample.schedule" = ["data-parallel"]
"fastsample.schedule.partition" = ["vanilla", "hybrid"]
"fastsample.sampler" = ["hop-by-hop"]
[sweeps.ranks]
"fastsample.schedule.ranks" = [1, 2]
[measure]
pairs = [1]
rounds = 2
max_batches = {BATCHES}
unstable_half_width = 0.0
"""


@pytest.mark.timeout(600)
def test_partition_run_reports_rounds_bytes_and_partition_metrics(measured):
    run = measured(DEFINITION)
    assert [r["status"] for r in run.cells] == ["ok"] * 5, [r["reason"] for r in run.cells]
    known, row_bytes = Metrics(run.metrics), 4 * gnnbench.load_dataset(GRAPH).feature_dim
    partitioned = {}
    for row in run.cells:
        schedule = json.loads(row["recipe"])["schedule"]
        if schedule["name"] == "data-parallel":
            assert schedule["method"] == "metis" and row["work_class"] == "identical"
            partitioned[schedule["partition"], schedule["ranks"]] = row
    assert sorted(partitioned) == [("hybrid", 1), ("hybrid", 2), ("vanilla", 1), ("vanilla", 2)]
    for (mode, ranks), row in partitioned.items():

        def value(stage, what, where="", row=row):
            return known.value(row["id"], stage, what, where)

        sampling = value("sampler", counters.ROUNDS)
        assert sampling == (BATCHES * 2 * (HOPS - 1) if mode == "vanilla" else None)
        assert value("features", counters.ROUNDS) == BATCHES * 2
        assert value("schedule", counters.REDUCE_BYTES) > 0
        sent = [value("features", counters.SENT_BYTES, str(rank)) for rank in range(ranks)]
        served = known.by_where(row["id"], "features", counters.FEATURE_BYTES)
        again = value("schedule", counters.AGAIN_NODES)
        rows = row["unique_nodes"] + again  # unique_nodes is rounded
        assert sum(served.values()) == pytest.approx(rows * row_bytes, abs=row_bytes)
        # Each row of another rank costs its bytes and 4 bytes for the requested id.
        assert sum(sent) == served["network"] / row_bytes * (row_bytes + 4)
        assert (sum(sent) > 0) == (ranks == 2)
        assert value("partition", counters.PARTITION_TIME) > 0
        cut = value("partition", counters.CUT_SHARE)
        assert cut == 0 if ranks == 1 else 0 < cut < 0.5
        assert value("partition", counters.PART_IMBALANCE["training"]) < 1.02
    # Partitioned once, for both modes and all trials.
    stored = folder_of(gnnbench.load_dataset(GRAPH), 2, "metis", 0)
    made = json.loads((stored / "partition.json").read_text())["made_s"]
    for mode in ("vanilla", "hybrid"):
        ident = partitioned[mode, 2]["id"]
        assert known.value(ident, "partition", counters.PARTITION_TIME) == pytest.approx(made)


def test_partitions_profile_has_fastsamples_systems_and_their_references(tmp_path):
    plan = make_request("scalability", Overrides(profile="partitions"), tmp_path).plan
    data_parallel = []
    for cell in plan.cells:
        schedule = cell.recipe["schedule"]
        if schedule["name"] == "data-parallel":
            mode = schedule.get("partition", "none")
            data_parallel.append((schedule["ranks"], mode, cell.recipe["sampler"]["name"]))
    assert sorted(data_parallel) == [
        (ranks, *which)
        for ranks in (1, 2, 4)
        for which in (
            ("hybrid", "fastsample"), ("hybrid", "hop-by-hop"), ("none", "fastsample"),
            ("vanilla", "hop-by-hop"),
        )
    ]  # fmt: skip
    assert not {f.reason for f in plan.failures.values() if f.status == "unsupported"}
