"""Ranks that train together sample and learn as one process; no process remains."""

import os
import signal
import time
from dataclasses import replace

import pytest
import torch
from compose import counted, epoch_timeline, make, run, run_alike
from rank_fixtures import assert_a_killed_rank_ends_the_epoch
from rank_groups import SMALL, trained
from two_processes import alive

from gnnbench.core import process_activity
from gnnbench.core.cell import Until
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.minibatch import MiniBatch
from gnnbench.distributed import rank_monitor
from gnnbench.distributed.merge import BatchShard, RankEpoch, merge_ranks
from gnnbench.distributed.rank_failure import RankDiedError
from gnnbench.distributed.shard_epoch import seed_shard
from gnnbench.systems.runtime.find import find
from gnnbench.systems.runtime.verification import digest_of

pytestmark = pytest.mark.usefixtures("one_thread")


def test_a_batch_is_split_into_contiguous_shards():
    seeds = torch.arange(10, 17)
    cut = [seed_shard(seeds, rank, 3).tolist() for rank in range(3)]
    assert cut == [[10, 11, 12], [13, 14], [15, 16]]
    assert [seed_shard(seeds[:2], rank, 4).tolist() for rank in range(4)] == [[10], [11], [], []]


WAYS = [{"schedule.gradients": way} for way in ("flat", "ddp")]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("changes", [{"batch_size": 2}, {"batch_size": 199}])
def test_fewer_seeds_than_ranks_are_valid(group, small_graph, changes, way):
    plain = make(small_graph, **{**SMALL, **changes, "max_batches": 4})
    system = group(3, way, **changes, max_batches=4)
    ((one, facts, _), *_), ((other, merged_facts, _), *_) = trained(plain, 1), trained(system, 1)
    assert merged_facts == facts
    torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("way", WAYS)
def test_seeds_without_labels_weigh_nothing(group, small_graph, way):
    """The second of four batches has no labels, the first has none in one rank's shard."""
    first, second = make(small_graph, **SMALL).order.batches(0)[:2]
    labels = small_graph.labels.clone()
    labels[second], labels[seed_shard(first, 1, 3)], labels[first[:5]] = -1, -1, -1
    graph = replace(small_graph, labels=labels)
    plain, system = make(graph, **SMALL), group(3, way, of=graph)
    for (one, facts, weights), (other, merged_facts, moved) in zip(
        trained(plain, 2), trained(system, 2), strict=True
    ):
        assert merged_facts == facts
        torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-5, equal_nan=True)
        torch.testing.assert_close(moved, weights, rtol=1e-3, atol=1e-4)
        assert not moved.isnan().any()
    assert run(system, 0).loss == pytest.approx(
        run(plain, 0).loss, rel=1e-4
    )  # of the other three batches


@pytest.mark.parametrize("model", ["gcn", "gin", "gat", "pinsage"])
def test_every_model_works_with_ddp(group, small_graph, model):
    """All parameters take part in each step, also on a rank without seeds (batch 4 has 8)."""
    ours = {"aggregate": "scatter"} if model == "pinsage" else {}
    plain = make(small_graph, settings=ours, model=model, **SMALL)
    system = group(2, {**WAYS[1], **ours}, model=model)
    for (one, _, _), (other, _, _) in zip(trained(plain, 2), trained(system, 2), strict=True):
        torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-5)


def test_bytes_reduced_by_ddp_are_counted(group):
    system = group(2, WAYS[1])
    report = run(system)
    counts = counted(report)
    parameters = sum(p.numel() for p in system.trainer.model.parameters())
    # Gradients of each of four batches, and their losses at the end; of both ranks.
    assert counts["schedule", "reduce_bytes", ""] == 2 * 4 * (4 * parameters + 4)
    assert all(counts["schedule", "reduce_time_s", rank] > 0 for rank in "01")


@pytest.mark.parametrize(
    ("system", "ranks", "way"),
    [("dgl", 2, "ddp"), ("pyg", 2, "flat"), ("pgsampler", 4, "ddp")],
)
def test_foreign_samplers_train_in_ranks_with_their_own_random_numbers(
    group, small_graph, system, ranks, way
):
    """Seeds and the first hop equal those of one process; deeper hops are random."""
    if missing := find("baseline" if system == "pgsampler" else system).missing("cpu"):
        pytest.skip(missing.reason)
    settings = {"sampler": "pgsampler"} if system == "pgsampler" else {}
    system = "baseline" if settings else system
    sizes = {**SMALL, "fanouts": (3, 2)}
    plain = make(small_graph, system, {**settings, "schedule": "serial"}, **sizes)
    ranks = group(ranks, {"schedule.gradients": way, **settings}, system=system, **sizes)
    ours, right = ranks.check(), plain.check()
    assert ours.ok, ours.reason
    # The gate reports the edges of all ranks: with `new`, a node's edges at each hop of a rank.
    more = ours.edges_per_seed / right.edges_per_seed
    assert more > 1.02 if system == "pyg" else more == pytest.approx(1, rel=0.1)
    for (one, (batches, seeds, edges, nodes), _), (other, facts, _) in zip(
        trained(plain, 6), trained(ranks, 6), strict=True
    ):
        assert facts[:2] == (batches, seeds)
        assert facts[2] == pytest.approx(edges, rel=0.2)
        assert facts[3] == pytest.approx(nodes, rel=0.2)
        assert float(other.mean()) == pytest.approx(float(one.mean()), rel=0.2)
    again = counted(run(ranks, 7))
    assert again["schedule", "again_nodes", ""] > 0 < again["schedule", "again_edges", ""]


@pytest.mark.parametrize(
    ("settings", "changes"),
    [
        ({}, {}),
        ({"features": "window", "features.window": 3}, {}),
        ({"order": "as-drawn"}, {}),
        ({}, {"batch_size": 199}),
        ({"features": "window", "features.window": 3}, {"batch_size": 2, "max_batches": 5}),
    ],
)
def test_ranks_reorder_equally_and_reuse_rows(group, small_graph, settings, changes):
    sizes = {**SMALL, "batch_size": 24, **changes}  # nine batches: two windows, the last one short
    plain = make(small_graph, "fastgl", {**settings, "schedule": "serial"}, **sizes)
    ranks = group(3, settings, system="fastgl", **sizes)
    assert ranks.check().ok
    for (_, facts, _), (_, merged_facts, _) in zip(trained(plain), trained(ranks), strict=True):
        assert merged_facts == facts  # weights of all ranks were equal, bit for bit
    report = run(ranks, 5)
    assert report.ok, report.reason
    if not changes:
        counts = counted(report)
        assert counts["features", "feature_bytes", "reused"] > 0
        assert (counts.get(("order", "reordered", ""), 0) > 0) == ("order" not in settings)


def test_reordered_batches_have_equal_losses_for_any_number_of_ranks(group, small_graph):
    """If the first rank's shard is the complete batch, the order is that of one process."""
    sizes = {"batch_size": 1, "fanouts": (3, 2), "max_batches": 12}
    plain = make(small_graph, "fastgl", {"schedule": "serial"}, **sizes)
    for (one, facts, _), (other, merged_facts, _) in zip(
        trained(plain), trained(group(2, system="fastgl", **sizes)), strict=True
    ):
        assert merged_facts == facts
        torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("until", ["sample", "memory_io"])
def test_ranks_without_a_model_sample_and_fetch(group, small_graph, until):
    run_alike(group(2, until=until), make(small_graph, until=until, **SMALL), 0)


def test_phases_bytes_and_imbalance_are_reported_by_rank(group):
    system = group(2)
    timeline = epoch_timeline(system)
    spans = timeline.spans()
    assert {s.lane for s in spans} == {"rank 0", "rank 1"}
    for lane in ("rank 0", "rank 1"):
        computed = [s.batch for s in spans if s.lane == lane and s.phase == "compute"]
        assert computed == [0, 1, 2, 3]
    assert all(timeline.begin <= s.begin <= s.end <= timeline.end for s in spans)
    report = system.audit(0)
    counts = counted(report)
    for phase in ("sample", "memory_io", "compute"):
        for rank in "01":
            assert counts["schedule", f"rank_{phase}_s", rank] > 0
    assert 1 <= counts["schedule", "rank_imbalance", ""] <= 2
    parameters = sum(p.numel() for p in system.trainer.model.parameters())
    assert counts["schedule", "reduce_bytes", ""] == 2 * 4 * 4 * (parameters + 2)
    rows = report.unique_nodes + counts["schedule", "again_nodes", ""]
    assert counts["features", "feature_bytes", "host"] == rows * 24 * 4  # of both ranks


def test_a_killed_rank_ends_the_epoch_and_the_others(own_group):
    system, began = own_group(3), time.monotonic()
    assert_a_killed_rank_ends_the_epoch(system)
    assert time.monotonic() - began < 60
    with pytest.raises(RankDiedError, match="rank 1 died"):
        run(system, 2)


def test_hanging_rank_is_killed_and_reported(own_group, monkeypatch):
    monkeypatch.setattr(process_activity, "SILENCE_S", 1.0)
    monkeypatch.setattr(rank_monitor, "LOOK_S", 0.2)
    system = own_group(2)
    assert run(system).ok
    os.kill(system.schedule.pids[0], signal.SIGSTOP)
    with pytest.raises(RankDiedError, match="hangs"):
        run(system, 1)
    assert not alive(system.schedule.pids[0])


def test_unsupported_recipes_of_ranks_are_refused():
    def refused(system="baseline", until="compute", **settings):
        all_settings = {"schedule": "data-parallel", **settings}
        return find(system).resolved(all_settings, "cpu", Until.of(until)).unsupported

    assert not refused()
    assert "frontier=cumulative" in refused(**{"sampler.frontier": "new"})
    parts = {"schedule.partition": "seeds", "schedule.method": "random"}
    assert "partition=none" in refused("dgl", **parts)
    walks = {"sampler": "pgsampler", "sampler.pick": "random_walk"}
    assert "no inclusion law" in refused(**walks) or "no pick" in refused(**walks)
    assert not refused("fastgl")  # Match and Greedy Reorder
    assert "take order=as-drawn" in refused(order="greedy", **parts)
    assert "features 'wholegraph'" in refused(features="wholegraph")
    assert "step=eager" in refused(**{"schedule.step": "padded"})
    assert not refused("tsota")
    assert "no oracle" in refused("gnnlab", **{"features.policy": "optimal"})
    auto = {"features.ratio": "auto", "features.memory_gib": 1.0}
    assert "does not derive a cache's ratio" in refused("gnnlab", **auto)
    for store in ("match", "window"):
        below = {f"features.table{path[8:]}": value for path, value in auto.items()}
        below |= {"features": store, "features.table": "cache"}
        assert "does not derive a cache's ratio" in refused(**below)
        assert not refused(**below | {"features.table.ratio": 0.5})


def test_two_groups_in_a_process_are_refused(group, small_graph):
    group(2)
    with pytest.raises(UnsupportedError, match="another has a group"):
        make(small_graph, settings={"schedule": "data-parallel"}, **SMALL)


def share(number, dst, offsets, edges):
    hop = (torch.tensor(dst), torch.tensor(offsets, dtype=torch.int32))
    return BatchShard(number, 1, torch.tensor(sorted({*dst, *edges})), [hop], [torch.tensor(edges)])


def test_batches_without_hops_differ_by_their_nodes():
    one = RankEpoch([BatchShard(0, 2, torch.tensor([4, 7]), [], [])], "", "")
    other = RankEpoch([BatchShard(0, 1, torch.tensor([9]), [], [])], "", "")
    merged = merge_ranks([one, other])
    assert (merged.reason, merged.seeds, merged.edges, merged.nodes) == ("", 3, 0, 3)
    ((dst, counts, neighbours),) = merged.drawn[0]
    assert dst.tolist() == neighbours.tolist() == [4, 7, 9] and counts.tolist() == [1, 1, 1]
    alone = merge_ranks([RankEpoch([BatchShard(0, 3, torch.tensor([7, 9, 4]), [], [])], "", "")])
    assert digest_of(merged.drawn.values()) == digest_of(alone.drawn.values())


def test_shards_are_merged_and_compared():
    one = RankEpoch([share(0, [4, 7], [0, 2, 3], [1, 2, 5])], "", "w")
    other = RankEpoch([share(0, [7, 9], [0, 1, 3], [5, 1, 8])], "", "w")
    merged = merge_ranks([one, other])
    assert merged.reason == ""
    assert (merged.batches, merged.seeds, merged.edges, merged.nodes) == (1, 2, 5, 7)
    assert (merged.again_edges, merged.again_nodes) == (1, 3)
    ((dst, counts, neighbours),) = merged.drawn[0]
    assert dst.tolist() == [4, 7, 9] and counts.tolist() == [2, 1, 2]
    assert neighbours.tolist() == [1, 2, 5, 1, 8]
    wrong = RankEpoch([share(0, [7, 9], [0, 1, 3], [6, 1, 8])], "", "w")
    assert "batch 1, hop 1: ranks drew different edges" in merge_ranks([one, wrong]).reason
    fewer = RankEpoch([share(0, [7, 9], [0, 0, 2], [1, 8])], "", "w")
    assert "different numbers of edges" in merge_ranks([one, fewer]).reason
    assert "different weights" in merge_ranks([one, RankEpoch([], "", "v")]).reason
    assert merge_ranks([one, RankEpoch([], "a fault", "w")]).reason == "rank 1: a fault"


def test_shard_refers_to_the_tensors_of_the_batch(small_graph):
    batch = make(small_graph, until="sample", **SMALL).stages.sampler.sample(
        small_graph.train_idx[:5], 0, 0
    )
    assert isinstance(batch, MiniBatch)
    shard = BatchShard.of(batch, record_edges=True, exact=True)
    assert shard.inputs.data_ptr() == batch.input_nodes.data_ptr()
    assert [e.numel() for e in shard.edges] == [b.num_edges for b in reversed(batch.blocks)]
