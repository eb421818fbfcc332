"""Manifests: published facts of a dataset, its sources, and the recipe of its synthetic twin."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from gnnbench.core.errors import UsageError
from gnnbench.datasets.generators.recipe import TwinRecipe
from gnnbench.datasets.paths import share_dir

__all__ = [
    "Distance",
    "Manifest",
    "Measured",
    "Published",
    "Source",
    "load_manifest",
    "manifests",
    "share_dir",
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(_Strict):
    """One source of the real dataset; the first whose files are on this machine is used."""

    loader: Literal[
        "npz", "ogb-csv", "ogb-binary", "pyg-reddit", "pyg-coauthor", "pyg-graphsaint",
        "edge-list", "igb", "mag240m",
    ]  # fmt: skip
    # Alternatives, relative to a raw folder; ``get`` is the instruction to obtain one of them.
    paths: list[str]
    get: str
    needs: list[str] = Field(default_factory=list)  # files that a folder must contain
    url: str = ""
    licence: str = ""
    sha256: dict[str, str] = Field(default_factory=dict)  # file name -> digest, where known
    add_reverse: bool = False  # the source lists an undirected edge once
    merge: bool = False  # parallel edges become one
    drop_self_loops: bool = False
    num_edges: int = 0  # expected number of imported edges; 0: the dataset's
    note: str = ""


class Published(_Strict):
    """Figures as printed in a paper, even where papers disagree."""

    paper: str
    table: str
    nodes: str
    edges: str
    features: str
    classes: str = ""
    train: str = ""
    note: str = ""


class Measured(_Strict):
    """Measured values of a twin's fact at a scale, one per seed.

    ``run`` names the committed results with the values; empty: they are from ``python -m
    gnnbench.contrib.twin_facts``.
    """

    scale: float = Field(gt=0)
    seeds: list[int] = Field(min_length=1)
    values: list[float] = Field(min_length=1)
    run: str = ""

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return sum(self.values) / len(self.values)


class Distance(_Strict):
    """A published fact of the real graph, and the twin's distance from it.

    ``fact`` and ``workload`` are those of ``gnnbench.contrib.twin_facts``. ``unit``: ``share`` (0
    to 1) or ``nodes`` (a count). ``at_most``: only an upper bound is published. ``fitted``: the
    twin's parameters were fitted to the fact.
    """

    fact: str
    workload: str = "gcn"
    source: str
    published: float
    unit: Literal["share", "nodes"] = "share"
    at_most: bool = False
    fitted: bool = False
    measured: list[Measured] = Field(default_factory=list)
    not_measured: str = ""  # the reason

    @model_validator(mode="after")
    def _check_values(self) -> Distance:
        if bool(self.measured) == bool(self.not_measured):
            raise ValueError("a distance needs either measured values or a reason in not_measured")
        if any(len(m.seeds) != len(m.values) for m in self.measured):
            raise ValueError("the numbers of seeds and values differ")
        return self

    def deviation(self, measured: Measured) -> float:
        """Percentage points for a share, percent for a count; 0 within a published bound."""
        difference = measured.mean - self.published
        difference = max(difference, 0.0) if self.at_most else difference
        return 100 * (difference if self.unit == "share" else difference / self.published)


class Manifest(_Strict):
    """A dataset: counts of the real graph, sources, the papers' figures, the twin's recipe.

    ``num_edges`` counts directed edges as stored. ``assumed`` names unpublished fields.
    ``variant_of`` names the dataset with the same graph and other features.
    """

    schema_version: Literal[1]
    name: str
    description: str
    licence: str
    homepage: str = ""
    variant_of: str = ""
    num_nodes: int = Field(gt=0)
    num_edges: int = Field(gt=0)
    feature_dim: int = Field(gt=0)
    num_classes: int = Field(gt=0)
    train_size: int = Field(gt=0)
    val_size: int = Field(ge=0)
    test_size: int = Field(ge=0)
    split: str
    symmetric: bool
    assumed: list[str] = Field(default_factory=list)
    aliases: list[str] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    source: list[Source] = Field(default_factory=list)
    published: list[Published] = Field(default_factory=list)
    distance: list[Distance] = Field(default_factory=list)  # of the twin
    twin: dict[str, object] | None = None  # keys of TwinRecipe

    def twin_recipe(self) -> TwinRecipe:
        """The twin's recipe: the counts above, overridden by the keys of ``[twin]``."""
        counts = {
            "num_nodes": self.num_nodes,
            "num_edges": self.num_edges,
            "feature_dim": self.feature_dim,
            "num_classes": self.num_classes,
            "train": self.train_size,
            "val": self.val_size,
            "test": self.test_size,
            "symmetric": self.symmetric,
        }
        try:
            return TwinRecipe.model_validate({**counts, **(self.twin or {})})
        except ValidationError as error:
            raise UsageError(_first_problem(error, f"[twin] of {self.name}.toml")) from None


def load_manifest(path: Path) -> Manifest:
    """Read one manifest. Raises ``UsageError`` with the file and the wrong key."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read the manifest {path} ({error}); correct the file") from None
    try:
        return Manifest.model_validate(values)
    except ValidationError as error:
        raise UsageError(_first_problem(error, str(path))) from None


def _first_problem(error: ValidationError, where: str) -> str:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"unknown key '{key}' in {where}; remove or correct it"
    return f"key '{key}' in {where}: {first['msg']}; correct it"


@lru_cache(maxsize=8)
def _manifests_in(folder: Path) -> dict[str, Manifest]:
    by_name = {}
    for path in sorted(folder.glob("*.toml")):
        manifest = load_manifest(path)
        if manifest.name != path.stem:
            raise UsageError(f"{path} describes '{manifest.name}'; use one name for both")
        by_name[manifest.name] = manifest
    return by_name


def manifests() -> dict[str, Manifest]:
    """All shipped manifests by name."""
    return dict(_manifests_in(share_dir("datasets")))
