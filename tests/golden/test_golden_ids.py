"""Ids of cells stay what they were, whatever is renamed or added."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import replace
from typing import ClassVar

import golden_ids
import pytest
from golden_files import read_json, read_lines

from gnnbench.core import cell as cells
from gnnbench.core import registry
from gnnbench.core.cell import ADDED, SPELLED, Cell, flat, implementations
from gnnbench.core.errors import UsageError
from gnnbench.core.stage import Spec, option
from gnnbench.features.spec import Cache, Host
from gnnbench.pipelines.find import stage
from gnnbench.pipelines.order import OrderSpec
from gnnbench.systems.runtime.find import find
from gnnbench.systems.runtime.recipe import Recipe, from_plain

RECIPE = find("baseline").definition.resolved("cpu").plain()
CELL = Cell("e", "baseline", "d", "gcn", recipe=RECIPE)


@pytest.fixture(scope="module")
def current() -> golden_ids.Ids:
    return golden_ids.current()


def test_every_shipped_definition_has_the_cells_it_had(current: golden_ids.Ids) -> None:
    golden = read_json(golden_ids.ARCHIVE)
    changed = [name for name, ids in golden["cells"].items() if current.cells.get(name) != ids]
    assert not changed, f"other cells in: {', '.join(changed)}"
    assert current.cells.keys() == golden["cells"].keys()
    assert current.texts == golden["texts"]
    assert current.digests() == read_lines(golden_ids.DIGESTS)


def test_golden_ids_are_the_hashes_of_their_texts() -> None:
    golden = read_json(golden_ids.ARCHIVE)
    for ident, text in golden["texts"].items():
        assert hashlib.sha256(text.encode()).hexdigest()[:12] == ident


def test_ids_spell_every_field_of_a_cell_and_a_new_one_is_marked() -> None:
    names = {f.name for f in dataclasses.fields(Cell)} - {"experiment"}
    assert names == SPELLED.keys()
    first = {
        "system", "dataset", "model", "until", "device", "batch_size", "fanouts", "hidden",
        "learning_rate", "seed", "threads", "max_batches", "recipe", "composed", "replica",
    }  # fmt: skip
    added = {f.name for f in dataclasses.fields(Cell) if ADDED.items() <= f.metadata.items()}
    assert names - added == first, "mark a new field of Cell with metadata=ADDED"


def test_a_field_of_a_cell_at_its_default_is_left_out_where_it_was_added() -> None:
    known = json.loads(CELL.hashed_text)
    assert not {"env", "evaluate", "gpus", "jitter", "experiment", "system"} & known.keys()
    for change in ({"env": "old"}, {"evaluate": "all"}, {"gpus": 2}, {"precision": "tf32"}):
        assert json.loads(replace(CELL, **change).hashed_text) == {**known, **change}


@pytest.mark.parametrize(
    ("renamed", "new"),
    [
        ({"sampler.choice": "pick"}, {"sampler": {"pick": None, "choice": "floyd"}}),
        ({"sampler.pick=exact": "floyd"}, {"sampler": {"pick": "exact"}}),
        ({"sampler=by-hop": "hop-by-hop"}, {"sampler": {"name": "by-hop"}}),
        ({"order=default": "as-drawn"}, {"order": {"name": "default"}}),
        ({"store": "features"}, {"features": None, "store": RECIPE["features"]}),
    ],
)
def test_what_is_renamed_keeps_its_id_by_its_old_spelling(renamed, new, monkeypatch) -> None:
    recipe = {**RECIPE}
    for kind, change in new.items():
        recipe[kind] = change and {**recipe.get(kind, {}), **change}
        recipe[kind] = change and {k: v for k, v in recipe[kind].items() if v is not None}
    recipe = {k: v for k, v in recipe.items() if v is not None}
    other = replace(CELL, recipe=recipe)
    before = CELL.id
    assert other.id != before
    monkeypatch.setattr(cells, "RENAMED", renamed)
    assert replace(CELL, recipe=recipe).id == before


def test_a_renamed_field_of_a_cell_keeps_its_id_by_its_spelling(monkeypatch) -> None:
    @dataclasses.dataclass(frozen=True)
    class Renamed:
        """A cell of which ``fanouts`` and ``env`` have other names, with a new field."""

        id = Cell.id
        hashed_text = Cell.hashed_text
        experiment: str = "e"
        system: str = "baseline"
        dataset: str = "d"
        model: str = "gcn"
        until: str = "compute"
        device: str = "cpu"
        batch_size: int = 1024
        neighbours: tuple[int, ...] = (15, 10, 5)
        hidden: int = 64
        learning_rate: float = 0.003
        seed: int = 0
        threads: int = 0
        max_batches: int = 0
        recipe: dict = dataclasses.field(default_factory=lambda: RECIPE)
        composed: bool = True
        replica: int = 0
        python: str = dataclasses.field(default="", metadata=ADDED)
        newer: int = dataclasses.field(default=7, metadata=ADDED)

    spelled = {**SPELLED, "neighbours": "fanouts", "python": "env", "newer": "newer"}
    monkeypatch.setattr(cells, "SPELLED", spelled)
    assert json.loads(Renamed.hashed_text.fget(Renamed())) == json.loads(CELL.hashed_text)
    there = replace(CELL, env="old", fanouts=(5,))
    other = Renamed(python="old", neighbours=(5,))
    assert Renamed.hashed_text.fget(other) == there.hashed_text
    assert Renamed.hashed_text.fget(Renamed(newer=8)) != CELL.hashed_text


def test_a_value_of_a_nested_stage_is_renamed_as_its_kind_s(monkeypatch) -> None:
    table = {"name": "cache", "ratio": 0.1, "table": {"name": "host"}}
    one = replace(CELL, recipe={**RECIPE, "features": {"name": "match", "table": table}})
    table = {"name": "cached", "share": 0.1, "table": {"name": "host"}}
    two = replace(CELL, recipe={**RECIPE, "features": {"name": "match", "table": table}})
    monkeypatch.setattr(cells, "RENAMED", {"features=cached": "cache", "features.share": "ratio"})
    assert one.hashed_text == two.hashed_text


class _Order(OrderSpec):
    """A stage with a field that ids knew from the first on and one that was added later."""

    name: ClassVar[str] = "planted"

    def build(self, job):
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class First(_Order):
    width: int = option(4, "first")


@dataclasses.dataclass(frozen=True)
class Later(First):
    depth: int = option(2, "added", added=True)


@dataclasses.dataclass(frozen=True)
class Second(First):
    implementation: ClassVar[int] = 2


def test_a_stage_s_new_field_is_left_out_at_its_default() -> None:
    assert First().plain() == Later().plain() == {"name": "planted", "width": 4}
    assert Later(depth=3).plain() == {"name": "planted", "width": 4, "depth": 3}
    assert First(width=4).plain()["width"] == 4


def _id(spec: Spec) -> str:
    recipe: Recipe = replace(find("baseline").definition, **{spec.kind: spec})
    return replace(CELL, recipe=recipe.plain()).id


def test_another_implementation_is_another_cell_and_the_first_is_as_ever() -> None:
    assert Second().plain() == {**First().plain(), "implementation": 2}
    assert _id(First()) != _id(Second())
    assert all(
        stage(k, n).implementation >= 1 for k in registry.KINDS[1:] for n in registry.OURS[k]
    )


def test_the_implementation_of_a_nested_stage_counts_as_well(monkeypatch) -> None:
    before = Cache(ratio=0.1, table=Host()).plain()
    monkeypatch.setattr(Host, "implementation", 3)
    spec = Cache(ratio=0.1, table=Host())
    assert spec.plain() == {**before, "table": {"name": "host", "implementation": 3}}
    assert implementations({"features": spec.plain()}) == {"features.table": 3}
    assert Cache(**cells.settings(spec.plain())) == spec
    assert flat({"features": spec.plain()}) == flat({"features": before})
    recipe = {**RECIPE, "features": spec.plain()}
    assert from_plain("baseline", recipe).features == spec
    monkeypatch.setattr(Host, "implementation", 4)
    with pytest.raises(UsageError, match=r"implementation 3 .* has 4"):
        from_plain("baseline", recipe)


@pytest.mark.parametrize("number", [0, -1, "2", 1.5, True])
def test_an_implementation_is_a_whole_number_from_1(number) -> None:
    with pytest.raises(TypeError, match="implementation"):
        type("Wrong", (First,), {"implementation": number})
