"""Settings that `best` chooses before a run: in the definition, in notes, and in the cells."""

import pytest

from gnnbench.config import experiment as definitions
from gnnbench.config.experiment import Experiment
from gnnbench.harness import feature_choice
from gnnbench.harness.launch import plan_of

GIB = 2**30


@pytest.fixture
def memory(monkeypatch):
    def set_gib(gib):
        monkeypatch.setattr(feature_choice, "gpu_memory_bytes", lambda: gib * GIB)

    return set_gib


def definition(**more):
    axes = {
        "system": ["best", "baseline"], "device": ["cuda"], "model": ["gcn"],
        "dataset": ["rmat@12x8x16", "papers100m~twin"],
    }  # fmt: skip
    return Experiment.model_validate(
        {"schema_version": 2, "name": "e", "axes": {**axes, **more.pop("axes", {})}, **more}
    )


def stores(experiment):
    return {
        c.dataset: c.recipe["features"] for c in plan_of(experiment).cells if c.system == "best"
    }


def test_each_dataset_has_its_store(memory):
    memory(40)
    chosen, notes = feature_choice.choose(definition())
    assert chosen.fitted == {
        "best": {
            "rmat@12x8x16": {"features": "gpu"},
            "papers100m~twin": {"features.table": "cache", "features.table.ratio": 0.26},
        }
    }
    assert [note.partition(",")[0] for note in notes] == [
        "best chose features=gpu for rmat@12x8x16",
        "best chose features.table=cache",
    ]
    by_dataset = stores(chosen)
    assert by_dataset["rmat@12x8x16"] == {"name": "gpu"}
    window = by_dataset["papers100m~twin"]
    assert (window["name"], window["table"]["name"], window["table"]["ratio"]) == (
        "window", "cache", 0.26,
    )  # fmt: skip


def test_the_choice_is_part_of_the_definition(memory, tmp_path):
    memory(40)
    chosen, _ = feature_choice.choose(definition())
    file = tmp_path / "e.toml"
    file.write_text(chosen.to_toml())
    read = definitions.load(str(file))
    memory(400)  # another machine runs the same
    again, notes = feature_choice.choose(read)
    assert again.fitted == chosen.fitted and notes == []
    assert stores(again) == stores(chosen)


@pytest.mark.parametrize(
    "more",
    [
        {"axes": {"best.features.window": [16]}},
        {"systems": {"best": {"features": "uva"}}},
        {"axes": {"device": ["cpu"]}},
        {"axes": {"system": ["baseline", "fastgl"]}},
    ],
)
def test_nothing_is_chosen_where_the_store_is_set_or_there_is_no_gpu(memory, more):
    memory(40)
    chosen, notes = feature_choice.choose(definition(**more))
    assert chosen.fitted == {} and notes == []
    assert chosen.hash == definition(**more).hash


def test_nothing_is_chosen_without_nvml(memory):
    memory(0)
    assert feature_choice.choose(definition())[0].fitted == {}


def test_shipped_gpu_profiles_set_the_store_of_best(memory):
    """Their systems are compared with features in the same memory."""
    memory(80)
    for name in definitions.shipped():
        loaded = definitions.load(name)
        for profile in loaded.profiles:
            resolved = definitions.resolve(loaded, profile, {})
            if resolved.names("device") == ["cuda"]:
                assert feature_choice.choose(resolved)[0].fitted == {}, (name, profile)
