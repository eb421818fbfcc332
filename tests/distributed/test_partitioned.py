"""Partitioned graphs: ranks sample and learn as one process; rounds and bytes are exact."""

from dataclasses import replace

import pytest
import torch
from collectives import collectives
from compose import counted, make, run, run_alike
from rank_fixtures import assert_a_killed_rank_ends_the_epoch
from rank_groups import SMALL, trained

from gnnbench.core.cell import Until
from gnnbench.distributed.partition.methods import partition
from gnnbench.measure.timeline import Timeline
from gnnbench.sampling.native import native
from gnnbench.systems.baseline import BASELINE
from gnnbench.systems.runtime.find import find
from gnnbench.systems.runtime.recipe import Recipe

pytestmark = pytest.mark.usefixtures("one_thread")

METHOD = {"schedule.method": "random"}  # METIS cuts few edges of these 400 nodes
MODES = ["seeds", "vanilla", "hybrid"]
BATCHES = 4


def split(group, ranks, mode, until="compute", **changes):
    return group(ranks, {"schedule.partition": mode, **METHOD}, until=until, **changes)


def placed(graph, ranks):
    return partition(graph, ranks, "random", 3)  # 3: the cells' seed


def sent(counts, stage, ranks):
    return [counts[stage, "sent_bytes", str(rank)] for rank in range(ranks)]


@pytest.mark.parametrize("fanouts", [(3,), (3, 2), (3, 2, 2)])
def test_vanilla_has_2_rounds_per_hop_and_hybrid_2(group, fanouts):
    hops = len(fanouts)
    counts = counted(run(split(group, 2, "vanilla", fanouts=fanouts)))
    assert counts.get(("sampler", "exchange_rounds", ""), 0) == BATCHES * 2 * (hops - 1)
    assert counts["features", "exchange_rounds", ""] == BATCHES * 2
    counts = counted(run(split(group, 2, "hybrid", fanouts=fanouts)))
    assert not any(key[:2] == ("sampler", "exchange_rounds") for key in counts)
    assert counts["features", "exchange_rounds", ""] == BATCHES * 2
    counts = counted(run(split(group, 2, "seeds", fanouts=fanouts)))
    assert not any(name in ("exchange_rounds", "sent_bytes") for _, name, _ in counts)


def test_bytes_sent_are_ids_and_rows_of_other_ranks(group, small_graph):
    system, ranks = split(group, 4, "hybrid"), 4
    report = run(system)
    counts = counted(report)
    made = placed(small_graph, ranks)
    wanted = torch.zeros(ranks, ranks, dtype=torch.int64)  # by requesting and owning rank
    sampler = make(small_graph, **SMALL).stages.sampler
    for number, batch in enumerate(system.order.batches(0)):
        for rank in range(ranks):
            seeds = made.own(rank, batch)
            if seeds.numel():
                nodes = sampler.sample(seeds, 0, number).input_nodes
                wanted[rank] += torch.bincount(made.owners[nodes.long()], minlength=ranks)
    row, others = 24 * 4, wanted - wanted.diag().diag()
    ids, rows = others.sum(1) * 4, others.sum(0) * row  # requests; answers
    assert sent(counts, "features", ranks) == (ids + rows).tolist()
    assert counts["features", "feature_bytes", "network"] == int(others.sum()) * row
    assert counts["features", "feature_bytes", "host"] == int(wanted.diag().sum()) * row
    again = counts["schedule", "again_nodes", ""]
    assert int(wanted.sum()) == report.unique_nodes + again
    assert all(counts["features", "exchange_time_s", str(rank)] > 0 for rank in range(ranks))


def test_vanilla_also_sends_ids_counts_and_neighbours(group, small_graph):
    """The second of two hops sends ids to the other rank, which replies with counts and
    neighbours, 4 bytes each."""
    counted_values = counted(run(split(group, 2, "vanilla")))
    made, expected = placed(small_graph, 2), [0, 0]
    system = make(small_graph, **SMALL)
    for number, batch in enumerate(system.order.batches(0)):
        for rank in (0, 1):
            seeds = made.own(rank, batch)
            drawn = system.stages.sampler.sample(seeds, 0, number)
            block = drawn.blocks[0]
            away = made.owners[block.dst_nodes.long()] != rank
            expected[rank] += 4 * int(away.sum())
            edges = int(block.indptr.diff()[away].sum())
            expected[1 - rank] += 4 * (int(away.sum()) + edges)
    assert sent(counted_values, "sampler", 2) == expected
    assert expected[0] > 0 < expected[1]


@pytest.mark.parametrize("mode", ["vanilla", "hybrid"])
def test_epoch_has_only_all_to_alls_and_all_reduces(group, mode):
    """Weights are broadcast if those of rank 0 differ: in the first epoch, and after a check, which
    restores the model."""
    system, swaps = split(group, 2, mode), BATCHES * (4 + 3 if mode == "vanilla" else 2 + 1)
    names = {"all_to_all_single": swaps, "all_reduce": BATCHES}

    def called(epoch):
        with collectives() as calls:
            assert run(system, epoch).ok
        return dict(calls)

    assert called(0) == {**names, "broadcast": 1}
    assert called(1) == called(2) == names
    assert system.verify(3, Timeline.on("cpu")).ok and system.probe([4])[1] == ""
    assert called(5) == {**names, "broadcast": 1}
    assert called(6) == names


def three_nodes(graph):
    """A ring of three nodes: the first of four id ranges is empty."""
    return replace(
        graph,
        indptr=torch.tensor([0, 1, 2, 3]),
        indices=torch.tensor([1, 2, 0], dtype=torch.int32),
        features=graph.features[:3].clone(),
        labels=torch.tensor([0, 1, 0]),
        train_idx=torch.arange(3),
    )


def few_trained(graph):
    """Training nodes with low ids only: the last id range has nodes without training nodes."""
    return replace(graph, train_idx=torch.arange(130))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("made_of", "ranks"), [(three_nodes, 4), (few_trained, 2)])
def test_an_empty_part_and_one_without_training_nodes_are_valid(
    group, small_graph, made_of, ranks, mode
):
    graph = made_of(small_graph)
    parts = {"schedule.partition": mode, "schedule.method": "contiguous"}
    plain, system = make(graph, **SMALL), group(ranks, parts, of=graph)
    for (one, facts, _), (other, merged, _) in zip(
        trained(plain, 2), trained(system, 2), strict=True
    ):
        assert merged == facts
        torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-5)
    assert system.schedule.rank_audit.compare(0, [graph.train_idx]) == ""


@pytest.mark.parametrize("until", ["sample", "memory_io"])
@pytest.mark.parametrize("mode", MODES)
def test_parts_without_a_model_sample_and_fetch(group, small_graph, mode, until):
    run_alike(split(group, 2, mode, until), make(small_graph, until=until, **SMALL), 0)


def test_partition_time_and_quality_are_counted_at_setup(group, small_graph):
    system = split(group, 2, "vanilla")
    counts = {(stage, name, where): n for stage, name, where, n in system.setup_counts}
    owners = placed(small_graph, 2).owners
    dst = torch.repeat_interleave(torch.arange(400), small_graph.indptr.diff())
    cut = int((owners[dst] != owners[small_graph.indices.long()]).sum())
    assert counts["partition", "edges_cut", ""] == cut
    assert counts["partition", "cut_share", ""] == cut / small_graph.num_edges
    assert counts["partition", "part_training_imbalance", ""] == 1.0
    assert counts["partition", "part_nodes_imbalance", ""] == 1.0
    edges = torch.bincount(owners[dst], minlength=2)
    assert counts["partition", "part_edges_imbalance", ""] == int(edges.max()) * 2 / int(
        edges.sum()
    )
    assert [counts["sampler", "part_bytes", r] for r in "01"] == (4 * edges).tolist()
    assert [counts["features", "part_bytes", r] for r in "01"] == [200 * 24 * 4] * 2
    assert counts["partition", "part_time_s", ""] > 0


def test_wrong_part_fails_the_gate(group, small_graph):
    system = split(group, 2, "vanilla")
    system.schedule.own.partition._sampler._seed += 1  # it samples with other random numbers
    report = system.check()
    assert not report.ok and "draws otherwise than the whole graph" in report.reason
    system = split(group, 2, "hybrid")
    system.schedule.own.partition._rows._own += 1
    report = system.check()
    assert not report.ok and "are not the table's" in report.reason


def test_a_killed_rank_ends_the_epoch_of_parts(own_group):
    assert_a_killed_rank_ends_the_epoch(split(own_group, 3, "vanilla"))


def test_unsupported_recipes_of_partitions_are_refused():
    def refused(device="cpu", **settings):
        all_settings = {"schedule": "data-parallel", "schedule.partition": "vanilla", **settings}
        return find("baseline").resolved(all_settings, device, until).unsupported

    until = Until.COMPUTE
    assert not refused()
    assert "take sampler=hop-by-hop" in refused(sampler="fastsample")
    assert not refused(sampler="fastsample", **{"schedule.partition": "hybrid"})
    assert "leave sampler.id_map as it is" in refused(**{"sampler.id_map": "three-pass-probing"})
    assert "random walk" in refused(**{"sampler.pick": "random_walk"})
    assert "splits nothing" in refused(
        **{"schedule.partition": "none", "schedule.method": "random"}
    )
    assert "copy its own rows" in refused("cuda", features="uva")
    assert "sampler.topology=uva" in refused("cuda", **{"sampler.topology": "uva"})


@pytest.mark.parametrize(
    ("mode", "topology", "features"),
    [("none", "gpu", "gpu"), ("seeds", "gpu", "gpu"), ("hybrid", "gpu", "host"),
     ("vanilla", "uva", "host")],
)  # fmt: skip
def test_a_gpu_stores_only_its_part_of_a_split_graph(mode, topology, features):
    """Gate and audit use the complete graph in host memory, in addition to the part."""
    all_settings = {
        "schedule": "data-parallel", "schedule.partition": mode, "features": "gpu",
        "schedule.method": "default" if mode == "none" else "random",
    }  # fmt: skip
    recipe = BASELINE.changed(all_settings).resolved("cuda")
    assert (recipe.sampler.topology, recipe.features.name) == ("gpu", "gpu")
    for rank in (0, 1, 7):
        built = recipe.of_rank(rank)
        assert (built.sampler.topology, built.features.name) == (topology, features)
        assert (built.sampler.name, built.order) == (recipe.sampler.name, recipe.order)
    assert (recipe.shared("cuda") == ("indptr", "indices")) == (mode == "vanilla")


def test_phases_of_leaner_stages_are_not_probed(small_graph, monkeypatch):
    """They may take longer than the stages of an epoch, and would fail the comparison."""
    system = make(small_graph, **SMALL)
    assert set(system.probe([7])[0]) == {"sample", "memory_io", "compute"}
    leaner = replace(system.recipe, sampler=native("fastsample").resolved("cpu"))
    monkeypatch.setattr(Recipe, "of_rank", lambda recipe, rank: leaner)
    assert set(system.probe([7])[0]) == {"memory_io", "compute"}


def test_recipes_without_partitions_are_unchanged():
    plain = find("baseline").resolved({"schedule": "data-parallel"}, "cpu", Until.COMPUTE)
    assert plain.recipe["schedule"] == {"name": "data-parallel", "ranks": 2}
    all_settings = {"schedule": "data-parallel", "schedule.partition": "hybrid"}
    named = find("baseline").resolved(all_settings, "cpu", Until.COMPUTE).recipe["schedule"]
    assert named == {
        "name": "data-parallel", "ranks": 2, "partition": "hybrid", "method": "metis",
    }  # fmt: skip
