"""fused_map and fastsample on the GPU draw the same samples as the CPU's hop-by-hop sampler."""

import numpy as np
import pytest
import torch
from gpu_graphs import Csc, csc_of, graphs_and_seeds, skewed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gnnbench.core.errors import DataError, UsageError
from gnnbench.kernels.fused import DenseMap, HighWater, fastsample, fused_map
from gnnbench.kernels.picks import PickSpec
from gnnbench.kernels.sampler import hop_by_hop
from gnnbench.validation.same_work import malformed, same_work

pytestmark = pytest.mark.gpu

IDS = [torch.int32, torch.int64]
KEY = 0x0123_4567_89AB_CDEF
UNWEIGHTED = ["reservoir", "reservoir_thinned", "floyd", "fisher_yates", "with_replacement"]
PICKS = [*UNWEIGHTED, "weighted_alias", "weighted_prefix", "random_walk"]
FRONTIERS = ["cumulative", "new"]
SAMPLERS = ["fused-map", "fastsample"]


def pick_of(name: str, csc: Csc) -> PickSpec:
    if name.startswith("weighted"):
        weights = torch.rand(csc.indices.numel(), generator=torch.Generator().manual_seed(3))
        weights[weights < 0.2] = 0
        return PickSpec.weighted(name, csc.indptr, weights)
    if name == "random_walk":
        return PickSpec.random_walk(7, 3, 0.3)
    return PickSpec.of(name)


class OnGpu:
    """One of the two samplers on a graph in GPU or locked host memory."""

    def __init__(self, sampler: str, csc: Csc, put=lambda t: t.cuda()) -> None:
        self.graph = (put(csc.indptr), put(csc.indices))
        self.put = put
        self.dense = DenseMap.of(csc.num_nodes, "cuda")
        self.is_dense = sampler == "fastsample"

    def __call__(self, seeds, fanouts, pick, frontier, capacity=(), batch=3, positions=True):
        spec = PickSpec(pick.name, tuple(self.put(t) for t in pick.tables), pick.walk)
        rest = {"pick": spec, "frontier": frontier, "key": KEY, "batch": batch}
        rest |= {"capacity": capacity, "with_positions": positions}
        if not self.is_dense:
            return fused_map(*self.graph, seeds.cuda(), fanouts, **rest)
        out = fastsample(*self.graph, seeds.cuda(), fanouts, dense_map=self.dense, **rest)
        assert self.is_clean(), "the dense map was not reset"
        return out

    def is_clean(self) -> bool:
        return bool((self.dense.ids == -1).all())


def expected_of(csc: Csc, seeds, fanouts, pick, frontier, batch=3, positions=True):
    rest = {"pick": pick, "frontier": frontier, "key": KEY, "batch": batch}
    return hop_by_hop(csc.indptr, csc.indices, seeds, fanouts, with_positions=positions, **rest)


def check(sampler: str, csc: Csc, seeds, fanouts, pick, frontier, **rest) -> None:
    got, took = OnGpu(sampler, csc)(seeds, fanouts, pick, frontier, **rest)
    expected = expected_of(csc, seeds, fanouts, pick, frontier)
    assert same_work(expected, got, frontier) is None
    blocks = list(reversed(expected.blocks))
    drawn = [b.num_edges for b in blocks]
    if frontier == "new":
        drawn = list(np.diff(drawn, prepend=0))
    assert took == [n for b, e in zip(blocks, drawn, strict=True) for n in (b.num_src, e)]


# Node 0: isolated; 1: a self-loop; 2: parallel edges; 3: as many neighbours as the fanout.
HAND = Csc(
    torch.tensor([0, 0, 1, 4, 6]),
    torch.tensor([1, 3, 3, 3, 0, 1], dtype=torch.int32),
)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("dtype", IDS)
def test_batch_by_hand(sampler, dtype):
    csc = Csc(HAND.indptr, HAND.indices.to(dtype))
    run = OnGpu(sampler, csc)
    seeds = torch.tensor([2, 3, 0], dtype=dtype)
    got, took = run(seeds, [2, 2], PickSpec.of("floyd"), "cumulative")
    inner, outer = got.blocks[1], got.blocks[0]
    assert inner.indptr.tolist() == [0, 2, 4, 4]
    assert inner.indices.tolist() == [1, 1, 2, 3]
    assert inner.src_nodes.tolist() == [2, 3, 0, 1]
    assert inner.positions.tolist()[2:] == [4, 5]
    assert outer.indptr.tolist() == [0, 2, 4, 4, 5]
    assert outer.indices.tolist() == [1, 1, 2, 3, 3]
    assert outer.src_nodes.dtype == dtype
    assert outer.indices.dtype == outer.indptr.dtype == torch.int32
    assert took == [4, 4, 4, 5]
    got, took = run(seeds, [2, 2], PickSpec.of("floyd"), "new")
    assert got.blocks[0].indptr.tolist() == [0, 2, 4, 4, 5]
    assert got.blocks[1].indptr.tolist() == [0, 2, 4, 4]
    assert got.blocks[0].indices.tolist() == [1, 1, 2, 3, 3]
    assert took == [4, 4, 4, 1]
    assert got.sampled_edges == 5


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("pick", PICKS)
@pytest.mark.parametrize("frontier", FRONTIERS)
@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("fanouts", [[15, 10, 5], [3], [20, 2], [70, 2], [2, 300, 2]])
def test_batch_equals_cpu(sampler, pick, frontier, dtype, fanouts):
    csc = skewed(4000, dtype, seed=len(fanouts), top=700)
    seeds = torch.randperm(4000, generator=torch.Generator().manual_seed(9))[:300].to(dtype)
    check(sampler, csc, seeds, fanouts, pick_of(pick, csc), frontier)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("pick", PICKS)
@pytest.mark.parametrize("fanout", [1, 16, 31, 32, 33, 1000])
def test_hubs_and_every_group_shape(sampler, pick, fanout):
    # A row of 1024 draws is handled by a group, one of 1025 by a whole block; tiles end within
    # rows of the next tile.
    hub = 1024 + fanout
    degrees = np.array([100_000, 0, 3, hub, hub + 1, 5000, 1, 31, 2047] + [fanout, 40] * 30)
    csc = csc_of(degrees, torch.int32, seed=5)
    seeds = torch.arange(len(degrees), dtype=torch.int32)
    check(sampler, csc, seeds, [fanout], pick_of(pick, csc), "cumulative")


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("pick", UNWEIGHTED[:4])
def test_all_neighbours(sampler, pick):
    csc = skewed(500, torch.int32, seed=2)
    seeds = torch.arange(0, 500, 3, dtype=torch.int32)
    check(sampler, csc, seeds, [2**31 - 1, 2**31 - 1], pick_of(pick, csc), "cumulative")


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_many_tiles(sampler):
    # 120 000 rows: thousands of blocks in the decoupled look-back scan.
    csc = skewed(120_000, torch.int32, seed=8, top=200)
    seeds = torch.randperm(120_000, generator=torch.Generator().manual_seed(1)).to(torch.int32)
    for frontier in FRONTIERS:
        check(sampler, csc, seeds, [4, 9], PickSpec.of("floyd"), frontier)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("frontier", FRONTIERS)
def test_empty_isolated_and_single_seeds(sampler, frontier):
    for seeds in ([], [0], [3], [0, 1]):
        wanted = torch.tensor(seeds, dtype=torch.int32)
        check(sampler, HAND, wanted, [3, 2], PickSpec.of("reservoir"), frontier)
    nothing = Csc(torch.zeros(6, dtype=torch.int64), torch.empty(0, dtype=torch.int32))
    check(sampler, nothing, torch.arange(5), [3, 2], PickSpec.of("floyd"), frontier)
    no_nodes = Csc(torch.zeros(1, dtype=torch.int64), torch.empty(0, dtype=torch.int32))
    check(sampler, no_nodes, torch.empty(0, dtype=torch.int64), [3], PickSpec.of("floyd"), frontier)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("graph_ids, seed_ids", [(IDS[0], IDS[1]), (IDS[1], IDS[0])])
def test_seeds_of_the_other_dtype(sampler, graph_ids, seed_ids):
    csc = skewed(600, graph_ids, seed=1)
    seeds = torch.arange(50, 90, dtype=seed_ids)
    check(sampler, csc, seeds, [4, 3], PickSpec.of("floyd"), "cumulative")


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("pick", PICKS)
def test_without_positions(sampler, pick):
    csc = skewed(900, torch.int32, seed=1)
    seeds = torch.arange(0, 900, 2, dtype=torch.int32)
    spec = pick_of(pick, csc)
    got, _ = OnGpu(sampler, csc)(seeds, [5, 5], spec, "cumulative", positions=False)
    assert got.blocks[0].positions is None
    expected = expected_of(csc, seeds, [5, 5], spec, "cumulative", positions=False)
    assert same_work(expected, got, "cumulative") is None


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("pick", ["floyd", "weighted_alias", "weighted_prefix", "random_walk"])
def test_topology_in_locked_memory(sampler, pick):
    csc = skewed(3000, torch.int32, seed=6)
    seeds = torch.arange(0, 3000, 5, dtype=torch.int32)
    spec = pick_of(pick, csc)
    got, _ = OnGpu(sampler, csc, lambda t: t.pin_memory())(seeds, [6, 6], spec, "cumulative")
    assert got.blocks[0].indices.is_cuda
    assert same_work(expected_of(csc, seeds, [6, 6], spec, "cumulative"), got) is None
    with pytest.raises(UsageError, match=r"(indptr|weights) must be on the CUDA device"):
        OnGpu(sampler, csc, lambda t: t)(seeds, [6], spec, "cumulative")


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("frontier", FRONTIERS)
@pytest.mark.parametrize("dtype", IDS)
def test_work_does_not_depend_on_the_capacity(sampler, frontier, dtype):
    csc = skewed(4000, dtype, seed=3, top=500)
    seeds = torch.arange(0, 4000, 16, dtype=dtype)
    fanouts = [8, 8, 8]
    spec = PickSpec.of("floyd")
    run = OnGpu(sampler, csc)
    expected = expected_of(csc, seeds, fanouts, spec, frontier)
    first, took = run(seeds, fanouts, spec, frontier)
    assert same_work(expected, first, frontier) is None
    exact = list(took)
    short = [[n - (i == at) for i, n in enumerate(took)] for at in range(len(took))]
    halves = [[n // 2 if i == at else n for i, n in enumerate(took)] for at in range(len(took))]
    for capacity in [exact, *short, *halves, [0] * 6, [1] * 6, [10 * n for n in took]]:
        got, again = run(seeds, fanouts, spec, frontier, capacity)
        assert again == took
        assert same_work(expected, got, frontier) is None


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_high_water_capacity_fits_later_batches(sampler):
    csc = skewed(20_000, torch.int32, seed=2, top=1000)
    run = OnGpu(sampler, csc)
    mark = HighWater()
    order = torch.randperm(20_000, generator=torch.Generator().manual_seed(5)).to(torch.int32)
    for batch in range(12):
        seeds = order[400 * batch : 400 * (batch + 1) - 30 * batch]
        spec = PickSpec.of(UNWEIGHTED[batch % 4])
        frontier = FRONTIERS[batch % 2]
        got, took = run(seeds, [10, 6, 4], spec, frontier, mark.capacity, batch)
        mark.see(took)
        expected = expected_of(csc, seeds, [10, 6, 4], spec, frontier, batch)
        assert same_work(expected, got, frontier) is None
    assert all(c > 1.2 * t for c, t in zip(mark.capacity, took, strict=True))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_repeated_calls_draw_the_same(sampler):
    csc = skewed(50_000, torch.int32, seed=2, top=3000)
    run = OnGpu(sampler, csc)
    seeds = torch.arange(0, 50_000, 10, dtype=torch.int32)
    first, took = run(seeds, [15, 10, 5], PickSpec.of("floyd"), "cumulative")
    for _ in range(20):
        got, again = run(seeds, [15, 10, 5], PickSpec.of("floyd"), "cumulative", took)
        assert again == took
        assert malformed(got) is None
        for a, b in zip(got.blocks, first.blocks, strict=True):
            assert torch.equal(a.indptr[: seeds.numel()], b.indptr[: seeds.numel()])
    assert same_work(first, got) is None


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("dtype", IDS)
def test_errors_are_reported_and_leave_no_state(sampler, dtype):
    csc = skewed(2000, dtype, seed=4)
    run = OnGpu(sampler, csc)
    spec = PickSpec.of("floyd")
    good = torch.arange(100, dtype=dtype)
    for seeds, text in (
        ([5, 2000], "seeds holds an id outside the graph, which has the nodes 0 to 1999"),
        ([-1, 5], "seeds holds an id outside the graph"),
        ([7, 8, 7], "seeds holds an id twice"),
        ([*range(1999), 3], "seeds holds an id twice"),
    ):
        with pytest.raises(UsageError, match=text):
            run(torch.tensor(seeds, dtype=dtype), [4, 4], spec, "cumulative")
        assert run.is_clean()
        got, _ = run(good, [4, 4], spec, "cumulative")
        assert same_work(expected_of(csc, good, [4, 4], spec, "cumulative"), got) is None
    wide = torch.tensor([2**32 + 5])
    with pytest.raises(UsageError, match="seeds holds an id outside"):
        run(wide, [4], spec, "cumulative")


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("pick", PICKS)
@pytest.mark.parametrize("bad", [-1, 600, 2**31 - 1])
def test_invalid_indices(sampler, pick, bad):
    csc = skewed(600, torch.int32, seed=4)
    spec = pick_of(pick, csc)
    csc.indices[::3] = bad
    run = OnGpu(sampler, csc)
    with pytest.raises(DataError, match="indices holds an id that is not a node"):
        run(torch.arange(0, 600, 2), [9, 9], spec, "cumulative")
    assert run.is_clean()


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("broken", [[0, 3, 2, 4], [0, 3, 3, 99], [-5, 3, 3, 4]])
def test_invalid_indptr(sampler, broken):
    csc = Csc(torch.tensor(broken), torch.tensor([1, 2, 0, 1], dtype=torch.int32))
    run = OnGpu(sampler, csc)
    with pytest.raises(DataError, match="indptr is broken"):
        run(torch.tensor([0, 1, 2]), [2, 2], PickSpec.of("floyd"), "cumulative")
    assert run.is_clean()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_overlapping_rows(sampler):
    csc = Csc(torch.tensor([0, 4, 0, 4]), torch.tensor([0, 2, 0, 2], dtype=torch.int32))
    run = OnGpu(sampler, csc)  # the row between them is never read
    with pytest.raises(DataError, match="indptr is broken"):
        run(torch.tensor([0, 2]), [4, 4], PickSpec.of("floyd"), "cumulative")
    assert run.is_clean()


def test_usage_errors():
    csc = skewed(50, torch.int32, seed=0)
    graph = (csc.indptr.cuda(), csc.indices.cuda())
    seeds = torch.arange(5, device="cuda")
    rest = {"pick": "floyd", "frontier": "cumulative", "key": 1, "batch": 0}
    for fanouts, more, text in (
        ([0], {}, "fanout must be at least 1"),
        ([], {}, "fanouts is empty"),
        ([2], {"capacity": [1]}, "capacity must hold two numbers a hop, 2, it holds 1"),
        ([2], {"capacity": [1, -1]}, "capacity must be at least 0, it holds -1"),
        ([2], {"frontier": "old"}, "frontier must be"),
        ([2], {"batch": 2**32}, "batch must be"),
        ([200_000], {"pick": "with_replacement"}, "fanout 200000 is too large"),
    ):
        with pytest.raises(UsageError, match=text):
            fused_map(*graph, seeds, fanouts, **(rest | more))
    for dense, text in (
        (torch.full((49,), -1, dtype=torch.int32, device="cuda"), "one entry per node, 50"),
        (torch.full((50,), -1, device="cuda"), "dense_map must be int32"),
        (torch.full((50,), -1, dtype=torch.int32), "dense_map must be on a CUDA device"),
    ):
        with pytest.raises(UsageError, match=text):
            fastsample(*graph, seeds, [2], dense_map=DenseMap(dense), **rest)


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(
    graphs_and_seeds(),
    st.lists(st.integers(1, 40), min_size=1, max_size=12),
    st.sampled_from(PICKS),
    st.sampled_from(FRONTIERS),
    st.sampled_from(SAMPLERS),
)
def test_any_batch_equals_cpu(drawn, fanouts, pick, frontier, sampler):
    csc, seeds = drawn
    check(sampler, csc, seeds, fanouts, pick_of(pick, csc), frontier)
