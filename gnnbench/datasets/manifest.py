"""Manifests: what is known of a dataset, where it comes from, and how its twin is made."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

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
    """One way to get the real dataset; the first whose files are found is used."""

    loader: Literal[
        "npz", "ogb-csv", "ogb-binary", "pyg-reddit", "pyg-coauthor", "pyg-graphsaint",
        "edge-list", "igb", "mag240m",
    ]  # fmt: skip
    # Relative to a raw folder, any of them will do; ``get`` is the exact way to have one.
    paths: list[str]
    get: str
    needs: list[str] = Field(default_factory=list)  # files that make a folder the source
    url: str = ""
    licence: str = ""
    sha256: dict[str, str] = Field(default_factory=dict)  # file name -> digest, where known
    add_reverse: bool = False  # the source lists an undirected edge once
    merge: bool = False  # parallel edges become one
    drop_self_loops: bool = False
    num_edges: int = 0  # what the import must give, 0: as for the dataset
    note: str = ""


class Published(_Strict):
    """Figures as a paper prints them, disagreements included."""

    paper: str
    table: str
    nodes: str
    edges: str
    features: str
    classes: str = ""
    train: str = ""
    note: str = ""


class Measured(_Strict):
    """A fact of the twin at a scale, a value a seed; ``run``: the committed results that have it,
    else ``python -m gnnbench.contrib.twin_facts`` told it."""

    scale: float = Field(gt=0)
    seeds: list[int] = Field(min_length=1)
    values: list[float] = Field(min_length=1)
    run: str = ""

    @property
    def mean(self) -> float:
        """Over seeds."""
        return sum(self.values) / len(self.values)


class Distance(_Strict):
    """A published fact of the real graph, and how far from it the twin is.

    ``fact`` and ``workload`` are those of ``gnnbench.contrib.twin_facts``; shares are from 0 to 1,
    of
    ``unit`` ``nodes`` a number. ``at_most``: a bound is all that is published. ``fitted``: the
    twin's parameters were chosen by it.
    """

    fact: str
    workload: str = "gcn"
    source: str
    published: float
    unit: Literal["share", "nodes"] = "share"
    at_most: bool = False
    fitted: bool = False
    measured: list[Measured] = Field(default_factory=list)
    not_measured: str = ""  # why

    @model_validator(mode="after")
    def _told(self) -> Distance:
        if bool(self.measured) == bool(self.not_measured):
            raise ValueError("a distance is measured, or says in not_measured why it is not")
        if any(len(m.seeds) != len(m.values) for m in self.measured):
            raise ValueError("there is a value for each seed")
        return self

    def away(self, measured: Measured) -> float:
        """Points of a share, percent of a number; 0 within a published bound."""
        off = measured.mean - self.published
        off = max(off, 0.0) if self.at_most else off
        return 100 * (off if self.unit == "share" else off / self.published)


class Manifest(_Strict):
    """A dataset: counts of the real graph, sources, the papers' figures, the twin's recipe.

    ``num_edges`` counts directed edges as stored. ``assumed`` names the fields that nobody
    published and that were chosen here.
    """

    schema_version: Literal[1]
    name: str
    description: str
    licence: str
    homepage: str = ""
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
    twin: dict[str, Any] | None = None  # knobs of gnnbench.datasets.generators.recipe.TwinRecipe

    def twin_recipe(self) -> TwinRecipe:
        """The twin's recipe: the counts above and the knobs of ``[twin]``, which win."""
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
    """Read one manifest. Raises ``UsageError`` naming the file and the key that is wrong."""
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
    found = {}
    for path in sorted(folder.glob("*.toml")):
        manifest = load_manifest(path)
        if manifest.name != path.stem:
            raise UsageError(f"{path} describes '{manifest.name}'; give both the same name")
        found[manifest.name] = manifest
    return found


def manifests() -> dict[str, Manifest]:
    """All shipped manifests by name."""
    return dict(_manifests_in(share_dir("datasets")))
