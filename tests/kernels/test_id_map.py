"""The id map: order of first occurrence, both tables, any number of threads."""

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given
from ops_threads import threads

from gnnbench.core.errors import UsageError
from gnnbench.kernels import sampler
from gnnbench.kernels.reference import sampler as reference


def test_id_map_by_hand() -> None:
    for module in (sampler, reference):
        nodes, local = module.id_map(torch.tensor([9, 4]), torch.tensor([4, 7, 9, 7, 0]))
        assert nodes.tolist() == [9, 4, 7, 0]
        assert local.tolist() == [1, 2, 0, 2, 3]
        assert local.dtype == torch.int32


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize(
    ("low", "dtype"),
    # Ids above 32 bits use the table without packed keys.
    [(0, torch.int32), (0, torch.int64), (1 << 40, torch.int64)],
)
@pytest.mark.parametrize("spread", [300, 30_000, 10_000_000])
@pytest.mark.parametrize("variant", sampler.ID_MAPS[:2])
def test_id_map_equals_the_reference(
    variant: str, count: int, low: int, dtype: torch.dtype, spread: int
) -> None:
    rng = np.random.default_rng(spread + count)
    dst = torch.from_numpy(rng.choice(spread, 200, replace=False) + low).to(dtype)
    neighbors = torch.from_numpy(rng.integers(0, spread, 50_000) + low).to(dtype)
    with threads(count):
        nodes, local = sampler.id_map(dst, neighbors, variant)
    expected_nodes, expected_local = reference.id_map(dst, neighbors)
    assert nodes.dtype == dtype
    assert torch.equal(nodes, expected_nodes)
    assert torch.equal(local, expected_local)
    assert torch.equal(nodes[local.long()], neighbors)


@given(
    st.lists(st.one_of(st.integers(0, 2**63 - 1), st.just(2**63 - 1)), unique=True, max_size=20),
    st.lists(st.integers(0, 30), max_size=60),
    st.data(),
)
def test_any_ids_equal_the_reference(dst: list[int], small: list[int], data: st.DataObject) -> None:
    picked = st.sampled_from(dst) if dst else st.just(7)
    neighbors = small + data.draw(st.lists(picked, max_size=20))
    args = (torch.tensor(dst, dtype=torch.int64), torch.tensor(neighbors, dtype=torch.int64))
    expected = reference.id_map(*args)
    for variant in sampler.ID_MAPS[:2]:
        for ours, theirs in zip(sampler.id_map(*args, variant), expected, strict=True):
            assert torch.equal(ours, theirs)


def test_empty_ids_give_empty_results() -> None:
    none = torch.empty(0, dtype=torch.int32)
    nodes, local = sampler.id_map(none, none)
    assert nodes.numel() == local.numel() == 0
    assert sampler.id_map(none, none + 1)[0].dtype == torch.int32


@pytest.mark.parametrize(
    ("dst", "neighbors", "message"),
    [
        (torch.tensor([1, 2, 1]), torch.tensor([1]), "dst holds an id twice"),
        (torch.tensor([1 << 40, 1 << 40]), torch.tensor([1]), "dst holds an id twice"),
        (torch.tensor([1, -2]), torch.tensor([1]), "dst holds a negative id"),
        (torch.tensor([1]), torch.tensor([-1]), "neighbors holds a negative id"),
        (torch.tensor([1]), torch.tensor([1]).int(), "neighbors must be int64, it is int32"),
        (torch.tensor([1.0]), torch.tensor([1]), "dst must be int32 or int64"),
        (torch.tensor([1]), torch.tensor([[1]]), "neighbors must have 1 dimension"),
    ],
)
def test_bad_arguments_are_refused(
    dst: torch.Tensor, neighbors: torch.Tensor, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        sampler.id_map(dst, neighbors)
