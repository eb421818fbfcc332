"""Twins generated on the GPU are identical to those of the CPU."""

import hashlib

import pytest
import torch

from gnnbench.core.errors import UsageError
from gnnbench.datasets.generators.recipe import TwinRecipe
from gnnbench.datasets.generators.twin import generate, make_spec
from gnnbench.datasets.store.disk import graph_lock
from gnnbench.datasets.store.reader import open_graph
from gnnbench.datasets.store.writer import GraphWriter
from gnnbench.kernels import twin

pytestmark = pytest.mark.gpu

BASE = {
    "num_nodes": 900, "num_edges": 20_000, "feature_dim": 33, "num_classes": 7, "train": 0.3,
    "val": 0.2, "test": 0.1, "symmetric": False,
}  # fmt: skip
RECIPES = {
    "directed": {},
    "symmetric": {"symmetric": True, "id_dtype": "int64", "communities": 30, "regions": 3},
    "skewed": {"degree_ratio": (1.2, 2.5), "isolated": 0.2, "out_isolated": 0.3, "degree_tie": 0.5},
    "dense": {"num_nodes": 150, "num_edges": 150 * 149, "symmetric": True},
    "nearly-full": {"num_nodes": 200, "num_edges": 38_000, "mixing": 1.0},
    "empty": {"num_edges": 0},
    "biased": {"train_locality": 0.7, "train_degree_bias": 0.5, "label_noise": 0.3, "test": 0.5},
    "tiny": {"num_nodes": 2, "num_edges": 2, "feature_dim": 1, "train": 1, "val": 0, "test": 0,
             "num_classes": 1},
}  # fmt: skip


def digests(spec, device):
    """SHA-256 of every array, by name."""
    indptr, indices = twin.graph(spec, device)
    parts = twin.splits(spec, device)
    arrays = {
        "indptr": indptr, "indices": indices, "labels": twin.labels(spec, device),
        **dict(zip(("train", "val", "test"), parts, strict=True)),
        "features": twin.features(spec, 0, spec.num_nodes, device),
        "last rows": twin.features(spec, spec.num_nodes - 1, 1, device),
    }  # fmt: skip
    assert all(t.device.type == device for t in arrays.values())
    return {
        name: (str(t.dtype), tuple(t.shape), hashlib.sha256(t.cpu().numpy().tobytes()).hexdigest())
        for name, t in arrays.items()
    }


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("changes", list(RECIPES.values()), ids=list(RECIPES))
def test_small_twin_equals_the_cpu(changes, seed):
    spec = make_spec(TwinRecipe(**{**BASE, **changes}).scaled(1.0), seed)
    assert digests(spec, "cuda") == digests(spec, "cpu")


@pytest.mark.parametrize("symmetric", [True, False])
def test_twin_of_a_million_edges_equals_the_cpu(symmetric):
    """Rows of thousands of edges, and communities smaller than the degrees of hubs."""
    recipe = TwinRecipe(
        num_nodes=50_000,
        num_edges=2_000_000,
        feature_dim=20,
        num_classes=40,
        train=0.1,
        symmetric=symmetric,
        degree_ratio=1.6,
        communities=400,
        regions=4,
        region_mixing=0.5,
    )
    spec = make_spec(recipe.scaled(1.0), 5)
    assert digests(spec, "cuda") == digests(spec, "cpu")


def test_impossible_twins_are_refused():
    spec = make_spec(TwinRecipe(**BASE).scaled(1.0), 0)
    broken = spec.community_ptr.clone()
    broken[-1] += 1
    with pytest.raises(UsageError, match="community_ptr must rise"):
        twin.labels(spec.__class__(**{**spec.__dict__, "community_ptr": broken}), "cuda")
    levels = torch.zeros_like(spec.level_edges)
    with pytest.raises(UsageError, match="level_edges must sum"):
        twin.graph(spec.__class__(**{**spec.__dict__, "level_edges": levels}), "cuda")


def test_stored_dataset_equals_the_cpu(tmp_path, monkeypatch):
    recipe = TwinRecipe(**{**BASE, "labels_outside_splits": False})
    graphs = []
    for device in ("cpu", "cuda"):
        monkeypatch.setenv("GNNBENCH_TWIN_DEVICE", device)
        final = tmp_path / f"{device}~twin"
        with graph_lock(final), GraphWriter(final, {"test": 1}) as out:
            out.finish(name=final.name, seed=3, **generate(recipe, 1.0, 3, out))
        graphs.append(open_graph(final))
    for name in ("indptr", "indices", "features", "labels", "train_idx", "val_idx", "test_idx"):
        assert torch.equal(*(getattr(g, name) for g in graphs))
