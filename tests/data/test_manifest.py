"""The shipped manifests, and what a wrong one says."""

from __future__ import annotations

from pathlib import Path

import pytest

from gnnbench.data.manifest import load_manifest, manifests, share_dir
from gnnbench.data.prepare import LOADERS
from gnnbench.errors import MissingError, UsageError

SHIPPED = sorted(share_dir("datasets").glob("*.toml"))


def test_all_five_are_there() -> None:
    assert set(manifests()) >= {
        "coauthor_physics",
        "ogbn_arxiv",
        "papers100m",
        "products",
        "reddit",
    }


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_shipped(path: Path) -> None:
    manifest = load_manifest(path)
    assert manifest.name == path.stem
    assert manifest.train_size + manifest.val_size + manifest.test_size <= manifest.num_nodes
    assert manifest.published
    assert manifest.source
    assert {source.loader for source in manifest.source} <= set(LOADERS)
    for field in manifest.assumed:
        assert field in type(manifest).model_fields
    if manifest.symmetric:
        assert manifest.num_edges % 2 == 0
    recipe = manifest.twin_recipe()
    assert (recipe.num_nodes, recipe.num_edges) == (manifest.num_nodes, manifest.num_edges)
    assert recipe.symmetric == manifest.symmetric


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
@pytest.mark.parametrize("scale", [0.05, 0.01, 0.001, 0.37])
def test_twins_at_scales(path: Path, scale: float) -> None:
    recipe = load_manifest(path).twin_recipe()
    if scale * recipe.num_nodes * recipe.num_nodes > 4 * recipe.num_edges:
        scaled = recipe.scaled(scale)
        assert scaled.num_nodes == round(recipe.num_nodes * scale)
        assert 0 < scaled.train < scaled.num_nodes


@pytest.mark.parametrize(
    ("change", "says"),
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
def test_wrong_manifests(tmp_path: Path, change, says: str) -> None:
    path = tmp_path / "ogbn_arxiv.toml"
    path.write_text(change((share_dir("datasets") / "ogbn_arxiv.toml").read_text()))
    with pytest.raises(UsageError) as caught:
        load_manifest(path)
    assert says in str(caught.value)
    assert "ogbn_arxiv.toml" in str(caught.value)


def test_an_installed_wheel_has_its_own_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "gnnbench"
    monkeypatch.setattr("gnnbench.data.paths.__file__", str(package / "data" / "paths.py"))
    (tmp_path / "datasets").mkdir()  # somebody else's package beside ours
    with pytest.raises(MissingError, match="install gnnbench again"):
        share_dir("datasets")
    share = package / "_share" / "datasets"
    share.mkdir(parents=True)
    (share / "x.toml").touch()
    assert share_dir("datasets") == share


def test_a_wrong_knob_of_a_twin_is_named() -> None:
    manifest = manifests()["products"].model_copy(update={"twin": {"colour": 1}})
    with pytest.raises(UsageError, match=r"unknown key 'colour' in \[twin\] of products.toml"):
        manifest.twin_recipe()
