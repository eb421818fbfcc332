import textwrap

import pytest
from definitions import SMALL, Made, load, resolve, write
from hypothesis import given, settings
from hypothesis import strategies as st

from gnnbench.config import experiment as ex
from gnnbench.config.grid import expand
from gnnbench.config.overrides import Overrides, as_definition
from gnnbench.core.errors import UsageError
from gnnbench.core.toml_value import parse_value
from gnnbench.datasets import names as datasets


def nothing_known(system, given):
    return ()


def test_grid_is_the_product_and_ids_are_stable(tmp_path):
    found = load(tmp_path, SMALL + "batch_size = [8, 16]\nfanouts = [[15, 10], [5]]\n")
    cells = expand(found, resolve).cells
    assert len(cells) == len({c.id for c in cells}) == 8
    assert [c.system for c in cells[:2]] == ["a", "b"]
    assert {(c.batch_size, c.fanouts) for c in cells} == {
        (8, (15, 10)), (8, (5,)), (16, (15, 10)), (16, (5,)),
    }  # fmt: skip
    assert [c.id for c in cells] == [c.id for c in expand(found, resolve).cells]
    assert cells[0].experiment == "mine"


def test_zipped_axes_move_together(tmp_path):
    found = load(tmp_path, SMALL + "[zip]\nbatch_size = [8, 16]\nfanouts = [[15, 10], [5]]\n")
    cells = expand(found, resolve).cells
    assert {(c.batch_size, c.fanouts) for c in cells} == {(8, (15, 10)), (16, (5,))}
    assert len(cells) == 4


def test_constraints(tmp_path):
    text = SMALL + "batch_size = [8, 16, 32]\n"
    rule = "[[constraints]]\nexclude = { system = 'a', batch_size = [8, 16] }\n"
    cells = expand(load(tmp_path, text + rule), resolve).cells
    assert {(c.system, c.batch_size) for c in cells} == {("a", 32), ("b", 8), ("b", 16), ("b", 32)}
    rules = rule + "[[constraints]]\ninclude = { batch_size = 8 }\n"
    cells = expand(load(tmp_path, text + rules), resolve).cells
    assert {(c.system, c.batch_size) for c in cells} == {("b", 8)}


def test_path_axes_vary_one_system(tmp_path):
    text = SMALL.replace('model = ["m"]', 'model = ["m"]\n"b.sampler.ratio" = [0.1, 0.2]')
    text += "[systems.b]\nsampler = { name = 's', fused = true }\n"
    grid = expand(load(tmp_path, text), resolve)
    assert [c.recipe for c in grid.cells] == [
        {"name": "a"},
        {"name": "b", "sampler": "s", "sampler.fused": True, "sampler.ratio": 0.1},
        {"name": "b", "sampler": "s", "sampler.fused": True, "sampler.ratio": 0.2},
    ]


def test_nested_tables_and_dotted_keys_are_the_same(tmp_path):
    dotted = SMALL + "[systems.a]\nsampler = 's'\n'sampler.x' = 3\n"
    nested = SMALL + "[systems.a.sampler]\nname = 's'\nx = 3\n"
    plain = SMALL + "b.sampler = ['s', 't']\n"
    quoted = SMALL + "'b.sampler' = ['s', 't']\n"
    assert load(tmp_path, dotted) == load(tmp_path, nested)
    assert load(tmp_path, plain) == load(tmp_path, quoted)
    assert load(tmp_path, plain).paths() == ["b.sampler"]


def test_pick_and_frontier_set_all_samplers_unless_default(tmp_path):
    text = SMALL + "pick = ['default', 'floyd']\nfrontier = ['new']\n"
    cells = expand(load(tmp_path, text), resolve).cells
    new = {"sampler.frontier": "new"}
    assert [c.recipe for c in cells] == [
        {"name": "a", **new}, {"name": "b", **new},
        {"name": "a", "sampler.pick": "floyd", **new},
        {"name": "b", "sampler.pick": "floyd", **new},
    ]  # fmt: skip


def test_equal_recipes_are_one_cell_under_all_names(tmp_path):
    same = lambda system, settings, device, until: Made({"sampler": {"name": "s"}})  # noqa: E731
    grid = expand(load(tmp_path, SMALL), same)
    (cell,) = grid.cells
    assert grid.names == {cell.id: ["a", "b"]}


def test_without_compute_there_is_no_model(tmp_path):
    text = SMALL.replace('model = ["m"]', 'until = ["sample", "memory_io"]\nhidden = [8, 16]')
    cells = expand(load(tmp_path, text), resolve).cells
    assert [(c.system, c.until, c.model, c.hidden) for c in cells] == [
        ("a", "sample", "", 0), ("b", "sample", "", 0),
        ("a", "memory_io", "", 0), ("b", "memory_io", "", 0),
    ]  # fmt: skip
    with pytest.raises(UsageError, match="no value for the axis 'model'"):
        expand(load(tmp_path, SMALL.replace('model = ["m"]', "")), resolve)


def test_profiles_override_and_move_axes_out_of_zip(tmp_path):
    text = (
        SMALL
        + """
    [zip]
    hidden = [1, 2]
    seed = [3, 4]
    [profiles.small]
    axes.hidden = [8]
    measure = { max_batches = 4 }
    """
    )
    found = load(tmp_path, textwrap.dedent(text), "small")
    assert found.zip == {"seed": [3, 4]}
    assert found.axis("hidden") == [8]
    assert found.measure.max_batches == 4
    assert found.profiles == {}
    words = "unknown profile 'smal'; did you mean 'small'. 'mine' has small$"
    with pytest.raises(UsageError, match=words):
        load(tmp_path, textwrap.dedent(text), "smal")


@pytest.mark.parametrize(
    "text,message",
    [
        ("", "schema_version"),
        ("schema_version = 3\n[axes]\n", "schema_version"),
        ("schema_version = 1\n[axes]\n", "is of schema_version 1: name whose"),
        ("schema_version = 2\naxis = 3\n", "unknown key 'axis'; did you mean 'axes'"),
        ("name = '../up'" + SMALL, "made of up to 100 letters a to z"),
        (SMALL + "batchsize = [3]\n", "unknown axis 'batchsize'; did you mean 'batch_size'"),
        (SMALL + "batch_size = [0]\n", "'batch_size' cannot be 0; it is a whole number above 0"),
        (SMALL + "batch_size = ['many']\n", "'batch_size' cannot be 'many'; it is a whole number"),
        (SMALL + "batch_size = ['8']\n", "'batch_size' cannot be '8'; it is a whole number"),
        (SMALL + "fanouts = [15, 10]\n", "'fanouts' cannot be 15; it is a list of lists, each"),
        (SMALL + "fanouts = '15/10'\n", "axes.fanouts cannot be '15/10'; it is a list of lists"),
        (SMALL + "fanouts = [['a', 5]]\n", "'fanouts' cannot be ['a', 5]; it is a list of lists"),
        (SMALL + "fanouts = [[15, 0]]\n", "axis 'fanouts' cannot be [15, 0]; it is a list of"),
        (SMALL + "fanouts = [[-2]]\n", "axis 'fanouts' cannot be [-2]"),
        (SMALL + "device = ['tpu']\n", "'device' cannot be 'tpu'; it is cpu, cuda or auto"),
        (SMALL + "seed = 3\n", "axes.seed cannot be 3; it is a list of values: seed = [3]"),
        (SMALL + "[measure]\nround = 3\n", "unknown key 'measure.round'; did you mean 'rounds'"),
        (SMALL + "[measure]\nmin_rounds = 3\n", "'measure.min_rounds' is gone: 'pairs'"),
        (SMALL + "[measure]\npairs = [10, 5]\n", "pairs must ascend"),
        (SMALL + "[measure]\npairs = 0\n", "measure.pairs cannot be 0; it is a list: whole number"),
        (SMALL + "[measure]\npairs = 'x'\n", "measure.pairs cannot be 'x'; it is a list"),
        (SMALL + "[measure]\nmargin = 2.0\n", "measure.margin cannot be 2.0; it is a number"),
        (SMALL + "[measure]\nsame = 1.0\n", "measure.same cannot be 1.0; it is a number above 0"),
        (SMALL + "[measure]\nrounds = 3\n", "rounds must be even"),
        (SMALL + "[zip]\nhidden = [1, 2]\nseed = [1]\n", "different lengths"),
        (SMALL + "[zip]\nmodel = ['x']\n", "both in"),
        (SMALL + "[sweeps.x]\nhidden = [1, 2]\nseed = [1]\n", "[sweeps.x] is to have one axis"),
        (SMALL + "[sweeps.x]\nhidden = []\n", "with lists of one length"),
        (SMALL + "[sweeps.x]\n", "[sweeps.x] is to have one axis or more"),
        (SMALL + "[sweeps.x]\nhiden = [1]\n", "unknown axis 'hiden'; did you mean 'hidden'"),
        (SMALL.replace('dataset = ["d"]', "") + "[sweeps.x]\ndataset = ['d']\n", "no value for"),
        (SMALL + "[[constraints]]\nexcept = { model = 'm' }\n", "unknown key 'constraints.0.except'"),  # noqa: E501
        (SMALL + "[[constraints]]\nexclude = { modle = 'm' }\n", "unknown axis 'modle'"),
        (SMALL + "[profiles.p]\naxes.modle = ['m']\n", "unknown axis 'modle'"),
        ("schema_version = 2\nextends = 'mine.toml'\n", "extends itself"),
        ("schema_version = 2\nextends = 'brakdown'\n", "did you mean 'breakdown'"),
        ("schema_version = 2\n[axes\n", "not TOML"),
        ("schema_version = 2\n[axes]\nsystem = ['a']\n", "no value for the axis 'dataset'"),
        ("figures = 3\n" + SMALL, "figures cannot be 3; it is a list"),
        ("title = 3\n" + SMALL, "title cannot be 3; it is a text"),
        (SMALL + "[accuracy]\nd = 2.0\n", "accuracy.d cannot be 2.0; it is below 1"),
    ],
)  # fmt: skip
def test_mistakes_are_named(tmp_path, text, message):
    with pytest.raises(UsageError, match=message.replace("[", r"\[")) as caught:
        load(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_unknown_names_and_absent_files():
    with pytest.raises(UsageError, match="unknown experiment 'brekdown'; did you mean 'breakdown'"):
        ex.load("brekdown")
    with pytest.raises(UsageError, match="there is no definition"):
        ex.load("nowhere/x.toml")


def nested(system, settings, device, until):
    """A recipe whose sampler is a stage with a pick, as real ones have it."""
    return Made({**settings, "name": system, "sampler": {"pick": settings.get("sampler.pick", "")}})


@pytest.mark.parametrize("name", sorted(ex.shipped()))
def test_shipped_definitions_resolve_and_read_back(tmp_path, name):
    loaded = ex.load(name)
    for profile in loaded.profiles:
        found = ex.resolve(loaded, profile)
        assert expand(found, nested).cells
        again = ex.resolve(ex.load(write(tmp_path, found.to_toml(), f"{profile}.toml")))
        assert again == found
        assert again.hash == found.hash


@settings(max_examples=30)
@given(
    st.lists(st.integers(1, 9999), min_size=1, unique=True),
    st.lists(st.lists(st.integers(1, 50), min_size=1, max_size=4), min_size=1, max_size=3),
    st.floats(0.001, 100),
)
def test_written_back_it_is_the_same_value(tmp_path_factory, batches, fanouts, budget):
    over = {
        "axes": {"batch_size": batches, "fanouts": fanouts, "dataset": ["d~twin@0.1"]},
        "measure": {"time_budget_s": budget},
    }
    found = ex.resolve(ex.load("breakdown"), "", over)
    folder = tmp_path_factory.mktemp("definition")
    again = ex.resolve(ex.load(write(folder, found.to_toml())))
    assert again == found
    assert again.hash == found.hash


def test_hash_changes_with_any_value():
    loaded = ex.load("breakdown")
    hashes = {
        ex.resolve(loaded, "", over).hash
        for over in ({}, {"axes": {"seed": [1]}}, {"measure": {"rounds": 10}},
                     {"systems": {"dgl": {"sampler.fused": True}}}, {"reference": "dgl"})
    }  # fmt: skip
    assert len(hashes) == 5


def knows(system, given):
    paths = {"a": ("sampler", "fused", "id_type"), "b": ("fused",)}.get(system, ())
    return (*paths, "sampler.x") if given.get("sampler") == "s" else paths


@pytest.mark.parametrize(
    "option,expected",
    [
        ("batch_size=512", {"axes": {"batch_size": [512]}}),
        ("batch_size=[512, 1024]", {"axes": {"batch_size": [512, 1024]}}),
        ("fanouts=[10, 5]", {"axes": {"fanouts": [[10, 5]]}}),
        ("fanouts=10/5", {"axes": {"fanouts": [[10, 5]]}}),
        ("fanouts=[]", {"axes": {"fanouts": [[]]}}),
        ("fanouts=15,10,5", {"axes": {"fanouts": [[15, 10, 5]]}}),
        ("fanouts=7", {"axes": {"fanouts": [[7]]}}),
        ("fanouts=-1", {"axes": {"fanouts": [[-1]]}}),
        ("fanouts=10/-1", {"axes": {"fanouts": [[10, -1]]}}),
        ("fanouts=[[10, 5], [3]]", {"axes": {"fanouts": [[10, 5], [3]]}}),
        ("rounds=2", {"measure": {"rounds": 2}}),
        ("pairs=[5,20]", {"measure": {"pairs": [5, 20]}}),
        ("measure.time_budget_s=2.5", {"measure": {"time_budget_s": 2.5}}),
        ("reference=b", {"reference": "b"}),
        ("a.fused=false", {"systems": {"a": {"fused": False}}}),
        ("a.fused=[true, false]", {"axes": {"a.fused": [True, False]}}),
        ("a.sampler=[s-1,s-2]", {"axes": {"a.sampler": ["s-1", "s-2"]}}),
    ],
)
def test_options_of_the_command_line(tmp_path, option, expected):
    loaded = ex.load(write(tmp_path, SMALL))
    found = as_definition(Overrides(options=(option,)), loaded, knows)
    assert found == {"axes": {}, **expected}
    ex.resolve(loaded, "", found)


@pytest.mark.parametrize(
    "option,seen",
    [
        ("a.id_type=int64", ["int64"]),
        ('a.id_type=["x", "y"]', ["x", "y"]),
    ],
)
@pytest.mark.parametrize("place", ["axes", "zip", "profile"])
def test_an_option_that_varies_is_replaced(tmp_path, option, seen, place):
    text, line = SMALL, '"a.id_type" = ["int32", "int16"]'
    if place == "axes":
        text = SMALL.replace('model = ["m"]', f'model = ["m"]\n{line}')
    elif place == "zip":
        text += f"[zip]\n{line}\n"
    else:
        text += f"[profiles.p]\naxes.{line}\n"
    profile = "p" if place == "profile" else ""
    loaded = ex.load(write(tmp_path, text))
    over = as_definition(Overrides(profile=profile, options=(option,)), loaded, knows)
    cells = expand(ex.resolve(loaded, profile, over), resolve).cells
    assert list(dict.fromkeys(c.recipe["id_type"] for c in cells if c.system == "a")) == seen


def test_a_field_of_a_stage_that_is_set_or_varies_is_known(tmp_path):
    loaded = ex.load(write(tmp_path, SMALL))
    for options in (("a.sampler.x=1", "a.sampler=s"), ('a.sampler=["r", "s"]', "a.sampler.x=1")):
        over = as_definition(Overrides(options=options), loaded, knows)
        assert over["systems"]["a"]["sampler.x"] == 1
    with pytest.raises(UsageError, match=r"'a' has no setting 'sampler\.x'"):
        as_definition(Overrides(options=("a.sampler.x=1",)), loaded, knows)


def test_without_a_system_s_name_only_one_may_be_selected(tmp_path):
    loaded = ex.load(write(tmp_path, SMALL))
    with pytest.raises(UsageError, match=r"is a setting of a, b; say whose: a.fused=..."):
        as_definition(Overrides(options=("fused=true",)), loaded, knows)
    found = as_definition(Overrides(systems=("b",), options=("fused=true",)), loaded, knows)
    assert found["systems"] == {"b": {"fused": True}}


@pytest.mark.parametrize(
    "option,message",
    [
        ("fanout=3", "unknown option 'fanout'; did you mean 'fanouts'"),
        ("a.fussed=1", "system 'a' has no setting 'fussed'; did you mean 'fused'"),
        ("fused", "not of the form key=value"),
        ("pairs=abc", "measure.pairs cannot be 'abc'; it is a list: whole number above 0"),
        ("fanouts=abc", r"cannot be 'abc'; it is .* -o 'fanouts=\[\[10,5\],\[15,10,5\]\]'"),
        ("fanouts=[[10,5],15]", "'fanouts' cannot be 15; it is a list of lists"),
        ("fanouts=10.5", "'fanouts' cannot be 10.5; it is a list of lists"),
        ("batch_size=abc", "'batch_size' cannot be 'abc'; it is a whole number above 0"),
    ],
)
def test_mistaken_options_are_named(tmp_path, option, message):
    loaded = ex.load(write(tmp_path, SMALL))
    with pytest.raises(UsageError, match=message):
        ex.resolve(loaded, over=as_definition(Overrides(options=(option,)), loaded, knows))


@pytest.mark.parametrize(
    "options,over,words",
    [
        (("batch_size=8", "batch_size=16"), {}, "give one, or a list .*'batch_size=[..., 16]'"),
        (("batch_size=8", "batch_size=8"), {}, "'batch_size' is given twice"),
        (("axes.seed=1", "seed=2"), {}, "by '-o seed=2' and '-o axes.seed=1'"),
        (("a.fused=true", "a.fused=[false]"), {}, "'a.fused' is given twice"),
        (("reference=a", "reference=b"), {}, "'-o reference=b'; give one$"),
        (("device=cpu",), {"device": "cuda"}, "by '--device' and '-o device=cpu'"),
        (("pairs=5",), {"repeats": 3}, "by '--repeats' and '-o pairs=5'; give one$"),
    ],
)  # fmt: skip
def test_a_key_that_is_given_twice_is_refused(tmp_path, options, over, words):
    loaded = ex.load(write(tmp_path, SMALL))
    with pytest.raises(UsageError, match=words.replace("[", r"\[")):
        as_definition(Overrides(options=options, **over), loaded, knows)


def test_more_threads_than_there_are_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("gnnbench.measure.machine.usable_cores", lambda: 2)
    loaded = ex.load(write(tmp_path, SMALL))
    with pytest.raises(UsageError, match=r"threads=99 is more than the 2 cores .* give 2 or fewer"):
        as_definition(Overrides(options=("threads=[1,99]",)), loaded, knows)
    found = as_definition(Overrides(options=("threads=[0,2]",)), loaded, knows)
    assert found["axes"]["threads"] == [0, 2]


def test_overrides_replace_axes(tmp_path):
    loaded = ex.load(write(tmp_path, SMALL + "[profiles.p]\naxes.dataset = ['x']\n"))
    over = Overrides(
        profile="p", systems=("c",), datasets=("y", "z"), models=("n",), device="cpu", pick="floyd",
        seed=7, repeats=4,
    )  # fmt: skip
    found = ex.resolve(loaded, "p", as_definition(over, loaded, nothing_known))
    assert found.axis("system") == ["c"]
    assert found.axis("dataset") == ["y", "z"]
    assert (found.axis("pick"), found.axis("seed")) == (["floyd"], [7])
    assert found.measure.pairs == [4]
    one = as_definition(Overrides(options=("pairs=7",)), loaded, nothing_known)
    assert ex.resolve(loaded, "p", one).measure.pairs == [7]  # one look


def test_values_are_toml_or_text():
    assert parse_value("true") is True
    assert parse_value("[1, 2]") == [1, 2]
    assert parse_value("1.5") == 1.5
    assert parse_value("products~twin@0.02") == "products~twin@0.02"
    assert parse_value("[fused-map, fastsample,]") == ["fused-map", "fastsample"]
    assert parse_value("[[10, 5], [a-b, 3]]") == [[10, 5], ["a-b", 3]]
    assert parse_value("[]") == []


@pytest.mark.parametrize(
    ("gpus", "missing", "device"), [(1, False, "cuda"), (1, True, "cpu"), (0, True, "cpu")]
)
def test_auto_is_a_gpu_only_where_all_it_takes_is_there(monkeypatch, gpus, missing, device):
    from gnnbench.core.missing import Missing
    from gnnbench.kernels import missing as native
    from gnnbench.measure import machine

    monkeypatch.setattr(machine, "gpus", lambda: [{"name": "x"}] * gpus or None)
    answer = Missing("no CUDA library", "build it") if missing else None
    monkeypatch.setattr(native, "native_missing", lambda device: answer)
    assert ex._auto_device() == device


@pytest.mark.parametrize(
    ("profile", "cells", "couples"),
    [
        ("smoke", 9, 1), ("laptop", 10, 2), ("laptop-products", 8, 2), ("threads", 6, 3),
        ("gnnlab", 2 * 5 * 2, 0), ("fastsample-grid", 6 * 4, 1), ("gpu", 36, 2), ("fastgl", 4, 3),
        ("pgsampler", 2 * 2 * 4 * 3, 3), ("pgsampler-grid", 4 * 6 * 3, 1),
    ],
)  # fmt: skip
def test_the_sampling_definition(profile, cells, couples):
    resolved = ex.resolve(ex.load("sampling"), profile)
    found = expand(resolved, resolve).cells  # hubs and worker of samplers without them as well
    assert len(found) == cells and len(resolved.compare) == couples
    assert {(c.until, c.model) for c in found} == {("sample", "")}
    for cell in found:  # ours share a pick, the packages have theirs
        assert ("sampler.pick" in cell.recipe) == (cell.system == "baseline")
        weighted = "weighted" in str(cell.recipe.get("sampler.pick"))
        assert not weighted or cell.dataset.endswith("+weights")


@pytest.mark.parametrize("name", sorted(ex.shipped()))
def test_shipped_defaults_take_what_every_machine_can_make(name):
    """No real graph is asked for unless its profile is."""
    found = ex.resolve(ex.load(name), "").axis("dataset")
    assert found
    assert {datasets.resolve(dataset).kind for dataset in found} <= {"twin", "rmat", "rows"}
