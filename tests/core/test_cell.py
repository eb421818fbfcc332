"""Cells and what their ids depend on."""

import hashlib
import json
from dataclasses import asdict, replace

import pytest

from gnnbench.core.cell import PHASES, Cell, Until, flat, phases
from gnnbench.core.errors import UnsupportedError
from gnnbench.systems.runtime.find import find

RECIPE = find("baseline").definition.resolved("cpu").plain()
CELL = Cell("first", "baseline", "d", "gcn", recipe=RECIPE)


def test_phases_of_until():
    assert PHASES == ("sample", "memory_io", "compute")
    assert [Until.of(word).word for word in PHASES] == list(PHASES)
    assert phases("sample") == ("sample",) and phases("compute") == PHASES
    assert CELL.trains and not replace(CELL, until="memory_io").trains
    assert replace(CELL, until="sample").goes_until < Until.MEMORY_IO


def test_id_does_not_depend_on_the_experiment():
    assert CELL.id == replace(CELL, experiment="second").id
    assert len(CELL.id) == 12 and int(CELL.id, 16) >= 0


def test_id_does_not_depend_on_the_name_of_a_recipe():
    assert CELL.id == replace(CELL, system="mine").id


def test_id_of_a_custom_system_depends_on_its_name():
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
def test_id_depends_on_all_other_fields(change):
    assert replace(CELL, **change).id != CELL.id


def test_id_does_not_depend_on_the_order_of_keys():
    other = {k: dict(reversed(v.items())) if isinstance(v, dict) else v for k, v in RECIPE.items()}
    assert replace(CELL, recipe=dict(reversed(other.items()))).id == CELL.id


def test_json_round_trip_of_a_cell():
    assert Cell.from_json(asdict(CELL)) == CELL
    assert Cell.from_json({**asdict(CELL), "fanouts": [15, 10, 5]}) == CELL


def test_flat_paths_of_a_recipe():
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
def test_explicit_default_is_the_same_cell(one, given, other, others, until):
    resolved = [find(name).resolved(g, "cpu", until) for name, g in ((one, given), (other, others))]
    assert resolved[0] == resolved[1]
    ids = {
        Cell("e", name, "d", "gcn", until.word, recipe=f.recipe).id
        for name, f in zip((one, other), resolved, strict=True)
    }
    assert len(ids) == 1


def test_id_does_not_depend_on_unreached_stages():
    """Without compute, a baseline with DGL's layers equals the baseline."""
    settings = {"aggregate": "dgl", "features": "dgl"}
    baseline = find("baseline")
    sample, load, train = Until
    assert baseline.resolved(settings, "cpu", sample) == baseline.resolved({}, "cpu", sample)
    only_layers = {"aggregate": "dgl"}
    assert baseline.resolved(only_layers, "cpu", load) == baseline.resolved({}, "cpu", load)
    assert baseline.resolved(only_layers, "cpu", train) != baseline.resolved({}, "cpu", train)
    with pytest.raises(UnsupportedError):
        find("wholegraph").definition.resolved("cuda", train)


def test_id_depends_on_another_environment():
    """Ids of the run's own environment are those of earlier versions."""
    own = Cell("e", "dgl", "d", "gcn", recipe={"sampler": {"name": "dgl"}})
    other_env = replace(own, env="old")
    assert own.id != other_env.id != replace(own, env="new").id
    later = ("experiment", "system", "env", "evaluate", "gpus", "jitter", "dropout",
             "precision")  # fmt: skip
    values = {k: v for k, v in asdict(own).items() if k not in later}
    text = json.dumps(values, sort_keys=True, default=list)
    assert own.id == hashlib.sha256(text.encode()).hexdigest()[:12]
    assert replace(own, evaluate="all").id not in (own.id, replace(own, evaluate="sampled").id)
    assert replace(own, gpus=2).id != own.id
    assert replace(own, dropout=0.5).id not in (own.id, replace(own, dropout=0.2).id)
    assert replace(own, precision="tf32").id not in (own.id, replace(own, precision="bfloat16").id)
    assert replace(own, precision="float32").id == own.id
    assert (own.who, other_env.who) == ("dgl", "dgl env=old")
    assert Cell.from_json(asdict(other_env)) == other_env
