"""Command-line options of nested stages: accepted, or refused with a hint."""

import pytest

from gnnbench.config import experiment as ex
from gnnbench.config import overrides
from gnnbench.config.overrides import Overrides, as_definition, spelled
from gnnbench.core import names
from gnnbench.core.errors import UsageError
from gnnbench.harness.environment import known_paths

MATCH = "baseline.features=match"
CACHE = "baseline.features.table=cache"


def settings(*options, experiment="breakdown"):
    over = Overrides(systems=("baseline",), options=options)
    return as_definition(over, ex.load(experiment), known_paths)["systems"]["baseline"]


def test_nested_options_may_be_in_any_order():
    ratio = "baseline.features.table.ratio=0.2"
    for options in ((MATCH, CACHE, ratio), (ratio, CACHE, MATCH)):
        assert settings(*options) == {
            "features": "match", "features.table": "cache", "features.table.ratio": 0.2,
        }  # fmt: skip
    table = "baseline.features.table.table=host"
    assert settings(MATCH, CACHE, table)["features.table.table"] == "host"


@pytest.mark.parametrize("option", ["features.window=4", "features.table.ratio=0.3"])
def test_option_of_one_of_several_stages_is_accepted(option):
    """match-degree has an axis of host, match and window."""
    path, _, value = option.partition("=")
    options = [f"baseline.{option}", *([CACHE] if "table." in option else [])]
    assert settings(*options, experiment="match-degree")[path] == float(value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["features.table.ratio=1"], f"table=cache has it: add -o {MATCH} -o {CACHE}"),
        ([MATCH, "features.table.ratio=1"], f"features.table=cache has it: add -o {CACHE}$"),
        ([MATCH, CACHE, "features.table.ratoi=1"], r"did you mean 'features\.table\.ratio'"),
        (
            ["features.ratio=0.3"],
            "features=cache or sharded has it: add -o baseline.features=cache$",
        ),
    ],
)
def test_option_of_an_unselected_stage_names_that_stage(options, words):
    with pytest.raises(UsageError, match=words):
        settings(*options)


@pytest.mark.parametrize("value", ["cach", "window", "gpu"])
def test_invalid_nested_stage_is_refused(value):
    words = rf"features 'match'\.table cannot be {value}; it is default, host, uva or cache"
    with pytest.raises(UsageError, match=words):
        settings(MATCH, f"baseline.features.table={value}", "baseline.features.table.ratio=1")


@pytest.mark.parametrize("text", ["-2/3", "0/3", "5/-7", "[[5, -3]]"])
def test_invalid_fanouts_are_refused(text):
    base = ex.load("breakdown")
    over = as_definition(Overrides(options=(f"fanouts={text}",)), base, known_paths)
    with pytest.raises(
        UsageError, match=r"whole numbers from 1 \(-1: all neighbours\): -o 'fanouts="
    ):
        ex.resolve(base, "smoke", over)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (
            "fastgl.features.rati=0.1",
            r"did you mean 'features\.ratio'\? features=cache has it:"
            r" add -o fastgl\.features=cache$",
        ),
        (
            "fastgl.features.table.rati=0.1",
            r"'features\.table\.ratio'\? features\.table=cache has it:"
            r" add -o fastgl\.features\.table=cache$",
        ),
        ("fastgl.features.tabel=cache", r"did you mean 'features\.table'\?$"),
        ("fastgl.featurs.table=cache", r"did you mean 'features\.table'\?$"),
        (
            "fastgl.featurs.ratio=0.1",
            r"'features\.ratio'\? features=cache or sharded has it: add -o fastgl\.features=cache$",
        ),
        ("fastgl.sampler.pik=floyd", r"did you mean 'sampler\.pick'\?$"),
        ("fastgl.order.windo=2", r"did you mean 'order\.window'\?$"),
        ("fastgl.features.zzzzz=1", r"known are features\.table$"),
        ("gnnlab.features.rati=0.1", r"did you mean 'features\.ratio'\?$"),
    ],
)
def test_misspelled_setting_suggests_the_nearest_one(option, words):
    over = Overrides(systems=("fastgl", "gnnlab"), options=(option,))
    with pytest.raises(UsageError, match=words):
        as_definition(over, ex.load("breakdown"), known_paths)


def test_names_ignore_case():
    base = ex.load("Breakdown")
    assert base.name == "breakdown" and ex.is_one("SAMPLING")
    typed = Overrides(profile="SMOKE", systems=("FastGL", "GNNLab"), models=("Gcn",))
    over = spelled(typed, base, ["fastgl", "gnnlab"])
    assert over == Overrides(profile="smoke", systems=("fastgl", "gnnlab"), models=("gcn",))
    options = ("FASTGL.features=host", "reference=GNNLab sampler.pick=floyd", "model=[GCN,Gat]")
    definition = as_definition(Overrides(systems=over.systems, options=options), base, known_paths)
    assert definition["systems"] == {"fastgl": {"features": "host"}}
    assert definition["reference"] == "gnnlab sampler.pick=floyd"
    assert definition["axes"]["model"] == ["gcn", "gat"]
    assert as_definition(Overrides(options=("system=DGL",)), base, known_paths)["axes"] == {
        "system": ["dgl"]
    }


def test_exact_name_is_preferred():
    assert names.known_spelling("B", ["b", "B"]) == "B"
    assert names.known_spelling("bB", ["Bb", "BB"]) == "bB"  # ambiguous: neither is chosen
    assert names.known_spelling("x", []) == "x"


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("device=CPU", {"axes": {"device": ["cpu"]}}),
        ("pick=[FLOYD, Weighted_Alias]", {"axes": {"pick": ["floyd", "weighted_alias"]}}),
        ("frontier=New", {"axes": {"frontier": ["new"]}}),
        ("until=Memory_IO", {"axes": {"until": ["memory_io"]}}),
        ("evaluate=ALL", {"axes": {"evaluate": ["all"]}}),
        ("baseline.sampler=Fused-Map", {"systems": {"baseline": {"sampler": "fused-map"}}}),
        ("baseline.sampler.topology=CPU", {"systems": {"baseline": {"sampler.topology": "cpu"}}}),
        ("baseline.sampler=[GNNLab, x]", {"axes": {"baseline.sampler": ["gnnlab", "x"]}}),
        ("seed=1", {"axes": {"seed": [1]}}),
    ],
)
def test_values_of_settings_ignore_case(option, expected):
    over = Overrides(systems=("baseline",), options=(option,))
    definition = as_definition(over, ex.load("breakdown"), known_paths)
    definition["axes"].pop("system")
    assert {k: v for k, v in definition.items() if v} == expected


def test_device_and_pick_ignore_case():
    over = spelled(Overrides(device="CUDA", pick="Reservoir"), ex.load("breakdown"), ())
    assert (over.device, over.pick) == ("cuda", "reservoir")


@pytest.mark.parametrize("text", ["3\nhidden = 4", "3 # all", "3, 4", "3]\nx = [4", "3,"])
def test_value_with_trailing_text_is_a_string(text):
    assert overrides.parse_value(text) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("[3, 4,]", [3, 4]),
        ("[a, [b, 'c d']]", ["a", ["b", "c d"]]),
        ("[" + ", ".join(["[1]"] * 40) + "]", [[1]] * 40),
        ("", ""),
        ("[" * 16 + "]" * 16, eval("[" * 16 + "]" * 16)),
    ],
)
def test_value_is_toml_or_text(text, value):
    assert overrides.parse_value(text) == value


@pytest.mark.parametrize(
    ("text", "words"), [("[" * 17, "more than 16 lists"), ("9" * 5000, "too long a number")]
)
def test_too_large_values_are_refused(text, words):
    with pytest.raises(UsageError, match=words):
        overrides.parse_value(text)
