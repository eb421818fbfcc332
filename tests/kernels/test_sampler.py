"""The batch sampler: small graphs by hand, and equality with the reference."""

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from ops_batches import KEY, check_by_hand, check_empty, pick_of
from ops_graphs import FRONTIERS, INDICES, INDPTR, csc, graphs, same
from ops_threads import threads
from torch import Tensor

from gnnbench.kernels import rng, sampler
from gnnbench.kernels.picks import PICKS, WITHOUT_REPLACEMENT, PickSpec
from gnnbench.kernels.reference import sampler as reference


@pytest.fixture(params=["op", "reference"])
def sample(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return sampler.hop_by_hop if request.param == "op" else reference.sample


@pytest.mark.parametrize("pick", WITHOUT_REPLACEMENT)
def test_all_neighbours_keep_stored_order(sample: Callable[..., Any], pick: str) -> None:
    check_by_hand(sample, pick)


# The constants of native/tests/test_headers.cpp.
PINNED: list[tuple[str, int, int, int, list[int]]] = [
    ("reservoir", 12, 5, 7, [0, 1, 2, 3, 7]),
    ("reservoir", 20, 9, 7, [0, 1, 2, 3, 4, 19, 11, 14, 10]),
    ("reservoir_thinned", 12, 5, 7, [0, 1, 2, 3, 7]),
    ("reservoir_thinned", 60, 5, 7, [24, 1, 47, 29, 46]),
    ("reservoir_thinned", 1000, 3, 7, [540, 174, 116]),
    ("floyd", 12, 5, 7, [7, 6, 5, 8, 11]),
    ("floyd", 20, 9, 7, [10, 9, 7, 11, 15, 8, 14, 12, 19]),
    ("fisher_yates", 12, 5, 7, [10, 8, 5, 6, 9]),
    ("fisher_yates", 7, 6, 7, [6, 4, 2, 5, 3, 1]),
    ("with_replacement", 12, 5, 7, [10, 9, 6, 8, 8]),
    ("weighted_alias", 4, 8, 7, [3, 3, 3, 3, 3, 2, 0, 3]),
    ("weighted_prefix", 4, 8, 7, [3, 3, 3, 3, 3, 2, 2, 3]),
]
PINNED_KEY = 0x0123456789ABCDEF


@pytest.mark.parametrize(("pick", "degree", "fanout", "vertex", "expected"), PINNED)
def test_picks_are_pinned(
    pick: str, degree: int, fanout: int, vertex: int, expected: list[int]
) -> None:
    indptr = torch.tensor([0] * (vertex + 1) + [degree])
    indices = torch.arange(degree, dtype=torch.int32) % (vertex + 1)
    weighted = pick.startswith("weighted")
    spec = (
        PickSpec.weighted(pick, indptr, torch.tensor([1.0, 0.0, 3.0, 4.0]))
        if weighted
        else PickSpec.of(pick)
    )
    for module in (sampler, reference):
        out_indptr, neighbors, positions, weights = module.sample_hop(
            indptr,
            indices,
            torch.tensor([vertex], dtype=torch.int32),
            fanout,
            pick=spec,
            key=PINNED_KEY,
            hop=1,
            batch=3,
        )
        assert out_indptr.tolist() == [0, fanout]
        assert positions.tolist() == expected
        assert neighbors.tolist() == [p % (vertex + 1) for p in expected]
        assert weights.numel() == 0


@pytest.mark.parametrize(
    ("vertex", "fanout", "nodes", "visits"),
    [
        (0, 3, [1, 2, 3], [4, 4, 2]),
        (2, 20, [4, 2, 0, 3, 5], [7, 2, 1, 1, 1]),
        (4, 3, [0, 1, 2], [5, 2, 2]),
        (3, 3, [], []),
    ],
)
def test_random_walks_are_pinned(
    vertex: int, fanout: int, nodes: list[int], visits: list[int]
) -> None:
    for module in (sampler, reference):
        out_indptr, neighbors, positions, weights = module.sample_hop(
            INDPTR,
            INDICES,
            torch.tensor([vertex], dtype=torch.int32),
            fanout,
            pick=PickSpec.random_walk(4, 3, 0.5),
            key=PINNED_KEY,
            hop=1,
            batch=3,
        )
        assert out_indptr.tolist() == [0, len(nodes)]
        assert neighbors.tolist() == nodes
        assert weights.tolist() == visits
        assert weights.dtype == torch.float32
        assert positions.numel() == 0


def test_batch_of_random_walks_by_hand(sample: Callable[..., Any]) -> None:
    # A ring: 0 <- 1 <- 2 <- 3 <- 0. Both walks of two steps visit the next node and its successor.
    indptr, indices = torch.arange(5), torch.tensor([1, 2, 3, 0])
    options: dict[str, Any] = {"pick": PickSpec.random_walk(2, 2, 0.0), "key": KEY, "batch": 0}
    inner, outer = sample(
        indptr, indices, torch.tensor([0]), [2, 1], frontier="cumulative", **options
    ).blocks
    assert outer.src_nodes.tolist() == [0, 1, 2]
    assert outer.indptr.tolist() == [0, 2]
    assert outer.indices.tolist() == [1, 2]
    assert outer.weights.tolist() == [2.0, 2.0]
    assert outer.positions is None
    # Among equal counts, the smaller id is kept: 1 of (1, 2), 2 of (2, 3), 0 of (3, 0).
    assert inner.src_nodes.tolist() == [0, 1, 2]
    assert inner.indptr.tolist() == [0, 1, 2, 3]
    assert inner.indices.tolist() == [1, 2, 0]
    assert inner.weights.tolist() == [2.0, 2.0, 2.0]
    second, first = sample(
        indptr, indices, torch.tensor([0]), [2, 1], frontier="new", **options
    ).blocks
    assert first.weights.tolist() == [2.0, 2.0]
    assert second.indptr.tolist() == [0, 2, 3, 4]
    assert second.weights.tolist() == [2.0, 2.0, 2.0, 2.0]


def test_draws_with_replacement_repeat_positions(sample: Callable[..., Any]) -> None:
    # One neighbour, drawn fanout times; an empty row draws nothing.
    batch = sample(
        INDPTR,
        INDICES,
        torch.tensor([5, 3]),
        [4],
        pick="with_replacement",
        frontier="cumulative",
        key=KEY,
        batch=0,
        with_positions=True,
    )
    assert batch.blocks[0].indptr.tolist() == [0, 4, 4]
    assert batch.blocks[0].positions.tolist() == [13] * 4
    assert batch.blocks[0].src_nodes.tolist() == [5, 3, 0]


@pytest.mark.parametrize("frontier", FRONTIERS)
@pytest.mark.parametrize("pick", PICKS)
@settings(max_examples=12)
@given(graph=graphs(), data=st.data())
def test_operator_equals_the_reference(
    pick: str, frontier: str, graph: tuple[Tensor, Tensor], data: st.DataObject
) -> None:
    indptr, indices = graph
    n = len(indptr) - 1
    seeds = data.draw(st.lists(st.integers(0, n - 1), unique=True, max_size=n))
    dtype = data.draw(st.sampled_from([torch.int32, torch.int64]))
    options = {
        "pick": pick_of(pick, graph),
        "frontier": frontier,
        "key": data.draw(st.integers(0, 2**63 - 1)),
        "batch": data.draw(st.integers(0, 2**32 - 1)),
        "with_positions": data.draw(st.booleans()),
    }
    args = (
        indptr,
        indices,
        torch.tensor(seeds, dtype=dtype),
        data.draw(st.lists(st.sampled_from([1, 2, 4, 5, 15, 100]), min_size=1, max_size=4)),
    )
    with threads(data.draw(st.integers(1, 4))):
        ours = sampler.hop_by_hop(*args, **options)
    same(ours, reference.sample(*args, **options))


@pytest.mark.parametrize(("frontier", "dtype"), [("cumulative", torch.int32), ("new", torch.int64)])
@pytest.mark.parametrize("pick", PICKS)
def test_results_are_identical_for_any_number_of_threads(
    pick: str, frontier: str, dtype: torch.dtype
) -> None:
    # Large enough for many chunks of rows and of keys.
    degrees = np.random.default_rng(0).integers(0, 40, 6000).tolist()
    indptr, indices = csc(degrees, dtype, 1)
    seeds = rng.permutation(6000, KEY)[:900]
    options: dict[str, Any] = {
        "pick": pick_of(pick, (indptr, indices)),
        "frontier": frontier,
        "key": KEY,
        "batch": 5,
        "with_positions": True,
    }
    batches = []
    for n in (1, 2, 3, 4):
        with threads(n):
            batches += [sampler.hop_by_hop(indptr, indices, seeds, [8, 6, 4], **options)]
    for other in batches[1:]:
        same(batches[0], other)
    same(batches[0], reference.sample(indptr, indices, seeds, [8, 6, 4], **options))


@pytest.mark.parametrize("pick", PICKS)
def test_rows_longer_than_one_window_of_draws(pick: str) -> None:
    # Rows that need more random numbers than one window, mixed with shorter rows.
    indptr, indices = csc([3, 9000, 0, 1500, 1300, 20, 5000], torch.int32, 2)
    for fanout in (10, 1023, 1025, 4000):
        args = (indptr, indices, torch.arange(7), [fanout, 3])
        options: dict[str, Any] = {"frontier": "cumulative", "key": KEY, "batch": 1}
        options["pick"] = pick_of(pick, (indptr, indices))
        same(
            sampler.hop_by_hop(*args, **options, with_positions=True),
            reference.sample(*args, **options, with_positions=True),
        )


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_thinned_rows_of_millions_equal_the_reference(dtype: torch.dtype) -> None:
    # Cells of up to 2^21 items, for which the reference uses a separate table.
    indptr = torch.tensor([0, 1 << 22, (1 << 22) + 3_000_001])
    indices = (torch.arange(int(indptr[-1])) % 2).to(dtype)
    for batch in range(20):
        args = (indptr, indices, torch.tensor([0, 1]), [1 + 7 * (batch % 3)])
        options: dict[str, Any] = {"frontier": "cumulative", "key": KEY, "batch": batch}
        options |= {"pick": "reservoir_thinned", "with_positions": True}
        same(sampler.hop_by_hop(*args, **options), reference.sample(*args, **options))


@pytest.mark.parametrize("frontier", FRONTIERS)
def test_empty_seeds_and_graphs_give_empty_blocks(
    sample: Callable[..., Any], frontier: str
) -> None:
    check_empty(sample, frontier)


@pytest.mark.parametrize("pick", PICKS)
def test_isolated_seeds_have_no_edges(sample: Callable[..., Any], pick: str) -> None:
    spec = pick_of(pick, (INDPTR, INDICES))
    batch = sample(
        INDPTR, INDICES, torch.tensor([3]), [2], pick=spec, frontier="cumulative", key=KEY, batch=0
    )
    assert batch.blocks[0].indptr.tolist() == [0, 0]
    assert batch.blocks[0].src_nodes.tolist() == [3]


def test_hops_batches_and_keys_give_different_draws() -> None:
    indptr, indices = csc([50] * 40, torch.int32, 3)
    options: dict[str, Any] = {"pick": "floyd", "key": KEY, "hop": 0, "batch": 0}

    def positions(**changed: int) -> list[int]:
        dst = torch.arange(40, dtype=torch.int32)
        return sampler.sample_hop(indptr, indices, dst, 5, **{**options, **changed})[2].tolist()

    base = positions()
    assert positions() == base
    for changed in ({"hop": 1}, {"batch": 1}, {"key": KEY + 1}):
        other = positions(**changed)
        assert sum(a == b for a, b in zip(base, other, strict=True)) < 20


def test_hop_may_repeat_a_destination() -> None:
    args = (INDPTR, INDICES, torch.tensor([4, 0, 4], dtype=torch.int32), 2)
    options: dict[str, Any] = {"pick": "floyd", "key": KEY, "hop": 0, "batch": 0}
    ours, theirs = (m.sample_hop(*args, **options) for m in (sampler, reference))
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        assert torch.equal(a, b)
    assert torch.equal(ours[2][:2], ours[2][4:])
