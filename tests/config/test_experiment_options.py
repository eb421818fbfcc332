"""Command-line options of an experiment."""

import pytest
from definitions import SMALL, resolve, write

from gnnbench.config import experiment as ex
from gnnbench.config.grid import expand
from gnnbench.config.overrides import Overrides, as_definition
from gnnbench.core.errors import UsageError


def knows(system, given):
    paths = {"a": ("sampler", "fused", "id_type"), "b": ("fused",)}.get(system, ())
    return dict.fromkeys((*paths, "sampler.x") if given.get("sampler") == "s" else paths, ())


@pytest.mark.parametrize(
    "option,expected",
    [
        ("batch_size=512", {"axes": {"batch_size": [512]}}),
        ("batch_size=[512, 1024]", {"axes": {"batch_size": [512, 1024]}}),
        ("fanouts=[10, 5]", {"axes": {"fanouts": [[10, 5]]}}),
        ("fanouts=10/5", {"axes": {"fanouts": [[10, 5]]}}),
        ("fanouts=[]", {"axes": {"fanouts": [[]]}}),
        ("fanouts=15,10,5", {"axes": {"fanouts": [[15, 10, 5]]}}),
        ("fanouts=10/5,15/10/5", {"axes": {"fanouts": [[10, 5], [15, 10, 5]]}}),
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
def test_option_becomes_a_definition(tmp_path, option, expected):
    loaded = ex.load(write(tmp_path, SMALL))
    definition = as_definition(Overrides(options=(option,)), loaded, knows)
    assert definition == {"axes": {}, **expected}
    ex.resolve(loaded, "", definition)


@pytest.mark.parametrize(
    "option,values",
    [
        ("a.id_type=int64", ["int64"]),
        ('a.id_type=["x", "y"]', ["x", "y"]),
    ],
)
@pytest.mark.parametrize("place", ["axes", "zip", "profile"])
def test_option_replaces_values_of_an_axis(tmp_path, option, values, place):
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
    assert list(dict.fromkeys(c.recipe["id_type"] for c in cells if c.system == "a")) == values


def test_option_of_a_selected_stage_is_accepted(tmp_path):
    loaded = ex.load(write(tmp_path, SMALL))
    for options in (("a.sampler.x=1", "a.sampler=s"), ('a.sampler=["r", "s"]', "a.sampler.x=1")):
        over = as_definition(Overrides(options=options), loaded, knows)
        assert over["systems"]["a"]["sampler.x"] == 1
    with pytest.raises(UsageError, match=r"'a' has no setting 'sampler\.x'"):
        as_definition(Overrides(options=("a.sampler.x=1",)), loaded, knows)


def test_option_without_a_system_needs_a_single_selected_system(tmp_path):
    loaded = ex.load(write(tmp_path, SMALL))
    with pytest.raises(UsageError, match=r"is a setting of a, b; say whose: a.fused=..."):
        as_definition(Overrides(options=("fused=true",)), loaded, knows)
    definition = as_definition(Overrides(systems=("b",), options=("fused=true",)), loaded, knows)
    assert definition["systems"] == {"b": {"fused": True}}


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
def test_misspelled_options_are_refused(tmp_path, option, message):
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
def test_repeated_option_is_refused(tmp_path, options, over, words):
    loaded = ex.load(write(tmp_path, SMALL))
    with pytest.raises(UsageError, match=words.replace("[", r"\[")):
        as_definition(Overrides(options=options, **over), loaded, knows)


def test_more_threads_than_cores_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("gnnbench.measure.machine.usable_cores", lambda: 2)
    loaded = ex.load(write(tmp_path, SMALL))
    with pytest.raises(UsageError, match=r"threads=99 is more than the 2 cores .* give 2 or fewer"):
        as_definition(Overrides(options=("threads=[1,99]",)), loaded, knows)
    definition = as_definition(Overrides(options=("threads=[0,2]",)), loaded, knows)
    assert definition["axes"]["threads"] == [0, 2]
