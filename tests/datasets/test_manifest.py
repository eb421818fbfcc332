"""The shipped manifests, and errors for invalid ones."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gnnbench.core.errors import MissingError, UsageError
from gnnbench.datasets.catalog import verify
from gnnbench.datasets.importers.loaders import LOADERS
from gnnbench.datasets.manifest import load_manifest, manifests, share_dir
from gnnbench.datasets.prepare import load_dataset

SHIPPED = sorted(share_dir("datasets").glob("*.toml"))
VARIANTS = sorted(name for name, manifest in manifests().items() if manifest.variant_of)


# Every row of the papers' dataset tables.
PUBLISHED = {
    "fastgl": {"reddit", "products", "mag", "igb_large", "papers100m"},
    "zero-copy": {"products", "wikipedia", "amazon", "papers100m"},
    "pgsampler": {"reddit", "flickr", "yelp", "ogbn_arxiv", "products", "coauthor_physics"},
    "gnnlab": {"products", "twitter", "papers100m", "uk_2006"},
    "fastsample": {"products", "papers100m"},
}


def test_every_dataset_of_the_papers_has_a_manifest() -> None:
    for paper, expected in PUBLISHED.items():
        published = {
            name
            for name, manifest in manifests().items()
            for row in manifest.published
            if row.paper == paper and row.nodes != "not in text" and not manifest.variant_of
        }
        assert published == expected, paper


def rounded(text: str) -> tuple[float, float]:
    """The value that a table prints and half a unit of its last digit."""
    number, _, unit = text.partition(" ")
    factor = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9}[unit]
    digits = len(number.partition(".")[2])
    return float(number.replace(",", "")) * factor, 0.5 * factor / 10**digits


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_counts_agree_with_published_ones(path: Path) -> None:
    """Except for rounding (also down: 2.44 M for 2,449,029) and for how edges are counted."""
    manifest = load_manifest(path)
    for row in manifest.published:
        if row.nodes == "not in text":
            continue
        value, unit = rounded(row.nodes)
        assert abs(manifest.num_nodes - value) <= max(2 * unit, 0.025 * value), row
        value, unit = rounded(row.edges)
        counts = (manifest.num_edges, manifest.num_edges // 2, 2 * manifest.num_edges)
        assert any(abs(c - value) <= max(2 * unit, 70) for c in counts), row
        if row.train:
            value, unit = rounded(row.train)
            assert abs(manifest.train_size - value) <= 2 * unit, row


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_every_twin_prepares_and_verifies(path: Path, root: Path) -> None:
    manifest = load_manifest(path)
    nodes, edges = manifest.num_nodes, manifest.num_edges
    scale = max(1000 / nodes, 4 * edges / nodes**2)  # a quarter of all possible edges at most
    name = f"{manifest.name}~twin@{scale:.2g}"
    graph = load_dataset(name)
    assert verify(name).ok
    assert graph.num_edges / graph.num_nodes == pytest.approx(edges / nodes, rel=0.01)
    assert graph.feature_dim == manifest.feature_dim
    assert graph.num_classes == manifest.num_classes
    assert graph.meta["symmetric"] == manifest.symmetric
    assert int(graph.labels[graph.train_idx].min()) >= 0


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_shipped_manifests_are_consistent(path: Path) -> None:
    manifest = load_manifest(path)
    assert manifest.name == path.stem
    assert manifest.train_size + manifest.val_size + manifest.test_size <= manifest.num_nodes
    assert manifest.published
    assert bool(manifest.source) != bool(manifest.variant_of)
    assert {source.loader for source in manifest.source} <= set(LOADERS)
    for field in manifest.assumed:
        assert field in type(manifest).model_fields
    recipe = manifest.twin_recipe()
    # A self-loop is one edge of a symmetric graph; twins have none.
    odd = manifest.num_edges % 2 if manifest.symmetric else 0
    assert (recipe.num_nodes, recipe.num_edges) == (manifest.num_nodes, manifest.num_edges - odd)
    assert recipe.symmetric == manifest.symmetric


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_is_the_same_graph_with_other_features(name: str, root: Path) -> None:
    variant = manifests()[name]
    recipe = manifests()[variant.variant_of].twin_recipe()
    assert variant.twin_recipe() == recipe.model_copy(update={"feature_dim": variant.feature_dim})
    one, other = (load_dataset(f"{n}~twin@0.0005") for n in (name, variant.variant_of))
    with pytest.raises(UsageError, match=f"'{name}' is a generated graph alone: use '{name}~twin'"):
        load_dataset(name)
    assert one.feature_dim == variant.feature_dim != other.feature_dim
    for array in ("indptr", "indices", "labels", "train_idx"):
        assert torch.equal(getattr(one, array), getattr(other, array)), array


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
@pytest.mark.parametrize("scale", [0.05, 0.01, 0.001, 0.37])
def test_scaled_recipes_have_scaled_counts(path: Path, scale: float) -> None:
    recipe = load_manifest(path).twin_recipe()
    if scale * recipe.num_nodes * recipe.num_nodes > 4 * recipe.num_edges:
        scaled = recipe.scaled(scale)
        assert scaled.num_nodes == round(recipe.num_nodes * scale)
        assert 0 < scaled.train < scaled.num_nodes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t + "\n[colour]\nx = 1\n", "unknown key 'colour'"),
        (lambda t: t.replace("[[source]]", "[[source]]\ncolour = 1", 1), "key 'source.0.colour'"),
        (lambda t: t.replace('loader = "npz"', 'loader = "zip"'), "key 'source.1.loader'"),
        (lambda t: t.replace("num_nodes = 169_343", "num_nodes = -1"), "key 'num_nodes'"),
        (lambda t: t.replace("num_nodes = 169_343\n", ""), "key 'num_nodes'"),
        (lambda t: t.replace("schema_version = 1", "schema_version = 2"), "'schema_version'"),
        (lambda t: t.replace("=", "", 1), "cannot read the manifest"),
    ],
)
def test_invalid_manifests_are_refused(tmp_path: Path, change, message: str) -> None:
    path = tmp_path / "ogbn_arxiv.toml"
    path.write_text(change((share_dir("datasets") / "ogbn_arxiv.toml").read_text()))
    with pytest.raises(UsageError) as caught:
        load_manifest(path)
    assert message in str(caught.value)
    assert "ogbn_arxiv.toml" in str(caught.value)


def test_installed_wheel_uses_its_own_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "gnnbench"
    monkeypatch.setattr("gnnbench.datasets.paths.__file__", str(package / "data" / "paths.py"))
    (tmp_path / "datasets").mkdir()  # a folder of another package
    with pytest.raises(MissingError, match="install gnnbench again"):
        share_dir("datasets")
    share = tmp_path / "gnnbench_share" / "datasets"
    share.mkdir(parents=True)
    (share / "x.toml").touch()
    assert share_dir("datasets") == share


def test_unknown_twin_setting_is_named() -> None:
    manifest = manifests()["products"].model_copy(update={"twin": {"colour": 1}})
    with pytest.raises(UsageError, match=r"unknown key 'colour' in \[twin\] of products.toml"):
        manifest.twin_recipe()
