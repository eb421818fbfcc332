"""Definitions that extend others: merging and precedence."""

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
    merged = load(
        tmp_path,
        "schema_version = 2\nextends = 'base.toml'\n[axes]\nsystem = ['c']\n"
        "[measure]\nrounds = 8\n",
    )
    assert merged.axis("system") == ["c"]
    assert merged.axis("dataset") == ["d"]
    assert (merged.measure.pairs, merged.measure.rounds) == ([5], 8)
    assert merged.name == "mine"


def test_shipped_names_can_be_extended(tmp_path):
    merged = load(tmp_path, "schema_version = 2\nextends = 'breakdown'\n[axes]\nhidden = [16]\n")
    assert merged.axis("hidden") == [16]
    assert merged.axis("fanouts") == [[15, 10, 5]]


def test_extending_definition_overrides_the_inherited_default_profile(tmp_path):
    write(tmp_path, BASE, "base.toml")
    own = "schema_version = 2\nextends = 'base.toml'\nreference = 'a'\n"
    tables = "[axes]\ndataset = ['mine']\nhidden = [16]\n[measure]\nrounds = 8\n"
    tables += "[systems.a]\nfused = false\n"
    for profile in ("", "small"):
        merged = load(tmp_path, own + tables, profile)
        assert (merged.axis("dataset"), merged.axis("hidden")) == (["mine"], [16])
        assert merged.zip == {} and merged.reference == "a"
        assert merged.systems == {"a": {"fused": False}}
        # Other keys are those of the profile.
        assert merged.axis("seed") == [1, 2]
        assert (merged.measure.rounds, merged.measure.max_batches) == (8, 6)
    extending = (
        "schema_version = 2\nextends = 'mine.toml'\n[profiles.small]\naxes.dataset = ['x']\n"
    )
    merged = ex.resolve(ex.load(write(tmp_path, extending, "extending.toml")))
    assert (merged.axis("dataset"), merged.axis("hidden")) == (["x"], [16])


def test_named_profile_overrides_the_extending_definition(tmp_path):
    write(tmp_path, BASE + "[profiles.large]\naxes.dataset = ['large']\n", "base.toml")
    own = "schema_version = 2\nextends = 'base.toml'\n{}[axes]\ndataset = ['mine']\n"
    assert load(tmp_path, own.format(""), "large").axis("dataset") == ["large"]
    assert load(tmp_path, own.format("")).axis("dataset") == ["mine"]
    for default, dataset in (("small", "small"), ("large", "large"), ("", "mine")):
        merged = load(tmp_path, own.format(f"default_profile = '{default}'\n"))
        assert merged.axis("dataset") == [dataset]


@pytest.mark.parametrize("own", ["axes = 3", "[axes]\nseed = 3", "[profiles]\nsmall = 3"])
def test_malformed_extending_definition_is_refused(tmp_path, own):
    write(tmp_path, BASE, "base.toml")
    with pytest.raises(
        UsageError, match=r"'mine\.toml': (axes|axes\.seed|profiles\.small) cannot be 3; "
    ):
        load(tmp_path, f"schema_version = 2\nextends = 'base.toml'\n{own}\n")
