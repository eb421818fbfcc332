"""A cell: what its id holds and what it does not."""

import hashlib
import json
from dataclasses import asdict, replace

import pytest

from gnnbench.core.cell import PHASES, Cell, Until, flat, phases
from gnnbench.core.errors import UnsupportedError
from gnnbench.systems.runtime.find import find

RECIPE = find("baseline").definition.resolved("cpu").plain()
CELL = Cell("first", "baseline", "d", "gcn", recipe=RECIPE)


def test_words_and_phases():
    assert PHASES == ("sample", "memory_io", "compute")
    assert [Until.of(word).word for word in PHASES] == list(PHASES)
    assert phases("sample") == ("sample",) and phases("compute") == PHASES
    assert CELL.trains and not replace(CELL, until="memory_io").trains
    assert replace(CELL, until="sample").goes_until < Until.MEMORY_IO


def test_the_id_is_of_the_work_and_not_of_who_asks():
    assert CELL.id == replace(CELL, experiment="second").id
    assert len(CELL.id) == 12 and int(CELL.id, 16) >= 0


def test_equal_recipes_under_two_names_are_one():
    assert CELL.id == replace(CELL, system="mine").id


def test_a_system_with_its_own_loop_is_its_name():
    own = replace(CELL, composed=False, recipe={})
    assert own.id != replace(own, system="mine").id
    assert own.id != replace(CELL, recipe={}).id


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": "e"}, {"model": "graphsage"}, {"until": "sample"}, {"device": "cuda"},
        {"batch_size": 8}, {"fanouts": (15, 10)}, {"fanouts": (5, 10, 15)}, {"hidden": 8},
        {"learning_rate": 0.1}, {"seed": 1}, {"threads": 1}, {"max_batches": 1}, {"replica": 1},
        {"recipe": {**RECIPE, "sampler": {**RECIPE["sampler"], "pick": "reservoir"}}},
        {"recipe": {k: v for k, v in RECIPE.items() if k != "aggregate"}},
    ],
    ids=str,
)  # fmt: skip
def test_everything_else_is_in_the_id(change):
    assert replace(CELL, **change).id != CELL.id


def test_keys_in_any_order_are_one_recipe():
    other = {k: dict(reversed(v.items())) if isinstance(v, dict) else v for k, v in RECIPE.items()}
    assert replace(CELL, recipe=dict(reversed(other.items()))).id == CELL.id


def test_plain_values_and_back():
    assert Cell.from_json(asdict(CELL)) == CELL
    assert Cell.from_json({**asdict(CELL), "fanouts": [15, 10, 5]}) == CELL


def test_paths_of_a_recipe():
    assert flat({"sampler": {"name": "x", "pick": "floyd", "a": 3}, "dtype": "float32"}) == {
        "sampler": "x", "sampler.pick": "floyd", "sampler.a": 3, "dtype": "float32",
    }  # fmt: skip
    assert flat(RECIPE)["sampler.pick"] == "floyd" and flat(RECIPE)["features"] == "host"
    assert flat({}) == {}
    table = {"name": "cache", "ratio": 0.1, "table": {"name": "uva", "access": "naive"}}
    assert flat({"features": {"name": "match", "table": table}}) == {
        "features": "match", "features.table": "cache", "features.table.ratio": 0.1,
        "features.table.table": "uva", "features.table.table.access": "naive",
    }  # fmt: skip


SAME = [
    ("baseline", {}, "baseline", {"sampler": "hop-by-hop", "sampler.pick": "floyd"}),
    ("baseline", {}, "baseline", {"sampler.topology": "cpu", "sampler.frontier": "cumulative"}),
    ("dgl", {}, "dgl", {"sampler.fused": True, "sampler.id_type": "int64", "dtype": "float32"}),
    ("fastsample", {}, "baseline", {"sampler": "fastsample"}),
    (
        "pgsampler", {"sampler.fetch_size": 5},
        "baseline", {"sampler": "pgsampler", "sampler.pick": "reservoir", "sampler.hubs": "whole"},
    ),
    (
        "baseline", {"sampler": "dgl", "features": "dgl", "aggregate": "dgl"},
        "dgl", {"features": "dgl"},
    ),
]  # fmt: skip


@pytest.mark.parametrize("until", list(Until))
@pytest.mark.parametrize(("one", "given", "other", "others"), SAME)
def test_a_default_that_is_given_is_the_same_cell(one, given, other, others, until):
    found = [find(name).resolved(g, "cpu", until) for name, g in ((one, given), (other, others))]
    assert found[0] == found[1]
    ids = {
        Cell("e", name, "d", "gcn", until.word, recipe=f.recipe).id
        for name, f in zip((one, other), found, strict=True)
    }
    assert len(ids) == 1


def test_stages_that_an_epoch_does_not_reach_do_not_tell_cells_apart():
    """DGL's layers around our sampler are our sampler where nothing is computed."""
    given = {"aggregate": "dgl", "features": "dgl"}
    baseline = find("baseline")
    sample, load, train = Until
    assert baseline.resolved(given, "cpu", sample) == baseline.resolved({}, "cpu", sample)
    only_layers = {"aggregate": "dgl"}
    assert baseline.resolved(only_layers, "cpu", load) == baseline.resolved({}, "cpu", load)
    assert baseline.resolved(only_layers, "cpu", train) != baseline.resolved({}, "cpu", train)
    with pytest.raises(UnsupportedError):
        find("wholegraph").definition.resolved("cuda", train)


def test_another_environment_is_another_cell_and_the_run_s_own_is_as_ever():
    """Ids of runs from before there were environments stand."""
    here = Cell("e", "dgl", "d", "gcn", recipe={"sampler": {"name": "dgl"}})
    there = replace(here, env="old")
    assert here.id != there.id != replace(here, env="new").id
    later = ("experiment", "system", "env", "evaluate", "gpus", "jitter")
    values = {k: v for k, v in asdict(here).items() if k not in later}
    text = json.dumps(values, sort_keys=True, default=list)
    assert here.id == hashlib.sha256(text.encode()).hexdigest()[:12]
    assert replace(here, evaluate="all").id not in (here.id, replace(here, evaluate="sampled").id)
    assert replace(here, gpus=2).id != here.id
    assert (here.who, there.who) == ("dgl", "dgl env=old")
    assert Cell.from_json(asdict(there)) == there
