"""Vanilla, hybrid and unpartitioned draw one batch, in the rounds that the paper counts."""

from dataclasses import replace

import pytest
import torch
from group_of_four import Failed
from partition_graphs import graph_of
from rank_tasks import draw, refused

import gnnbench
from gnnbench.distributed.partition.assignment import Partition
from gnnbench.kernels.picks import PICKS, WEIGHTED

FANOUTS = [4, 3, 2]
ID, ROW = 4, 24 * 4  # bytes of an id and of a feature row of the small graph


def split(graph, parts, seed=0, empty=None):
    """Owners by lot; a part may be left empty."""
    draws = torch.Generator().manual_seed(seed)
    owners = torch.randint(parts, (graph.num_nodes,), generator=draws)
    if empty is not None:
        owners[owners == empty] = (empty + 1) % parts
    return Partition.of_owners(owners, parts)


def whole(graph, seeds, how, fanouts=FANOUTS, epoch=0, batch=0):
    """The batch that one process draws of the whole graph."""
    sampler = gnnbench.build_sampler("hop-by-hop", graph, fanouts, **how)
    return sampler.sample(seeds, epoch=epoch, batch=batch)


def assert_same(ours, theirs):
    assert torch.equal(ours.seeds, theirs.seeds)
    assert ours.sampled_edges == theirs.sampled_edges
    assert (ours.frontier, ours.number) == (theirs.frontier, theirs.number)
    for mine, one in zip(ours.blocks, theirs.blocks, strict=True):
        for array in ("indptr", "indices", "src_nodes", "positions", "weights"):
            left, right = getattr(mine, array), getattr(one, array)
            assert (left is None) == (right is None), array
            assert left is None or (left.dtype == right.dtype and torch.equal(left, right)), array
        assert mine.num_dst == one.num_dst


def how_of(graph, pick, **more):
    if pick in WEIGHTED:
        draws = torch.Generator().manual_seed(5)
        weights = torch.rand(graph.num_edges, generator=draws)
        weights[::3] = 0
        more["weights"] = weights
    return {"pick": pick, "seed": 11, **more}


@pytest.mark.parametrize("pick", [pick for pick in PICKS if pick != "random_walk"])
@pytest.mark.parametrize("frontier", ["cumulative", "new"])
def test_every_mode_draws_the_batch_of_the_whole_graph(four, small_graph, pick, frontier):
    how = how_of(small_graph, pick, frontier=frontier, with_positions=True)
    made, batches = split(small_graph, 4), [(0, 0), (2, 7)]
    for mode in ("vanilla", "hybrid"):
        named = {**how, "sampler": "hop-by-hop"}
        for rank, (drawn, _) in enumerate(
            four.run(draw, 4, small_graph, made, mode, FANOUTS, named, batches)
        ):
            seeds = made.own(rank, small_graph.train_idx)[:40]
            for (batch, rows), (epoch, number) in zip(drawn, batches, strict=True):
                expected = whole(small_graph, seeds, how, epoch=epoch, batch=number)
                assert_same(batch, expected)
                assert torch.equal(rows, small_graph.features[expected.input_nodes.long()])


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("with_positions", [False, True])
def test_any_number_of_ranks(four, small_graph, ranks, with_positions):
    how = how_of(small_graph, "floyd", with_positions=with_positions)
    made = split(small_graph, ranks)
    for rank, (drawn, _) in enumerate(
        four.run(draw, ranks, small_graph, made, "vanilla", FANOUTS, how)
    ):
        seeds = made.own(rank, small_graph.train_idx)[:40]
        assert_same(drawn[0][0], whole(small_graph, seeds, how))


def test_ids_of_64_bits_and_all_neighbours(four, small_graph):
    graph = replace(small_graph, indices=small_graph.indices.long())
    how, made = how_of(graph, "reservoir", with_positions=True), split(graph, 2)
    for rank, (drawn, _) in enumerate(four.run(draw, 2, graph, made, "vanilla", [3, -1], how)):
        seeds = made.own(rank, graph.train_idx)[:40]
        assert_same(drawn[0][0], whole(graph, seeds, how, [3, -1]))


def test_the_fused_sampler_draws_the_same_edges_in_hybrid(four, small_graph):
    how, made = how_of(small_graph, "floyd", with_positions=True), split(small_graph, 2)
    for rank, (drawn, _) in enumerate(four.run(draw, 2, small_graph, made, "hybrid", FANOUTS, how)):
        batch, rows = drawn[0]
        expected = whole(small_graph, made.own(rank, small_graph.train_idx)[:40], how)
        assert torch.equal(rows, small_graph.features[batch.input_nodes.long()])
        for ours, theirs in zip(batch.hops(), expected.hops(), strict=True):
            assert sorted(ours.positions.tolist()) == sorted(theirs.positions.tolist())


def test_random_walks_in_hybrid_alone(four, small_graph):
    how, made = {"pick": "random_walk", "seed": 3, "sampler": "hop-by-hop"}, split(small_graph, 2)
    for rank, (drawn, _) in enumerate(four.run(draw, 2, small_graph, made, "hybrid", FANOUTS, how)):
        seeds = made.own(rank, small_graph.train_idx)[:40]
        assert_same(drawn[0][0], whole(small_graph, seeds, {"pick": "random_walk", "seed": 3}))
    with pytest.raises(Failed, match="cannot run where topology is partitioned"):
        four.run(draw, 2, small_graph, made, "vanilla", FANOUTS, how)


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_rounds_are_2l_in_vanilla_and_2_in_hybrid(four, small_graph, hops, ranks):
    made = split(small_graph, ranks)
    rounds = {"vanilla": 2 * hops, "hybrid": 2, "unpartitioned": 0}
    sizes = {"vanilla": 2 * (hops - 1) + 1, "hybrid": 1, "unpartitioned": 0}
    for mode in rounds:
        for _, traffic in four.run(draw, ranks, small_graph, made, mode, [2] * hops, {}):
            of_sampling = 2 * (hops - 1) if mode == "vanilla" else 0
            assert sum(traffic["rounds"].values()) == rounds[mode]
            assert traffic["rounds"]["sample"] == of_sampling
            assert sum(traffic["sizes"].values()) == sizes[mode]
            assert dict(traffic["reduces"]) == {"setup": 1}


@pytest.mark.parametrize("with_positions", [False, True])
def test_bytes_are_those_of_the_nodes_and_edges_that_others_own(four, small_graph, with_positions):
    how = how_of(small_graph, "floyd", with_positions=with_positions)
    made, ranks = split(small_graph, 4), range(4)
    requested = torch.zeros(4, 4, dtype=torch.int64)  # [from, to]: bytes
    answered, wanted = requested.clone(), requested.clone()
    per_edge = ID + 8 * with_positions
    for rank in ranks:
        seeds = made.own(rank, small_graph.train_idx)[:40]
        batch = whole(small_graph, seeds, {**how, "with_positions": True})
        for hop in batch.hops()[1:]:
            owners = made.owners[torch.from_numpy(hop.dst)]
            of_edges = made.owners[torch.from_numpy(hop.edge_dst)]
            nodes = torch.bincount(owners, minlength=4)
            requested[rank] += ID * nodes
            answered[rank] += ID * nodes + per_edge * torch.bincount(of_edges, minlength=4)
        of_rows = made.owners[batch.input_nodes.long()]
        wanted[rank] = torch.bincount(of_rows, minlength=4)
    for bytes_of in (requested, answered, wanted):
        bytes_of.fill_diagonal_(0)
    answers = four.run(draw, 4, small_graph, made, "vanilla", FANOUTS, how)
    for rank, (_, traffic) in enumerate(answers):
        out, back = requested[rank].sum(), answered[:, rank].sum()
        assert traffic["sent"]["sample"] == int(out + back)
        assert traffic["received"]["sample"] == int(requested[:, rank].sum() + answered[rank].sum())
        ids, rows = wanted[rank].sum() * ID, wanted[:, rank].sum() * ROW
        assert traffic["sent"]["features"] == int(ids + rows)
        assert traffic["received"]["features"] == int(
            wanted[:, rank].sum() * ID + wanted[rank].sum() * ROW
        )
        assert dict(traffic["size_bytes"]) == {"sample": 2 * 2 * 3 * 8, "features": 3 * 8}
    hybrid = four.run(draw, 4, small_graph, made, "hybrid", FANOUTS, how)
    for (_, ours), (_, theirs) in zip(hybrid, answers, strict=True):
        assert ours["sent"] == {"features": theirs["sent"]["features"]}
    alone = four.run(draw, 1, small_graph, split(small_graph, 1), "vanilla", FANOUTS, how)
    assert set(alone[0][1]["sent"].values()) == {0}


@pytest.mark.parametrize("mode", ["vanilla", "hybrid"])
def test_an_empty_part(four, small_graph, mode):
    how, made = how_of(small_graph, "floyd", sampler="hop-by-hop"), split(small_graph, 4, empty=2)
    assert made.nodes_of(2).numel() == 0
    for rank, (drawn, _) in enumerate(four.run(draw, 4, small_graph, made, mode, FANOUTS, how)):
        seeds = made.own(rank, small_graph.train_idx)[:40]
        batch, rows = drawn[0]
        assert_same(batch, whole(small_graph, seeds, {"pick": "floyd", "seed": 11}))
        assert rows.shape == (batch.input_nodes.numel(), 24)


@pytest.mark.parametrize("mode", ["vanilla", "hybrid"])
def test_isolated_nodes(four, mode):
    graph = graph_of([[], [], [0], []], train=[0, 1, 2, 3])
    made = Partition.of_owners(torch.tensor([0, 1, 1, 1]), 2)
    answers = four.run(draw, 2, graph, made, mode, [2, 2], {})
    (alone, rows), (others, more) = (answer[0] for answer, _ in answers)
    assert alone.input_nodes.tolist() == [0] and alone.sampled_edges == 0
    assert rows.tolist() == [[0, 1, 2]]
    assert others.input_nodes.tolist() == [1, 2, 3, 0] and others.sampled_edges == 2
    assert more.tolist() == [[3, 4, 5], [6, 7, 8], [9, 10, 11], [0, 1, 2]]


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"pick": "floyd", "weights": torch.ones(3)}, "weights is given, but pick 'floyd'"),
        ({"pick": "weighted_alias"}, "weights is missing"),
        ({"pick": "weighted_alias", "weights": torch.ones(3)}, "weights has 3 entries"),
        ({"pick": "flyd"}, "did you mean 'floyd'"),
        ({"frontier": "newest"}, "did you mean 'new'"),
    ],
)
def test_what_vanilla_refuses(four, small_graph, how, says):
    (messages,) = four.run(
        refused, 1, small_graph, split(small_graph, 1), [{"mode": "vanilla", **how}]
    )
    assert messages.startswith("UsageError") and says in messages


def test_a_pick_that_repeats_cannot_take_all_neighbours(four, small_graph):
    with pytest.raises(Failed, match="cannot take all neighbours"):
        four.run(
            draw, 1, small_graph, split(small_graph, 1), "vanilla", [-1],
            {"pick": "with_replacement"},
        )  # fmt: skip


def test_seeds_of_another_rank_are_refused(four, small_graph):
    with pytest.raises(Failed, match="seeds must be nodes of part 0, which this rank owns"):
        four.run(foreign_seeds, 1, small_graph, [0, 1], 2)
    with pytest.raises(Failed, match="seeds must be node ids, 0 to 399"):
        four.run(foreign_seeds, 1, small_graph, [400], 1)


def foreign_seeds(group, graph, seeds, parts):
    """Sampling in a group of one, as if it were one of more."""
    from gnnbench.distributed.partition.exchange import Exchange
    from gnnbench.distributed.partition.vanilla import VanillaSampler

    made = Partition.of_owners(torch.arange(graph.num_nodes) % parts, parts)
    sampler = VanillaSampler(graph, made, [2], Exchange(group), torch.device("cpu"))
    sampler.sample(torch.tensor(seeds))


def test_ranks_that_differ_are_refused_on_all(four, small_graph):
    made = split(small_graph, 2)
    same = four.run(refused, 2, small_graph, made, [{"mode": "hybrid"}] * 2)
    assert same == ["", ""]
    longer = replace(small_graph, train_idx=torch.arange(201))
    weights = torch.ones(small_graph.num_edges)
    for what, one, other in [
        ("mode", {"mode": "vanilla"}, {"mode": "hybrid"}),
        ("seed", {"mode": "vanilla"}, {"mode": "vanilla", "seed": 1}),
        ("pick", {"mode": "vanilla"}, {"mode": "vanilla", "pick": "reservoir"}),
        (
            "partition",
            {"mode": "vanilla"},
            {"mode": "vanilla", "partition": split(small_graph, 2, seed=1)},
        ),
        (
            "graph and in frontier",
            {"mode": "vanilla"},
            {"mode": "vanilla", "graph": longer, "frontier": "new"},
        ),
        (
            "weights",
            {"mode": "vanilla", "pick": "weighted_alias", "weights": weights},
            {"mode": "vanilla", "pick": "weighted_alias", "weights": 2 * weights},
        ),
    ]:
        messages = four.run(refused, 2, small_graph, made, [one, other])
        says = f"UsageError: the ranks differ in {what}; start all of them with the same"
        assert messages == [says, says]


def test_another_number_of_parts_is_refused(four, small_graph):
    (messages,) = four.run(refused, 1, small_graph, split(small_graph, 2), [{"mode": "hybrid"}])
    assert "the partition has 2 parts for 1 ranks" in messages
    smaller = Partition.of_owners(torch.zeros(3, dtype=torch.int64), 1)
    (messages,) = four.run(refused, 1, small_graph, smaller, [{"mode": "hybrid"}])
    assert "the partition has 3 nodes and graph 'small' 400" in messages


def test_without_a_process_group():
    from gnnbench.core.errors import UsageError
    from gnnbench.distributed.partition.exchange import Exchange

    with pytest.raises(UsageError, match="there is no process group"):
        Exchange()
    later = Exchange(place=(1, 4))  # what a rank keeps is made before it meets the others
    assert (later.rank, later.ranks) == (1, 4)
