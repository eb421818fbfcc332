"""Every sampler draws the reference's work, batch after batch of one object."""

import numpy as np
import pytest
import torch
from sampling_cases import CASES, INFOS, NAMES, build

import gnnbench
from gnnbench.kernels import rng
from gnnbench.kernels.reference import sampler as reference
from gnnbench.validation.same_work import malformed, same_work

FANOUTS = [4, 3, 2]


def right_batch(sampler, seeds, epoch, batch, positions):
    setting = sampler.setting
    return reference.sample(
        setting.indptr,
        setting.indices,
        seeds,
        list(sampler.fanouts),
        pick=setting.pick,
        frontier=sampler.frontier,
        key=rng.key(setting.seed, epoch, "sample"),
        batch=batch,
        with_positions=positions,
    )


@pytest.mark.parametrize(("name", "pick", "frontier"), CASES)
def test_the_references_work(name, pick, frontier, small_graph):
    walks = pick == "random_walk"
    sampler = build(
        name, small_graph, FANOUTS, pick, frontier=frontier, seed=7, with_positions=not walks
    )
    assert (sampler.pick, sampler.frontier, sampler.fanouts) == (pick, frontier, (4, 3, 2))
    for nth, size in enumerate((40, 1, 90, 7)):
        seeds = small_graph.train_idx[nth : nth + size]
        ours = sampler.sample(seeds, epoch=nth // 2, batch=nth)
        right = right_batch(sampler, seeds, nth // 2, nth, not walks)
        assert same_work(right, ours, frontier) is None
        assert torch.equal(ours.seeds, seeds)
        assert (ours.blocks[0].weights is not None) == walks
        assert ours.blocks[0].src_nodes.dtype == torch.int32
        assert torch.equal(ours.input_nodes, ours.blocks[0].src_nodes)
        assert [b.num_dst for b in ours.blocks[:-1]] == [b.num_src for b in ours.blocks[1:]]


@pytest.mark.parametrize("name", NAMES)
def test_ids_of_64_bits_and_a_pair_of_tensors(name, small_graph):
    pair = (small_graph.indptr, small_graph.indices.long())
    one = build(name, small_graph, FANOUTS, with_positions=True)
    other = build(name, pair, FANOUTS, with_positions=True)
    for batch in range(3):
        a, b = (s.sample(small_graph.train_idx[:50], batch=batch) for s in (one, other))
        assert b.blocks[0].src_nodes.dtype == torch.int64
        assert same_work(a, b) is None


@pytest.mark.parametrize("name", NAMES)
def test_seeds_in_every_form(name, small_graph):
    sampler = build(name, small_graph, FANOUTS, with_positions=True)
    right = sampler.sample(torch.tensor([5, 0, 17]))
    forms = (
        [5, 0, 17], (5, 0, 17), np.array([5, 0, 17]), np.array([5, 0, 17], np.uint8),
        torch.tensor([5, 0, 17], dtype=torch.int32), torch.tensor([5, 9, 0, 9, 17])[::2],
        np.array([17, 0, 5])[::-1],
    )  # fmt: skip
    for seeds in forms:
        assert same_work(right, sampler.sample(seeds)) is None


@pytest.mark.parametrize("name", NAMES)
def test_no_seeds_give_empty_blocks(name, small_graph):
    sampler = build(name, small_graph, FANOUTS)
    for seeds in ([], torch.empty(0, dtype=torch.int64), small_graph.train_idx[:5], np.empty(0)):
        batch = sampler.sample(seeds)
        assert malformed(batch) is None
        if not len(seeds):
            assert [(b.num_dst, b.num_src, b.num_edges) for b in batch.blocks] == [(0, 0, 0)] * 3


@pytest.mark.parametrize("name", NAMES)
def test_seed_epoch_and_batch_decide(name, small_graph):
    seeds = small_graph.train_idx[:60]
    sampler = build(name, small_graph, FANOUTS, with_positions=True, seed=1)
    again = build(name, small_graph, FANOUTS, with_positions=True, seed=1)
    other = build(name, small_graph, FANOUTS, with_positions=True, seed=2)
    first = sampler.sample(seeds, epoch=3, batch=4)
    sampler.sample(small_graph.train_idx[60:], epoch=3, batch=5)
    assert same_work(first, sampler.sample(seeds, epoch=3, batch=4)) is None
    assert same_work(first, again.sample(seeds, epoch=3, batch=4)) is None
    for changed in (
        sampler.sample(seeds, epoch=4, batch=4),
        sampler.sample(seeds, epoch=3, batch=5),
        other.sample(seeds, epoch=3, batch=4),
    ):
        assert same_work(first, changed) is not None


@pytest.mark.parametrize("name", NAMES)
def test_positions_are_given_where_asked_for(name, small_graph):
    seeds = small_graph.train_idx[:9]
    bare, full = (build(name, small_graph, FANOUTS, with_positions=w) for w in (False, True))
    assert bare.sample(seeds).blocks[0].positions is None
    positions = full.sample(seeds).blocks[0].positions
    assert positions is not None and positions.dtype == torch.int64
    assert bare.sample(seeds, with_positions=True).blocks[0].positions is not None
    assert full.sample(seeds, with_positions=False).blocks[0].positions is None


@pytest.mark.parametrize("name", NAMES)
def test_weights_of_the_graph_or_of_the_caller(name, small_graph):
    from dataclasses import replace

    from sampling_cases import weights_of

    weights = weights_of(small_graph)
    stored = replace(small_graph, weights=weights)
    seeds = small_graph.train_idx[:80]
    for pick in ("weighted_alias", "weighted_prefix"):
        how = {"pick": pick, "with_positions": True}
        one = gnnbench.build_sampler(name, stored, FANOUTS, weights="graph", **how)
        other = gnnbench.build_sampler(name, small_graph, FANOUTS, weights=weights.numpy(), **how)
        batch = one.sample(seeds)
        assert same_work(batch, other.sample(seeds)) is None
        for block in batch.blocks:
            assert (weights[block.positions] > 0).all()


@pytest.mark.parametrize("name", [n for n in NAMES if n != "pgsampler"])
def test_walks_are_pinsages_unless_told(name, small_graph):
    seeds = small_graph.train_idx[:80]
    default = build(name, small_graph, [5, 5], "random_walk")
    named = build(name, small_graph, [5, 5], "random_walk", walks=4, walk_length=3, restart=0.5)
    longer = build(name, small_graph, [5, 5], "random_walk", walk_length=9, restart=0)
    assert default.setting.pick.walk == (4, 3, 1 << 31)
    batch = default.sample(seeds)
    assert same_work(batch, named.sample(seeds)) is None
    assert same_work(batch, longer.sample(seeds)) is not None
    visits = batch.blocks[-1].weights
    assert visits is not None and visits.min() >= 1 and visits.max() <= 12


def test_pgsampler_loses_nothing_and_the_printed_one_says_what_it_lost(small_graph):
    seeds = small_graph.train_idx
    sound = build("pgsampler", small_graph, FANOUTS, fetch_size=3)
    printed = build("pgsampler-as-printed", small_graph, FANOUTS, unsafe=True)
    for batch in range(20):
        whole, part = (s.sample(seeds, batch=batch) for s in (sound, printed))
        assert sound.tasks.lost == 0
        assert part.sampled_edges <= whole.sampled_edges
        assert malformed(part) is None
        if printed.tasks.lost == 0:
            assert part.sampled_edges == whole.sampled_edges
    assert sound.lost_tasks == 0
    assert printed.lost_tasks >= printed.tasks.lost


def test_gnnlabs_table_starts_anew_when_its_versions_are_used_up(small_graph):
    from gnnbench.kernels.gnnlab import LAST_VERSION

    sampler = build("gnnlab", small_graph, FANOUTS, with_positions=True)
    seeds = small_graph.train_idx[:50]
    sampler.sample(seeds)
    sampler._table.version = LAST_VERSION - 2
    for batch in range(5):
        right = right_batch(sampler, seeds, 0, batch, True)
        assert same_work(right, sampler.sample(seeds, batch=batch)) is None
    assert sampler._table.version == 3


@pytest.mark.real_data
@pytest.mark.parametrize("pick", ["floyd", "with_replacement", "weighted_prefix", "random_walk"])
def test_all_samplers_agree_on_ogbn_arxiv(real_data, monkeypatch, pick):
    monkeypatch.setenv("GNNBENCH_REAL_DATA", str(real_data))
    graph = gnnbench.load_dataset("ogbn_arxiv+sym")
    seeds = graph.train_idx[torch.randperm(90_000, generator=torch.Generator().manual_seed(1))]
    how = {"with_positions": pick != "random_walk"}
    names = [s.name for s in INFOS if pick in s.picks["cpu"]]
    first, *others = (build(name, graph, [15, 10, 5], pick, **how) for name in names)
    assert len(others) >= 3
    for number, part in enumerate(seeds.split(1024)[:2]):
        right = first.sample(part, batch=number)
        assert pick == "random_walk" or right.sampled_edges > 100_000
        for sampler in others:
            assert same_work(right, sampler.sample(part, batch=number)) is None


@pytest.mark.parametrize("name", NAMES)
def test_keeping_one_tensor_of_a_batch_keeps_no_other(name, small_graph):
    batch = build(name, small_graph, FANOUTS, with_positions=True).sample([3, 9, 4])
    for block in batch.blocks:
        for tensor in (block.indptr, block.indices, block.src_nodes, block.positions):
            assert tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
