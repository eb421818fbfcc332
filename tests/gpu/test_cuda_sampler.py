"""One hop, the id map and the whole batch on the GPU are identical to the CPU's."""

import numpy as np
import pytest
import torch
from gpu_graphs import Csc, assert_same, csc_of, graphs_and_seeds, skewed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gnnbench.kernels.picks import PICKS, WEIGHTED, WITHOUT_REPLACEMENT, PickSpec

pytestmark = pytest.mark.gpu

IDS = [torch.int32, torch.int64]
KEY = 0x0123_4567_89AB_CDEF


def spec_of(pick: str | PickSpec, csc: Csc) -> PickSpec:
    """The named pick; weighted picks have a fifth of zero weights, walks use PinSAGE's settings."""
    if isinstance(pick, PickSpec):
        return pick
    if pick in WEIGHTED:
        weights = torch.arange(csc.indices.numel(), dtype=torch.float32) * 7 % 5
        return PickSpec.weighted(pick, csc.indptr, weights)
    return PickSpec.random_walk(4, 3, 0.3) if pick == "random_walk" else PickSpec.of(pick)


def arguments(pick, csc: Csc, put):
    name, tables, walk = spec_of(pick, csc).arguments()
    return name, [put(t) for t in tables], walk


def hop(ops, csc: Csc, dst, fanout, pick, put=lambda t: t, *, number=0, batch=0, key=KEY):
    how = arguments(pick, csc, put)
    return ops.sample_hop(
        put(csc.indptr), put(csc.indices), put(dst), fanout, *how, key, number, batch
    )


def batch(ops, csc: Csc, seeds, fanouts, pick, frontier, put=lambda t: t, positions=True):
    how = arguments(pick, csc, put)
    args = (put(csc.indptr), put(csc.indices), put(seeds), fanouts, *how, frontier, KEY, 3)
    return ops.hop_by_hop(*args, positions)


# Node 0: isolated; 1: a self-loop; 2: parallel edges; 3: as many neighbours as the fanout; 4: more.
HAND = Csc(
    torch.tensor([0, 0, 1, 4, 6, 11]),
    torch.tensor([1, 3, 3, 3, 0, 4, 0, 1, 2, 3, 4], dtype=torch.int32),
)


@pytest.mark.parametrize("pick", WITHOUT_REPLACEMENT)
@pytest.mark.parametrize("dtype", IDS)
def test_hop_by_hand(ops, gpu, pick, dtype):
    csc = Csc(HAND.indptr, HAND.indices.to(dtype))
    dst = torch.tensor([3, 0, 1], dtype=dtype)
    indptr, neighbors, positions, _ = hop(ops, csc, dst, 2, pick, gpu.put)
    assert indptr.tolist() == [0, 2, 2, 3]
    assert neighbors.tolist() == [0, 4, 1]
    assert positions.tolist() == [4, 5, 0]
    # Parallel edges are distinct: two of the positions 1, 2, 3, all of node 3.
    _, neighbors, positions, _ = hop(ops, csc, torch.tensor([2], dtype=dtype), 2, pick, gpu.put)
    assert neighbors.tolist() == [3, 3]
    assert len(set(positions.tolist())) == 2
    assert set(positions.tolist()) <= {1, 2, 3}


# The constants of native/tests/test_headers.cpp.
PINNED = [
    ("reservoir", 12, 7, [0, 1, 2, 3, 7]),
    ("reservoir", 20, 7, [0, 1, 2, 3, 4, 19, 11, 14, 10]),
    ("reservoir_thinned", 60, 7, [24, 1, 47, 29, 46]),
    ("reservoir_thinned", 1000, 7, [540, 174, 116]),
    ("floyd", 12, 7, [7, 6, 5, 8, 11]),
    ("floyd", 20, 7, [10, 9, 7, 11, 15, 8, 14, 12, 19]),
    ("fisher_yates", 12, 7, [10, 8, 5, 6, 9]),
    ("fisher_yates", 7, 7, [6, 4, 2, 5, 3, 1]),
    ("with_replacement", 12, 7, [10, 9, 6, 8, 8]),
    ("weighted_alias", 4, 7, [3, 3, 3, 3, 3, 2, 0, 3]),
    ("weighted_prefix", 4, 7, [3, 3, 3, 3, 3, 2, 2, 3]),
]


@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("pick, degree, vertex, expected", PINNED)
def test_picks_are_pinned(ops, gpu, pick, degree, vertex, expected, dtype):
    csc = Csc(torch.tensor([0] * (vertex + 1) + [degree]), torch.arange(degree, dtype=dtype) % 7)
    if pick in WEIGHTED:
        pick = PickSpec.weighted(pick, csc.indptr, torch.tensor([1.0, 0.0, 3.0, 4.0]))
    dst = torch.tensor([vertex], dtype=dtype)
    indptr, neighbors, positions, weights = hop(
        ops, csc, dst, len(expected), pick, gpu.put, number=1, batch=3
    )
    assert indptr.tolist() == [0, len(expected)]
    assert positions.tolist() == expected
    assert neighbors.tolist() == [p % 7 for p in expected]
    assert weights.numel() == 0


# 0 <- 1 2 3, 1 <- 0, 2 <- 2 4 4, 3 isolated, 4 <- 0 1 2 3 4 5, 5 <- 0
WALKED = Csc(
    torch.tensor([0, 3, 4, 7, 7, 13, 14]),
    torch.tensor([1, 2, 3, 0, 2, 4, 4, 0, 1, 2, 3, 4, 5, 0], dtype=torch.int32),
)


@pytest.mark.parametrize("dtype", IDS)
def test_random_walks_are_pinned(ops, gpu, dtype):
    csc = Csc(WALKED.indptr, WALKED.indices.to(dtype))
    dst = torch.tensor([0, 3, 4], dtype=dtype)
    indptr, neighbors, positions, weights = hop(
        ops, csc, dst, 3, PickSpec.random_walk(4, 3, 0.5), gpu.put, number=1, batch=3
    )
    assert indptr.tolist() == [0, 3, 3, 6]
    assert neighbors.tolist() == [1, 2, 3, 0, 1, 2]
    assert weights.tolist() == [4, 4, 2, 5, 2, 2]
    assert weights.dtype == torch.float32
    assert positions.numel() == 0


# 21 and 22, 64 and 65, 512 and 513: the last slots in shared memory and the first in scratch.
@pytest.mark.parametrize("pick", WITHOUT_REPLACEMENT)
@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("fanout", [1, 2, 5, 15, 21, 22, 64, 65, 300, 512, 513, 2**31 - 1])
def test_hop_equals_cpu(ops, gpu, pick, dtype, fanout):
    csc = skewed(3000, dtype, seed=fanout % 1000, top=900)
    dst = torch.randperm(3000, generator=torch.Generator().manual_seed(1))[:1777].to(dtype)
    expected = hop(ops, csc, dst, fanout, pick, number=2, batch=7)
    assert_same(hop(ops, csc, dst, fanout, pick, gpu.put, number=2, batch=7), expected)


@pytest.mark.parametrize("pick", ["with_replacement", *WEIGHTED])
@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("fanout", [1, 2, 5, 15, 16, 17, 300, 3000])
def test_hop_with_replacement_equals_cpu(ops, gpu, pick, dtype, fanout):
    csc = skewed(3000, dtype, seed=fanout, top=900)
    dst = torch.randperm(3000, generator=torch.Generator().manual_seed(1))[:777].to(dtype)
    expected = hop(ops, csc, dst, fanout, pick, number=2, batch=7)
    assert_same(hop(ops, csc, dst, fanout, pick, gpu.put, number=2, batch=7), expected)


# Tallies of 128 threads per block in shared memory, of 32 threads, and all in scratch memory.
@pytest.mark.parametrize("walks, length", [(1, 1), (4, 3), (31, 1), (32, 1), (16, 7), (64, 64)])
@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("fanout", [1, 3, 300, 3000])
def test_walks_equal_cpu(ops, gpu, walks, length, dtype, fanout):
    csc = skewed(3000, dtype, seed=walks, top=900)
    dst = torch.randperm(3000, generator=torch.Generator().manual_seed(1))[:1777].to(dtype)
    spec = PickSpec.random_walk(walks, length, 0.2)
    expected = hop(ops, csc, dst, fanout, spec, number=2, batch=7)
    assert_same(hop(ops, csc, dst, fanout, spec, gpu.put, number=2, batch=7), expected)


@pytest.mark.parametrize("pick", PICKS)
@pytest.mark.parametrize("fanout", [1, 10, 600, 3000])
def test_hubs(ops, gpu, pick, fanout):
    # A row of 2048 draws is handled by a warp, one of 2049 by a whole block.
    hub = 2048 + fanout
    degrees = np.array([100_000, 0, 3, hub, hub + 1, 5000, 100_003, 1, 31, 2047])
    csc = csc_of(degrees, torch.int32, seed=5)
    dst = torch.arange(len(degrees), dtype=torch.int32)
    assert_same(hop(ops, csc, dst, fanout, pick, gpu.put), hop(ops, csc, dst, fanout, pick))
    for row in (0, 6):  # alone: the other warps of the block have no row
        one = dst[row : row + 1]
        assert_same(hop(ops, csc, one, fanout, pick, gpu.put), hop(ops, csc, one, fanout, pick))


@pytest.mark.parametrize("pick", PICKS)
@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("frontier", ["cumulative", "new"])
def test_graph_in_locked_memory(ops, gpu, pick, dtype, frontier):
    csc = skewed(3000, dtype, seed=4)
    seeds = torch.arange(0, 3000, 17, dtype=dtype)
    put = lambda t: gpu.put(t) if t is seeds else t.pin_memory()  # noqa: E731
    got = batch(ops, csc, seeds, [5, 30], pick, frontier, put)
    assert all(t.is_cuda for t in got)
    assert_same(got, batch(ops, csc, seeds, [5, 30], pick, frontier))
    assert_same(hop(ops, csc, seeds, 4, pick, put), hop(ops, csc, seeds, 4, pick))


def test_graph_split_between_device_and_locked_memory(ops, gpu):
    csc = skewed(3000, torch.int32, seed=4)
    seeds = torch.arange(0, 3000, 17, dtype=torch.int32)
    expected = batch(ops, csc, seeds, [5, 3], "floyd", "new")
    put = lambda t: t.pin_memory() if t is csc.indices else gpu.put(t)  # noqa: E731
    assert_same(batch(ops, csc, seeds, [5, 3], "floyd", "new", put), expected)


@pytest.mark.parametrize("what", ["indptr", "indices", "weights"])
def test_unlocked_memory_is_refused(ops, gpu, what):
    csc = skewed(300, torch.int32, seed=4)
    spec = spec_of("weighted_alias", csc)
    seeds = torch.arange(5, dtype=torch.int32)
    left = {"indptr": csc.indptr, "indices": csc.indices, "weights": spec.tables[0]}[what]
    put = lambda t: t if t is left else gpu.put(t)  # noqa: E731
    with pytest.raises(RuntimeError, match=f"^gnnbench: {what} must be .* locked for CUDA"):
        batch(ops, csc, seeds, [5], spec, "new", put)


@pytest.mark.parametrize("key", [0, -1, 1 << 62, -(1 << 63)])
@pytest.mark.parametrize("number, batch_number", [(0, 0), (65535, 2**32 - 1)])
def test_every_bit_of_the_counter(ops, gpu, key, number, batch_number):
    csc = skewed(500, torch.int64, seed=3)
    dst = torch.arange(500)
    args = {"number": number, "batch": batch_number, "key": key}
    for pick in PICKS:
        assert_same(
            hop(ops, csc, dst, 7, pick, gpu.put, **args), hop(ops, csc, dst, 7, pick, **args)
        )


@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("pick", PICKS)
def test_empty_hop(ops, gpu, pick, dtype):
    indptr, neighbors, positions, _ = hop(
        ops, HAND, torch.empty(0, dtype=torch.int32), 3, pick, gpu.put
    )
    assert indptr.tolist() == [0]
    assert neighbors.numel() == positions.numel() == 0
    nothing = Csc(torch.zeros(6, dtype=torch.int64), torch.empty(0, dtype=dtype))
    dst = torch.arange(5, dtype=dtype)
    assert hop(ops, nothing, dst, 3, pick, gpu.put)[0].tolist() == [0] * 6


@pytest.mark.parametrize("dtype", IDS)
def test_id_map_by_hand(ops, gpu, dtype):
    dst = torch.tensor([7, 3], dtype=dtype)
    neighbors = torch.tensor([3, 9, 9, 0, 7, 9, 5], dtype=dtype)
    src, local = ops.id_map(gpu.put(dst), gpu.put(neighbors))
    assert src.tolist() == [7, 3, 9, 0, 5]
    assert local.tolist() == [1, 2, 2, 3, 0, 2, 4]
    assert src.dtype == dtype
    assert local.dtype == torch.int32


@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("num_dst, num_neighbors", [(0, 0), (0, 9), (9, 0), (1, 1), (900, 30_000)])
@pytest.mark.parametrize("top", [1000, 2**31 - 1])
def test_id_map_equals_cpu(ops, gpu, dtype, num_dst, num_neighbors, top):
    rng = np.random.default_rng(num_neighbors)
    dst = torch.from_numpy(rng.permutation(1000)[:num_dst] * (top // 1000)).to(dtype)
    neighbors = torch.from_numpy(rng.integers(0, top, num_neighbors)).to(dtype)
    assert_same(ops.id_map(gpu.put(dst), gpu.put(neighbors)), ops.id_map(dst, neighbors))


def test_id_map_wide_ids(ops, gpu):
    dst = torch.tensor([1 << 40, (1 << 40) + (1 << 32), 2**63 - 1])
    neighbors = torch.tensor([1 << 32, 1 << 40, 0, 2**63 - 1, 1 << 32])
    src, local = ops.id_map(gpu.put(dst), gpu.put(neighbors))
    assert src.tolist() == [*dst.tolist(), 1 << 32, 0]
    assert local.tolist() == [3, 0, 4, 2, 3]


def test_id_map_of_one_frequent_id(ops, gpu):
    neighbors = torch.full((200_000,), 4, dtype=torch.int32)
    src, local = ops.id_map(gpu.put(torch.tensor([4], dtype=torch.int32)), gpu.put(neighbors))
    assert src.tolist() == [4]
    assert int(local.abs().max()) == 0


@pytest.mark.parametrize("pick", PICKS)
@pytest.mark.parametrize("frontier", ["cumulative", "new"])
@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("positions", [True, False])
@pytest.mark.parametrize("fanouts", [[15, 10, 5], [3], [70, 2], [2, 600, 2]])
def test_batch_equals_cpu(ops, gpu, pick, frontier, dtype, positions, fanouts):
    csc = skewed(4000, dtype, seed=len(fanouts), top=700)
    seeds = torch.randperm(4000, generator=torch.Generator().manual_seed(9))[:60].to(dtype)
    expected = batch(ops, csc, seeds, fanouts, pick, frontier, positions=positions)
    carried = positions or pick == "random_walk"
    assert len(expected) == len(fanouts) * (4 if carried else 3)
    got = batch(ops, csc, seeds, fanouts, pick, frontier, gpu.put, positions=positions)
    assert_same(got, expected)


@pytest.mark.parametrize("frontier", ["cumulative", "new"])
@pytest.mark.parametrize("graph_ids, seed_ids", [(IDS[0], IDS[1]), (IDS[1], IDS[0])])
def test_seeds_of_the_other_dtype(ops, gpu, frontier, graph_ids, seed_ids):
    csc = skewed(600, graph_ids, seed=1)
    seeds = torch.arange(50, 90, dtype=seed_ids)
    expected = batch(ops, csc, seeds, [4, 3], "floyd", frontier)
    assert_same(batch(ops, csc, seeds, [4, 3], "floyd", frontier, gpu.put), expected)


@pytest.mark.parametrize("frontier", ["cumulative", "new"])
def test_empty_and_isolated_seeds(ops, gpu, frontier):
    for seeds in (torch.empty(0, dtype=torch.int32), torch.tensor([0], dtype=torch.int32)):
        expected = batch(ops, HAND, seeds, [3, 2], "reservoir", frontier)
        assert_same(batch(ops, HAND, seeds, [3, 2], "reservoir", frontier, gpu.put), expected)


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    graphs_and_seeds(),
    st.lists(st.integers(1, 30), min_size=1, max_size=4),
    st.sampled_from(PICKS),
    st.sampled_from(["cumulative", "new"]),
)
def test_any_batch_equals_cpu(ops, gpu, drawn, fanouts, pick, frontier):
    csc, seeds = drawn
    expected = batch(ops, csc, seeds, fanouts, pick, frontier)
    assert_same(batch(ops, csc, seeds, fanouts, pick, frontier, gpu.put), expected)


def test_repeated_calls_give_the_same_bits(ops, gpu):
    csc = skewed(20_000, torch.int32, seed=2, top=3000)
    seeds = torch.arange(0, 4000, 4, dtype=torch.int32)
    for pick in PICKS:
        spec = spec_of(pick, csc)
        first, *others = (
            batch(ops, csc, seeds, [15, 10, 5], spec, "cumulative", gpu.put) for _ in range(6)
        )
        for other in others:
            assert_same(other, [t.cpu() for t in first])


REFUSALS = [
    ({"seeds": [5]}, "^gnnbench: seeds holds an id outside the graph"),
    ({"seeds": [-1]}, "^gnnbench: seeds holds an id outside the graph"),
    ({"seeds": [1, 2, 1]}, "^gnnbench: seeds holds an id twice"),
    ({"indptr": [0, 0, 1, 4, 6, 12]}, "^gnnbench data: indptr is broken"),
    ({"indptr": [0, 0, 5, 4, 6, 11]}, "^gnnbench data: indptr is broken"),
    ({"indices": [1, 3, 3, 3, 0, 4, 0, 9, 2, 3, 4]}, "^gnnbench data: indices holds an id"),
    ({"indices": [1, 3, 3, 3, 0, 4, 0, -1, 2, 3, 4]}, "^gnnbench data: indices holds an id"),
    # Of several errors, that of the graph is reported, not its consequences.
    (
        {"seeds": [4, 2, 4], "indices": [1, 3, 3, 3, 0, 4, 0, -1, 2, 3, 4]},
        "^gnnbench data: indices holds an id",
    ),
]


@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("change, message", REFUSALS)
def test_bad_arguments(ops, gpu, change, message, dtype):
    csc = Csc(
        torch.tensor(change.get("indptr", HAND.indptr.tolist())),
        torch.tensor(change.get("indices", HAND.indices.tolist()), dtype=dtype),
    )
    seeds = torch.tensor(change.get("seeds", [0, 1, 2, 3, 4]), dtype=dtype)
    with pytest.raises(RuntimeError, match=message):
        batch(ops, csc, seeds, [5], "reservoir", "cumulative", gpu.put)


def test_refuses_tables_of_another_graph(ops, gpu):
    # As many edges in one row: the aliases point outside the rows of this graph.
    spec = PickSpec.weighted("weighted_alias", torch.tensor([0, 11]), torch.arange(11.0))
    seeds = torch.arange(5, dtype=torch.int32)
    with pytest.raises(RuntimeError, match=r"^gnnbench: weights holds the tables of another"):
        batch(ops, HAND, seeds, [5, 5], spec, "new", gpu.put)
    with pytest.raises(RuntimeError, match=r"^gnnbench: weights holds the tables of another"):
        hop(ops, HAND, seeds, 5, spec, gpu.put)


def test_walks_on_a_broken_graph_are_refused(ops, gpu):
    walks = PickSpec.random_walk(20, 5, 0.0)
    dst = torch.tensor([5], dtype=torch.int32)  # 5 <- 0 <- 1 2 3
    strange = Csc(WALKED.indptr, WALKED.indices.clone())
    strange.indices[1] = 77
    with pytest.raises(RuntimeError, match=r"^gnnbench data: indices holds an id"):
        hop(ops, strange, dst, 3, walks, gpu.put)
    broken = Csc(WALKED.indptr.clone(), WALKED.indices)
    broken.indptr[1] = 1 << 40
    with pytest.raises(RuntimeError, match=r"^gnnbench data: indptr is broken"):
        hop(ops, broken, dst, 3, walks, gpu.put)
    with pytest.raises(RuntimeError, match=r"^gnnbench: dst holds an id outside the graph"):
        hop(ops, WALKED, dst + 1, 3, walks, gpu.put)


def test_refuses_a_seed_that_would_wrap(ops, gpu):
    seeds = torch.tensor([1 << 32])
    with pytest.raises(RuntimeError, match=r"^gnnbench: seeds holds an id outside the graph"):
        batch(ops, HAND, seeds, [2], "floyd", "new", gpu.put)


def test_refuses_negative_and_repeated_ids(ops, gpu):
    put = gpu.put
    with pytest.raises(RuntimeError, match="negative id"):
        ops.id_map(put(torch.tensor([1])), put(torch.tensor([2, -1, 3])))
    with pytest.raises(RuntimeError, match="negative id"):
        ops.id_map(put(torch.tensor([-5])), put(torch.tensor([2])))
    with pytest.raises(RuntimeError, match="dst holds an id twice"):
        ops.id_map(put(torch.tensor([1, 2, 1])), put(torch.tensor([2])))
