"""Integer tables of the weighted picks: by hand, equal to the reference, exact; bad weights."""

from collections import defaultdict
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp
from ops_graphs import csc
from ops_threads import threads
from torch import Tensor

from gnnbench.core.errors import DataError, UsageError
from gnnbench.kernels import sampler
from gnnbench.kernels.picks import WEIGHTED, PickSpec
from gnnbench.kernels.reference import sampler as reference

CERTAIN = NO_WEIGHT = 0xFFFFFFFF
DTYPES = [torch.float32, torch.float64]


def unsigned(table: Tensor) -> list[int]:
    return [v & 0xFFFFFFFF for v in table.tolist()]


@pytest.mark.parametrize("dtype", DTYPES)
def test_tables_by_hand(dtype: torch.dtype) -> None:
    # Rows: weights 1 0 3 4, none at all, 0 0, 7.
    indptr = torch.tensor([0, 4, 4, 6, 7])
    weights = torch.tensor([1, 0, 3, 4, 0, 0, 7], dtype=dtype)
    threshold, alias = PickSpec.weighted("weighted_alias", indptr, weights).tables
    assert unsigned(threshold) == [1 << 31, 0, 0, CERTAIN, 0, 0, CERTAIN]
    assert unsigned(alias) == [2, 2, 3, 3, NO_WEIGHT, NO_WEIGHT, 0]
    (prefix,) = PickSpec.weighted("weighted_prefix", indptr, weights).tables
    assert prefix.tolist() == [1 << 29, 1 << 29, 1 << 31, 1 << 32, 0, 0, 1 << 31]


def test_small_weights_are_never_rounded_to_zero() -> None:
    indptr, weights = torch.tensor([0, 2]), torch.tensor([1e-300, 1.0], dtype=torch.float64)
    (prefix,) = PickSpec.weighted("weighted_prefix", indptr, weights).tables
    assert prefix.tolist() == [1, 1 + (1 << 31)]


@st.composite
def weighted_graphs(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Offsets and weights: equal weights, many zeros, and very different magnitudes."""
    degrees = draw(st.lists(st.sampled_from([0, 1, 2, 3, 7, 40]), min_size=1, max_size=12))
    indptr = torch.tensor(np.concatenate([[0], np.cumsum(degrees)]))
    width = draw(st.sampled_from([32, 64]))
    some = st.floats(0, 2.0**100, width=width) | st.integers(0, 4).map(float)
    weights = draw(hnp.arrays(f"float{width}", int(indptr[-1]), elements=some))
    return indptr, torch.from_numpy(weights)


@settings(max_examples=80)
@given(graph=weighted_graphs(), n=st.integers(1, 4))
def test_tables_equal_the_reference(graph: tuple[Tensor, Tensor], n: int) -> None:
    for name in WEIGHTED:
        with threads(n):
            tables = PickSpec.weighted(name, *graph).tables
        expected = reference.weight_tables(*graph, name.removeprefix("weighted_"))
        for a, b in zip(tables, expected, strict=True):
            assert a.dtype == b.dtype
            assert torch.equal(a, b)


@settings(max_examples=80)
@given(graph=weighted_graphs())
def test_alias_and_prefix_tables_have_the_same_distribution(graph: tuple[Tensor, Tensor]) -> None:
    indptr, weights = graph
    thresholds, aliases = map(unsigned, PickSpec.weighted("weighted_alias", *graph).tables)
    prefix = PickSpec.weighted("weighted_prefix", *graph).tables[0].tolist()
    for begin, end in zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True):
        degree = end - begin
        if degree == 0 or prefix[end - 1] == 0:
            assert set(aliases[begin:end]) <= {NO_WEIGHT}
            continue
        law: dict[int, Fraction] = defaultdict(Fraction)
        for entry in range(degree):
            kept = Fraction(thresholds[begin + entry], 1 << 32)
            law[entry] += kept / degree
            law[aliases[begin + entry]] += (1 - kept) / degree
        assert sum(law.values()) == 1
        before = 0
        for entry in range(degree):
            exact = Fraction(prefix[begin + entry] - before, prefix[end - 1])
            before = prefix[begin + entry]
            # Each bucket of the row is split at a multiple of 2^-32.
            assert abs(law[entry] - exact) <= Fraction(1, 1 << 32)
            if weights[begin + entry] == 0:
                assert law[entry] == 0


def test_results_are_identical_for_any_number_of_threads() -> None:
    indptr, _ = csc(np.random.default_rng(1).integers(0, 60, 3000).tolist(), torch.int32, 0)
    weights = torch.rand(int(indptr[-1]), generator=torch.Generator().manual_seed(2))
    for name in WEIGHTED:
        tables = []
        for n in (1, 2, 4):
            with threads(n):
                tables.append(PickSpec.weighted(name, indptr, weights).tables)
        for other in tables[1:]:
            assert all(torch.equal(a, b) for a, b in zip(tables[0], other, strict=True))


@pytest.mark.parametrize("pick", WEIGHTED)
def test_rows_without_weight_have_no_edges(pick: str) -> None:
    indptr, indices = torch.tensor([0, 2, 4, 4]), torch.tensor([0, 1, 1, 2])
    spec = PickSpec.weighted(pick, indptr, torch.tensor([0.0, 0.0, 0.0, 1.0]))
    for module in (sampler, reference):
        out_indptr, neighbors, positions, _ = module.sample_hop(
            indptr, indices, torch.tensor([0, 1, 2]), 3, pick=spec, key=1, hop=0, batch=0
        )
        assert out_indptr.tolist() == [0, 0, 3, 3]
        assert neighbors.tolist() == [2, 2, 2]
        assert positions.tolist() == [3, 3, 3]


INDPTR = torch.tensor([0, 2, 3])
GOOD = torch.tensor([1.0, 2.0, 3.0])


def with_value(value: float, at: int, dtype: torch.dtype = torch.float32) -> Tensor:
    weights = GOOD.to(dtype, copy=True)
    weights[at] = value
    return weights


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"weights": with_value(float("nan"), 1)}, UsageError, "weights holds nan at position 1"),
    ({"weights": with_value(float("inf"), 2)}, UsageError, "weights holds inf at position 2"),
    (
        {"weights": with_value(float("-inf"), 0, torch.float64)},
        UsageError,
        "weights holds -inf at position 0",
    ),
    ({"weights": with_value(-0.5, 2)}, UsageError, "weights holds -0.5 at position 2; they must"),
    ({"weights": GOOD.half()}, UsageError, "weights must be float32 or float64, it is float16"),
    ({"weights": GOOD[:2]}, UsageError, "weights must have one entry per edge, 3, it has 2"),
    ({"weights": GOOD[None]}, UsageError, "weights must have 1 dimension"),
    ({"weights": torch.rand(6)[::2]}, UsageError, "weights must be contiguous"),
    ({"indptr": INDPTR.int()}, UsageError, "indptr must be int64, it is int32"),
    ({"indptr": INDPTR[:0]}, UsageError, "indptr must hold num_nodes \\+ 1 offsets"),
    ({"indptr": torch.tensor([0, 4, 3])}, DataError, "indptr is broken at node 0"),
    ({"indptr": torch.tensor([1, 2, 3])}, DataError, "the first offset must be 0"),
    ({"name": "floyd"}, UsageError, "pick must be one of weighted_alias, weighted_prefix"),
]


@pytest.mark.parametrize(("changed", "error", "message"), BAD, ids=[m for _, _, m in BAD])
def test_bad_weights_are_refused(
    changed: dict[str, Any], error: type[Exception], message: str
) -> None:
    arguments: dict[str, Any] = {"name": "weighted_alias", "indptr": INDPTR, "weights": GOOD}
    arguments |= changed
    with pytest.raises(error, match=message) as caught:
        PickSpec.weighted(arguments["name"], arguments["indptr"], arguments["weights"])
    assert "\n" not in str(caught.value)


def test_first_bad_weight_is_reported_for_any_number_of_threads() -> None:
    indptr, weights = torch.tensor([0, 300_000]), torch.ones(300_000)
    weights[[250_000, 70_001, 140_000]] = -1
    for n in (1, 4):
        with threads(n), pytest.raises(UsageError, match="weights holds -1 at position 70001"):
            PickSpec.weighted("weighted_prefix", indptr, weights)
