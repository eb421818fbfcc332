"""The native generator of twins, compared bit by bit with the reference."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ops_threads import threads

from gnnbench.core.errors import UsageError
from gnnbench.datasets.generators.recipe import TwinRecipe
from gnnbench.datasets.generators.twin import make_spec
from gnnbench.kernels import twin as ops
from gnnbench.kernels.reference import twin as reference

share = st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0])


@st.composite
def recipes(draw: st.DrawFn) -> TwinRecipe:
    nodes = draw(st.integers(2, 60))
    symmetric = draw(st.booleans())
    most = nodes * (nodes - 1) // (2 if symmetric else 1)
    edges = draw(st.one_of(st.just(most), st.integers(0, min(most, 6 * nodes))))
    first, second = sorted((draw(st.integers(0, nodes)), draw(st.integers(0, nodes))))
    return TwinRecipe(
        num_nodes=nodes,
        num_edges=2 * edges if symmetric else edges,
        feature_dim=draw(st.integers(1, 40)),
        num_classes=draw(st.integers(1, 5)),
        train=first,
        val=second - first,
        test=draw(st.integers(0, nodes - second)),
        symmetric=symmetric,
        id_dtype=draw(st.sampled_from(["int32", "int64"])),
        degree_ratio=draw(st.sampled_from([1.0, 1.4, 2.5])),
        degree_cap=draw(st.sampled_from([0.0, 1.0, 3.0])),
        isolated=draw(share),
        out_degree_ratio=draw(st.sampled_from([1.0, 1.2, 4.0])),
        out_isolated=draw(share),
        degree_tie=draw(share),
        communities=draw(st.integers(0, 12)),
        class_skew=draw(st.sampled_from([0.0, 1.5])),
        mixing=draw(share),
        regions=draw(st.integers(1, 4)),
        region_mixing=draw(share),
        train_locality=draw(share),
        train_home=draw(share),
        train_degree_bias=draw(share),
        signal=draw(share),
        label_noise=draw(share),
    )


@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(recipe=recipes(), seed=st.integers(0, 2**40))
def test_random_twins_equal_the_reference(recipe: TwinRecipe, seed: int) -> None:
    spec = make_spec(recipe.scaled(1), seed)
    for actual, expected in zip(ops.graph(spec), reference.graph(spec), strict=True):
        assert actual.numpy().dtype == expected.dtype
        np.testing.assert_array_equal(actual.numpy(), expected)
    np.testing.assert_array_equal(ops.labels(spec).numpy(), reference.labels(spec))
    for actual, expected in zip(ops.splits(spec), reference.splits(spec), strict=True):
        np.testing.assert_array_equal(actual.numpy(), expected)
    table = ops.features(spec, 0, spec.num_nodes).numpy()
    np.testing.assert_array_equal(table, reference.features(spec))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 17, 1000])
def test_bijection_is_a_permutation(n: int) -> None:
    for stream in range(3):
        assert sorted(reference.bijection(12345, stream, n)) == list(range(n))


def digest(recipe: TwinRecipe, scale: float = 1, seed: int = 0) -> str:
    spec = make_spec(recipe.scaled(scale), seed)
    state = hashlib.sha256()
    for tensor in (
        *ops.graph(spec),
        ops.labels(spec),
        *ops.splits(spec),
        ops.features(spec, 0, spec.num_nodes),
    ):
        state.update(tensor.numpy().tobytes())
    return state.hexdigest()


SYMMETRIC = TwinRecipe(
    num_nodes=20_000,
    num_edges=500_000,
    feature_dim=20,
    num_classes=7,
    train=0.1,
    val=0.05,
    test=0.85,
    symmetric=True,
    communities=40,
    regions=4,
    region_mixing=0.5,
    label_noise=0.1,
)
DIRECTED = SYMMETRIC.model_copy(
    update={
        "symmetric": False,
        "id_dtype": "int64",
        "isolated": 0.2,
        "degree_tie": 0.3,
        "train_locality": 0.9,
        "train_degree_bias": 0.5,
    }
)
PINNED = {
    "symmetric": (SYMMETRIC, "28eb0c7e14ec44e272d8230af130bfae08500a3f99326237cc9ae41c6c02445f"),
    "directed": (DIRECTED, "362ffc7f9e43a2c814504c415d5a67bd00f8502171aeef242e9683eb7ee3c2d6"),
}


@pytest.mark.parametrize("name", PINNED)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_results_are_identical_for_any_number_of_threads(name: str, count: int) -> None:
    recipe, pinned = PINNED[name]
    with threads(count):
        assert digest(recipe) == pinned


def test_seeds_give_different_twins() -> None:
    small = SYMMETRIC.model_copy(update={"num_nodes": 500, "num_edges": 5000})
    assert len({digest(small, seed=seed) for seed in range(5)}) == 5


def test_features_do_not_depend_on_the_chunk_size() -> None:
    spec = make_spec(SYMMETRIC.scaled(0.05), 0)
    whole = ops.features(spec, 0, spec.num_nodes)
    pieces = [
        ops.features(spec, at, min(37, spec.num_nodes - at)) for at in range(0, spec.num_nodes, 37)
    ]
    assert torch.equal(whole, torch.cat(pieces))


def test_impossible_arguments_are_refused() -> None:
    spec = make_spec(SYMMETRIC.scaled(0.01), 0)

    def changed(**values: object) -> ops.TwinSpec:
        return ops.TwinSpec(**{**vars(spec), **values})

    with pytest.raises(UsageError, match="num_edges is 3"):
        ops.graph(changed(num_edges=3))
    with pytest.raises(UsageError, match="without parallel edges"):
        ops.graph(changed(num_edges=200 * 200))
    with pytest.raises(UsageError, match="level_edges must sum"):
        ops.graph(changed(level_edges=spec.level_edges + 1))
    with pytest.raises(UsageError, match="community_ptr must rise"):
        ops.labels(changed(community_ptr=spec.community_ptr + 1))
    with pytest.raises(UsageError, match="in_law must be"):
        ops.graph(changed(in_law=spec.in_law.flip(0)))
    with pytest.raises(UsageError, match="out has 20 rows, from row 190 on"):
        ops.features(spec, 190, 20)
    with pytest.raises(UsageError, match="more nodes than the graph"):
        ops.splits(changed(splits=(100, 100, 1)))
