"""Definitions that extend others: what is merged, and whose word counts."""

import pytest
from definitions import SMALL, load, write

from gnnbench.config import experiment as ex
from gnnbench.core.errors import UsageError

BASE = """
schema_version = 2
default_profile = "small"
[axes]
system = ["a"]
dataset = ["d"]
model = ["m"]
[measure]
rounds = 4
[profiles.small]
reference = "b"
axes.dataset = ["small"]
axes.seed = [1, 2]
zip.hidden = [1]
measure = { rounds = 2, max_batches = 6 }
systems.a.fused = true
"""


def test_extends_merges_tables_and_replaces_the_rest(tmp_path):
    write(tmp_path, SMALL + "[measure]\npairs = [5]\nrounds = 4\n", "base.toml")
    found = load(
        tmp_path,
        "schema_version = 2\nextends = 'base.toml'\n[axes]\nsystem = ['c']\n"
        "[measure]\nrounds = 8\n",
    )
    assert found.axis("system") == ["c"]
    assert found.axis("dataset") == ["d"]
    assert (found.measure.pairs, found.measure.rounds) == ([5], 8)
    assert found.name == "mine"


def test_shipped_names_can_be_extended(tmp_path):
    found = load(tmp_path, "schema_version = 2\nextends = 'breakdown'\n[axes]\nhidden = [16]\n")
    assert found.axis("hidden") == [16]
    assert found.axis("fanouts") == [[15, 10, 5]]


def test_the_default_profile_that_is_inherited_gives_way_to_what_an_heir_says(tmp_path):
    write(tmp_path, BASE, "base.toml")
    own = "schema_version = 2\nextends = 'base.toml'\nreference = 'a'\n"
    tables = "[axes]\ndataset = ['mine']\nhidden = [16]\n[measure]\nrounds = 8\n"
    tables += "[systems.a]\nfused = false\n"
    for profile in ("", "small"):
        found = load(tmp_path, own + tables, profile)
        assert (found.axis("dataset"), found.axis("hidden")) == (["mine"], [16])
        assert found.zip == {} and found.reference == "a"
        assert found.systems == {"a": {"fused": False}}
        # What it does not say is the profile's.
        assert found.axis("seed") == [1, 2]
        assert (found.measure.rounds, found.measure.max_batches) == (8, 6)
    heir = "schema_version = 2\nextends = 'mine.toml'\n[profiles.small]\naxes.dataset = ['x']\n"
    found = ex.resolve(ex.load(write(tmp_path, heir, "heir.toml")))
    assert (found.axis("dataset"), found.axis("hidden")) == (["x"], [16])


def test_a_profile_that_is_named_is_meant_as_it_stands(tmp_path):
    write(tmp_path, BASE + "[profiles.large]\naxes.dataset = ['large']\n", "base.toml")
    own = "schema_version = 2\nextends = 'base.toml'\n{}[axes]\ndataset = ['mine']\n"
    assert load(tmp_path, own.format(""), "large").axis("dataset") == ["large"]
    assert load(tmp_path, own.format("")).axis("dataset") == ["mine"]
    for default, dataset in (("small", "small"), ("large", "large"), ("", "mine")):
        found = load(tmp_path, own.format(f"default_profile = '{default}'\n"))
        assert found.axis("dataset") == [dataset]


@pytest.mark.parametrize("own", ["axes = 3", "[axes]\nseed = 3", "[profiles]\nsmall = 3"])
def test_a_malformed_heir_is_named_as_any_other(tmp_path, own):
    write(tmp_path, BASE, "base.toml")
    with pytest.raises(
        UsageError, match=r"'mine\.toml': (axes|axes\.seed|profiles\.small) cannot be 3; "
    ):
        load(tmp_path, f"schema_version = 2\nextends = 'base.toml'\n{own}\n")
