import json
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnnbench.analysis.labels import fits, labels, parse_label
from gnnbench.core.cell import Cell
from gnnbench.core.errors import UsageError

PLAIN = {"name": "hop-by-hop", "pick": "floyd", "frontier": "cumulative", "topology": "cpu"}
ROW = {
    "system": "baseline", "dataset": "d", "until": "compute", "model": "gcn", "device": "cpu",
    "pick": "floyd", "frontier": "cumulative", "batch_size": 8, "fanouts": "2/2", "hidden": 4,
    "learning_rate": 0.1, "threads": 2, "seed": 0, "max_batches": 0, "epoch_batches": 9,
    "verified": True, "stand_in_for": "",
}  # fmt: skip


def row(sampler=None, features="host", **values):
    recipe = {"sampler": {**PLAIN, **(sampler or {})}, "features": {"name": features}}
    return {**ROW, "recipe": json.dumps(recipe), **values}


def labels_of(*rows):
    named = labels(rows)
    return [named.of(r) for r in rows]


def test_settings_chosen_by_the_machine_are_always_shown():
    pyg = row({"name": "pyg", "extension": "pyg-lib"}, system="pyg")
    assert labels_of(row(), pyg) == ["baseline", "pyg sampler.extension=pyg-lib"]


def test_default_steps_are_shown_if_other_rows_differ():
    recipe = json.loads(row()["recipe"])
    eager = {**recipe, "schedule": {"name": "serial"}}
    graph = {**recipe, "schedule": {"name": "serial", "step": "graph"}}
    one, other = (row(recipe=json.dumps(r)) for r in (eager, graph))
    assert labels_of(one, other) == ["baseline schedule.step=eager", "baseline schedule.step=graph"]
    assert labels_of(one, one) == ["baseline", "baseline"]


def test_labels_can_name_the_default_kernel_of_a_sampler():
    published = row({"name": "fastsample", "kernel": "algorithm-1"})
    default = row({"name": "fastsample"})
    assert labels_of(published, default) == [
        "baseline sampler.kernel=algorithm-1", "baseline sampler.kernel=vectorized",
    ]  # fmt: skip
    label = "baseline sampler=fastsample sampler.kernel=vectorized"
    cells = [{**r, "env": ""} for r in (published, default, row())]
    assert [fits(cell, label) for cell in cells] == [False, True, False]


def test_equal_rows_are_labelled_with_their_system_only():
    assert labels_of(row(), row(system="dgl")) == ["baseline", "dgl"]


@pytest.mark.parametrize(
    "axis,one,other,words",
    [
        ("dataset", "d", "e", "e"),
        ("until", "compute", "sample", "until sample"),
        ("model", "gcn", "graphsage", "graphsage"),
        ("batch_size", 8, 16, "batch 16"),
        ("fanouts", "2/2", "5/5", "fanouts 5/5"),
        ("hidden", 4, 8, "hidden 8"),
        ("learning_rate", 0.1, 0.2, "learning rate 0.2"),
        ("threads", 2, 1, "1 thread"),
        ("pick", "floyd", "reservoir", "pick reservoir"),
        ("frontier", "cumulative", "new", "frontier new"),
        ("seed", 0, 1, "seed 1"),
        ("max_batches", 0, 3, "at most 3 batches"),
        ("precision", "", "tf32", "tf32"),
        ("precision", "float32", "bfloat16", "bfloat16"),
    ],
)
def test_each_varying_axis_is_in_the_labels(axis, one, other, words):
    first, second = labels_of(row(**{axis: one}), row(**{axis: other}))
    assert (first != second, second) == (True, f"baseline, {words}")


def test_float32_is_named_next_to_another_precision_alone():
    """Tables have no word for it, and older ones no column."""
    plain, narrow, untrained = row(), row(system="dgl", precision="bfloat16"), row(model="")
    assert labels_of(plain, narrow) == ["baseline, float32", "dgl, bfloat16"]
    assert labels_of(plain, narrow, untrained)[2] == "baseline"
    assert labels_of(plain, row(system="dgl")) == ["baseline", "dgl"]
    assert "float32" not in labels([plain, row(precision="float32")]).title()
    assert "bfloat16" in labels([narrow, narrow]).title()
    cells = [{**r, "env": "", "precision": r.get("precision", "")} for r in (plain, narrow)]
    assert [fits(cell, "baseline precision=float32") for cell in cells] == [True, False]
    assert [fits(cell, "dgl precision=bfloat16") for cell in cells] == [False, True]


def test_varying_values_are_in_labels_and_common_ones_in_the_title():
    rows = [row(), row(fanouts="5/5"), row(system="dgl", fanouts="5/5")]
    assert labels_of(*rows) == [
        "baseline, fanouts 2/2", "baseline, fanouts 5/5", "dgl, fanouts 5/5",
    ]  # fmt: skip
    title = "d, until compute, gcn, cpu, batch 8, hidden 4, learning rate 0.1, 2 threads"
    title += ", whole epochs"
    assert labels(rows).title(but=("pick", "frontier", "seed")) == title
    assert labels(rows).varying(rows[0], but=("fanouts",)) == {}


def test_recipe_paths_vary_among_the_rows_of_one_system_and_stage():
    rows = [
        row({"name": "pgsampler", "fetch_size": 3}), row({"name": "pgsampler", "fetch_size": 5}),
        row(), row(system="dgl", features="dgl"),
    ]  # fmt: skip
    assert labels_of(*rows) == [
        "baseline sampler=pgsampler sampler.fetch_size=3",
        "baseline sampler=pgsampler sampler.fetch_size=5", "baseline sampler=hop-by-hop", "dgl",
    ]  # fmt: skip
    one = labels([rows[0], rows[2]])
    assert one.system(rows[0]) == "baseline sampler=pgsampler"


def test_pick_is_shown_once_and_only_if_it_varies_within_a_system():
    picks = [row({"pick": p}, pick=p) for p in ("floyd", "reservoir")]
    assert labels_of(*picks) == ["baseline, pick floyd", "baseline, pick reservoir"]
    assert labels_of(row(), row(system="pyg", pick="pyg", frontier="new")) == ["baseline", "pyg"]


def test_sampling_on_the_own_device_is_no_difference_beyond_the_device():
    cpu, gpu = row(), row({"topology": "gpu"}, device="cuda")
    assert labels_of(cpu, gpu) == ["baseline, cpu", "baseline, cuda"]
    assert labels_of(gpu, row({"topology": "uva"}, device="cuda")) == [
        "baseline sampler.topology=gpu", "baseline sampler.topology=uva",
    ]  # fmt: skip


def test_unverified_system_is_marked():
    assert labels_of(row(verified=False), row(system="x")) == ["baseline (unverified)", "x"]
    cell = asdict(Cell("e", "own", "d", "gcn", composed=False))
    assert labels([cell]).of(cell) == "own (unverified)"
    assert labels_of(row(stand_in_for="pyg")) == ["baseline (for pyg)"]


def test_cells_are_named_before_they_run():
    recipe = {"sampler": PLAIN}
    cells = [asdict(Cell("e", "b", "d", "", "sample", fanouts=f, recipe=recipe, hidden=0))
             for f in ((15, 10), (5, 5))]  # fmt: skip
    named = labels(cells)
    assert [named.of(c) for c in cells] == ["b, fanouts 15/10", "b, fanouts 5/5"]
    assert "all threads" in named.title() and "hidden" not in named.title()
    assert "pick floyd" in named.title()


CELL = asdict(
    Cell("e", "dgl", "d", "gcn", threads=2, recipe={"sampler": {"name": "dgl", "fused": True,
         "pick": "dgl", "frontier": "new"}, "dtype": "float32"})
)  # fmt: skip


@pytest.mark.parametrize(
    "label,right",
    [
        ("dgl", True),
        ("baseline", False),
        ("dgl sampler=dgl", True),
        ("dgl sampler=fused-map", False),
        ("dgl sampler.fused=true", True),
        ("dgl sampler.fused=1", False),
        ("dgl sampler.fused=false", False),
        ("dgl fused=true", False),
        ("dgl threads=2 pick=dgl frontier=new", True),
        ("dgl threads=1", False),
        ("dgl pick=floyd", False),
        ("dgl fanouts=15/10/5 dtype=float32", True),
        ("dgl fanouts=15/10", False),
        ("dgl env=old", False),
    ],
)
def test_labels_of_definitions(label, right):
    assert fits(CELL, label) is right
    assert fits({**CELL, "recipe": json.dumps(CELL["recipe"])}, label) is right


def test_labels_are_parsed():
    assert parse_label("baseline sampler=pgsampler sampler.fetch_size=3 pick=floyd") == (
        "baseline", {"sampler": "pgsampler", "sampler.fetch_size": 3, "sampler.pick": "floyd"},
    )  # fmt: skip
    for wrong in ("", "dgl fused", "dgl =3", "dgl a="):
        with pytest.raises(UsageError):
            parse_label(wrong)


def test_other_environment_is_shown_and_must_be_named():
    there = {**CELL, "env": "old"}
    named = labels([CELL, there])
    assert [named.of(c) for c in (CELL, there)] == ["dgl", "dgl env=old"]
    assert fits(there, "dgl env=old") and fits(there, "dgl env=old sampler.fused=true")
    assert not fits(there, "dgl") and not fits(there, "dgl env=new")


def test_limit_that_cuts_no_epoch_is_not_shown():
    rows = [{**ROW, "max_batches": 6, "epoch_batches": n} for n in (2, 6)]
    assert labels(rows).common["max_batches"] == "whole epochs"
    longer = [*rows, {**ROW, "max_batches": 6, "epoch_batches": 7}]
    assert labels(longer).common["max_batches"] == "at most 6 batches"
    unknown = [{**ROW, "max_batches": 1, "epoch_batches": None}]
    assert labels(unknown).common["max_batches"] == "at most 1 batch"


def test_setting_of_one_row_only_is_shown():
    assert labels_of(row({"fused": True}), row()) == ["baseline sampler.fused=true", "baseline"]


def test_axis_of_one_row_only_is_shown():
    assert labels_of(row(hidden=0), row(hidden=64)) == ["baseline", "baseline, hidden 64"]


SAMPLERS = st.fixed_dictionaries(
    {}, optional={"topology": st.sampled_from(["cpu", "gpu"]), "fused": st.booleans()}
)
VALUES = st.fixed_dictionaries({
    "sampler": SAMPLERS,
    "features": st.sampled_from(["host", "uva"]),
    "system": st.sampled_from(["baseline", "dgl"]),
    "hidden": st.sampled_from([0, 4, 8]),
    "learning_rate": st.sampled_from([0, 0.1]),
    "threads": st.sampled_from([0, 1, 2]),
    "max_batches": st.sampled_from([0, 1, 5]),
    "fanouts": st.sampled_from(["2/2", "5"]),
    "evaluate": st.sampled_from([None, "all", "10"]),
})  # fmt: skip


@settings(deadline=None, max_examples=200)
@given(st.lists(VALUES, min_size=2, max_size=6, unique_by=lambda v: json.dumps(v, sort_keys=True)))
def test_labels_of_distinct_cells_are_distinct(cells):
    rows = {json.dumps(r, sort_keys=True): r for r in (row(**cell) for cell in cells)}
    assert len(set(labels_of(*rows.values()))) == len(rows)
