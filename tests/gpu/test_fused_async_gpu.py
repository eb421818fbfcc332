"""Fused-Map submitted ahead draws the same edges as a direct call, for any other submissions."""

import pytest
import torch
from compose import make, run
from gpu_graphs import skewed

from gnnbench.core.errors import DataError, UsageError
from gnnbench.kernels.fused import HighWater, fused_map
from gnnbench.kernels.fused_async import LAST_VERSION, SubmissionState, SubmittedFusedMap
from gnnbench.kernels.picks import PickSpec
from gnnbench.kernels.sampler import hop_by_hop
from gnnbench.measure.timeline import Timeline
from gnnbench.sampling.build import build_sampler
from gnnbench.validation.same_work import same_work

pytestmark = pytest.mark.gpu

FANOUTS = [6, 5, 4]


def expected_of(csc, seeds, batch, pick, frontier):
    how = {"pick": pick, "frontier": frontier, "key": 5, "batch": batch, "with_positions": True}
    return hop_by_hop(csc.indptr, csc.indices, seeds, FANOUTS, **how)


def submit(csc, seeds, batch, capacity, pick="floyd", frontier="cumulative", state=None):
    return SubmittedFusedMap(
        csc.indptr.cuda(), csc.indices.cuda(), seeds.cuda(), FANOUTS, pick=PickSpec.of(pick),
        frontier=frontier, key=5, batch=batch, with_positions=True, capacity=capacity,
        state=state or SubmissionState("cuda"),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("frontier", ["cumulative", "new"])
@pytest.mark.parametrize("pick", ["floyd", "reservoir", "random_walk"])
def test_several_batches_submitted_before_the_first_is_read(dtype, frontier, pick):
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
    state = SubmissionState("cuda")
    waiting = [
        submit(csc, seeds, n, mark.capacity, spec, frontier, state) for n, seeds in enumerate(parts)
    ]
    for batch, (seeds, one) in enumerate(zip(parts, waiting, strict=True)):
        drawn, took = one.read()
        assert same_work(expected_of(csc, seeds, batch, spec, frontier), drawn, frontier) is None
        assert took[-2] == drawn.input_nodes.numel()


def test_batch_beyond_the_capacity_is_drawn_again():
    csc = skewed(3000, torch.int32, seed=3, top=500)
    seeds = torch.arange(300, dtype=torch.int32)
    small = submit(csc, seeds, 9, [310, 20, 320, 20, 330, 20])
    other = submit(csc, seeds.flip(0), 10, [310, 20, 320, 20, 330, 20])
    for batch, (own, one) in enumerate(((seeds, small), (seeds.flip(0), other)), 9):
        drawn, took = one.read()
        assert same_work(expected_of(csc, own, batch, "floyd", "cumulative"), drawn) is None
        assert took[1] > 20


ROOM = [200, 1000, 400, 2000, 800, 4000]


def check(csc, seeds, batch, one):
    drawn, _ = one.read()
    expected = expected_of(csc, seeds, batch, "floyd", "cumulative")
    assert same_work(expected, drawn) is None


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_versions_restart(dtype):
    csc = skewed(300, dtype, seed=3, top=50)
    state, order = SubmissionState("cuda"), torch.randperm(300).to(dtype)
    for first in range(0, LAST_VERSION + 60, 10):  # ten at a time, most of the nodes in each
        parts = [order[(first + n) % 290 : (first + n) % 290 + 10] for n in range(10)]
        waiting = [submit(csc, p, first + n, ROOM, state=state) for n, p in enumerate(parts)]
        for n, (seeds, one) in enumerate(zip(parts, waiting, strict=True)):
            check(csc, seeds, first + n, one)
    assert len(state.sizes) == 10  # reused


def test_layouts_change_with_the_number_of_seeds():
    # As at the end of an epoch: the table of one batch then overlaps the counters of another.
    csc = skewed(3000, torch.int32, seed=3, top=500)
    state, room = SubmissionState("cuda"), [3000, 20_000, 3000, 40_000, 3000, 60_000]
    for batch in range(60):
        seeds = torch.arange(batch, 3000, 7 if batch % 5 else 400, dtype=torch.int32)
        check(csc, seeds, batch, submit(csc, seeds, batch, room, state=state))


def test_capacities_and_streams_may_change():
    csc = skewed(3000, torch.int32, seed=3, top=500)
    state, streams = SubmissionState("cuda"), [torch.cuda.Stream() for _ in range(2)]
    rooms = ([310, 900, 2000, 9000, 3000, 20_000], ROOM, [400, 9000, 3000, 20_000, 3000, 40_000])
    waiting = []
    for batch in range(24):
        seeds = torch.arange(batch, 600, 2 + batch % 5, dtype=torch.int32)
        with torch.cuda.stream(streams[batch // 3 % 2]):
            waiting.append(
                (seeds, batch, submit(csc, seeds, batch, rooms[batch // 4 % 3], state=state))
            )
    torch.cuda.synchronize()
    for seeds, batch, one in waiting:
        check(csc, seeds, batch, one)


def test_batch_after_a_failed_or_dropped_batch():
    csc = skewed(300, torch.int32, seed=3, top=50)
    state, seeds = SubmissionState("cuda"), torch.arange(20, dtype=torch.int32)
    for batch in range(12):
        wrong = submit(csc, torch.tensor([5, 5], dtype=torch.int32), 0, ROOM, state=state)
        small = submit(csc, seeds, batch, [20, 3, 25, 4, 30, 5], state=state)
        right = submit(csc, seeds, batch, ROOM, state=state)
        submit(csc, seeds, batch, ROOM, state=state)  # never read
        with pytest.raises(UsageError, match="seeds holds an id twice"):
            wrong.read()
        with pytest.raises(UsageError, match="fanout must be at least 1"):
            SubmittedFusedMap(
                csc.indptr.cuda(), csc.indices.cuda(), seeds.cuda(), [0], pick=PickSpec.of("floyd"),
                frontier="new", key=5, batch=0, with_positions=True, capacity=ROOM[:2], state=state,
            )  # fmt: skip
        check(csc, seeds, batch, submit(csc, seeds, batch, ROOM, state=state))
        check(csc, seeds, batch, small)
        check(csc, seeds, batch, right)


def test_bad_seeds_are_reported_when_the_batch_is_read():
    csc = skewed(100, torch.int32, seed=3, top=50)
    for wrong in ([5, 5], [100], [-1]):
        one = submit(csc, torch.tensor(wrong, dtype=torch.int32), 0, ROOM)
        with pytest.raises((UsageError, DataError)):
            one.read()


def test_sampler_submits_once_capacities_are_known():
    csc = skewed(5000, torch.int32, seed=1, top=2000)
    graph = (csc.indptr, csc.indices)
    one, other = (build_sampler("fused-map", graph, FANOUTS, "cuda", seed=4) for _ in range(2))
    assert one.submits_async
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
    assert not build_sampler("fused-map", graph, FANOUTS, "cuda", topology="cpu").submits_async
    empty = one.end(one.begin(parts[0][:0], 3, 0))
    assert empty.sampled_edges == 0


@pytest.mark.parametrize("depth", [1, 3])
def test_epoch_with_tickets_equals_the_serial_schedule(depth, small_graph, one_thread):
    sizes = {"batch_size": 20, "fanouts": (3, 2), "device": "cuda"}
    serial, ahead = (
        make(small_graph, settings={"sampler": "fused-map", **settings}, **sizes)
        for settings in ({}, {"schedule": "prefetch", "schedule.depth": depth})
    )
    assert ahead.stages.sampler.submits_async
    for epoch in range(5):
        right, actual = run(serial, epoch), run(ahead, epoch)
        assert actual.ok, actual.reason
        assert actual.sampled_edges == right.sampled_edges
        assert actual.loss == pytest.approx(right.loss, rel=1e-4)
    digests = [s.verify(7, Timeline.on("cuda")).digest for s in (serial, ahead)]
    assert digests[0] == digests[1]
