"""Fused-Map asked ahead: the same edges as at once, whatever is asked in between."""

import pytest
import torch
from compose import make, run
from gpu_graphs import skewed

from gnnbench.check.same import same_work
from gnnbench.errors import DataError, UsageError
from gnnbench.measure.timeline import Timeline
from gnnbench.ops.fused import HighWater, fused_map
from gnnbench.ops.fused_asked import AskedFusedMap
from gnnbench.ops.picks import PickSpec
from gnnbench.ops.sampler import hop_by_hop
from gnnbench.sampling.build import build_sampler

pytestmark = pytest.mark.gpu

FANOUTS = [6, 5, 4]


def expected_of(csc, seeds, batch, pick, frontier):
    how = {"pick": pick, "frontier": frontier, "key": 5, "batch": batch, "with_positions": True}
    return hop_by_hop(csc.indptr, csc.indices, seeds, FANOUTS, **how)


def asked(csc, seeds, batch, capacity, pick="floyd", frontier="cumulative"):
    return AskedFusedMap(
        csc.indptr.cuda(), csc.indices.cuda(), seeds.cuda(), FANOUTS, pick=PickSpec.of(pick),
        frontier=frontier, key=5, batch=batch, with_positions=True, capacity=capacity,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("frontier", ["cumulative", "new"])
@pytest.mark.parametrize("pick", ["floyd", "reservoir", "random_walk"])
def test_several_batches_asked_before_the_first_is_read(dtype, frontier, pick):
    csc = skewed(5000, dtype, seed=1, top=2000)
    spec = PickSpec.random_walk(6, 2, 0.2) if pick == "random_walk" else PickSpec.of(pick)
    order = torch.randperm(5000, generator=torch.Generator().manual_seed(2)).to(dtype)
    parts, mark = order[:1800].split(200), HighWater()
    for batch in range(3):
        _, took = fused_map(
            csc.indptr.cuda(), csc.indices.cuda(), parts[batch].cuda(), FANOUTS, pick=spec,
            frontier=frontier, key=5, batch=batch,
        )  # fmt: skip
        mark.see(took)
    waiting = [asked(csc, seeds, n, mark.capacity, spec, frontier) for n, seeds in enumerate(parts)]
    for batch, (seeds, one) in enumerate(zip(parts, waiting, strict=True)):
        drawn, took = one.read()
        assert same_work(expected_of(csc, seeds, batch, spec, frontier), drawn, frontier) is None
        assert took[-2] == drawn.input_nodes.numel()


def test_one_beyond_the_capacity_is_drawn_again():
    csc = skewed(3000, torch.int32, seed=3, top=500)
    seeds = torch.arange(300, dtype=torch.int32)
    small = asked(csc, seeds, 9, [310, 20, 320, 20, 330, 20])
    other = asked(csc, seeds.flip(0), 10, [310, 20, 320, 20, 330, 20])
    for batch, (own, one) in enumerate(((seeds, small), (seeds.flip(0), other)), 9):
        drawn, took = one.read()
        assert same_work(expected_of(csc, own, batch, "floyd", "cumulative"), drawn) is None
        assert took[1] > 20


def test_what_is_wrong_with_seeds_is_told_when_the_batch_is_read():
    csc = skewed(100, torch.int32, seed=3, top=50)
    room = [200, 1000, 400, 2000, 800, 4000]
    for wrong in ([5, 5], [100], [-1]):
        one = asked(csc, torch.tensor(wrong, dtype=torch.int32), 0, room)
        with pytest.raises((UsageError, DataError)):
            one.read()


def test_the_sampler_asks_once_it_knows_its_sizes():
    csc = skewed(5000, torch.int32, seed=1, top=2000)
    graph = (csc.indptr, csc.indices)
    one, other = (build_sampler("fused-map", graph, FANOUTS, "cuda", seed=4) for _ in range(2))
    assert one.asks
    parts = torch.arange(2000, device="cuda").split(300)
    tickets = [one.begin(seeds, 3, n) for n, seeds in enumerate(parts)]
    batches = [one.end(t) for t in tickets]
    later = [one.end(one.begin(seeds, 4, n)) for n, seeds in enumerate(parts)]
    for epoch, drawn in ((3, batches), (4, later)):
        for number, (seeds, batch) in enumerate(zip(parts, drawn, strict=True)):
            right = other.sample(seeds, epoch, number, with_positions=True)
            bare = other.sample(seeds, epoch, number)
            assert batch.number == number and batch.frontier == right.frontier
            assert batch.sampled_edges == bare.sampled_edges == right.sampled_edges
            nodes = [b.input_nodes.sort().values for b in (batch, bare)]
            assert torch.equal(*nodes)
    assert not build_sampler("fused-map", graph, FANOUTS, "cuda", topology="cpu").asks
    empty = one.end(one.begin(parts[0][:0], 3, 0))
    assert empty.sampled_edges == 0


@pytest.mark.parametrize("depth", [1, 3])
def test_an_epoch_of_tickets_is_serials(depth, small_graph, one_thread):
    sizes = {"batch_size": 20, "fanouts": (3, 2), "device": "cuda"}
    serial, ahead = (
        make(small_graph, settings={"sampler": "fused-map", **settings}, **sizes)
        for settings in ({}, {"schedule": "prefetch", "schedule.depth": depth})
    )
    assert ahead.stages.sampler.asks
    for epoch in range(5):
        right, found = run(serial, epoch), run(ahead, epoch)
        assert found.ok, found.reason
        assert found.sampled_edges == right.sampled_edges
        assert found.loss == pytest.approx(right.loss, rel=1e-4)
    digests = [s.verify(7, Timeline.on("cuda")).digest for s in (serial, ahead)]
    assert digests[0] == digests[1]
