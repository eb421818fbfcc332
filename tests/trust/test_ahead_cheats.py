"""Rows that are overwritten under a schedule that fetches ahead are found; those of ours pass."""

import pytest
from planted import assert_incorrect, register, run_systems

RECIPES = {"ahead": "HONEST", "one-short": "ONE_SHORT", "one-buffer": "ONE_BUFFER"}
DIFFER = "gathered feature rows differ from the feature table"


@pytest.fixture(scope="module")
def rows(native_patch, tmp_path_factory):
    register(native_patch, "ahead_cheats", RECIPES)
    options = ("fanouts=[4, 3]", "batch_size=64", "threads=1", "hidden=8")
    out = tmp_path_factory.mktemp("ahead")
    outcome = run_systems(["baseline", *RECIPES], out, "baseline", options=options)
    return {r["system"]: r for r in outcome.rows}


def test_batches_fetched_ahead_are_the_references(rows):
    row = rows["ahead"]
    assert (row["status"], row["reason"], row["work_class"]) == ("ok", "", "identical")
    assert row["overlap_s"] > 0 and rows["baseline"]["overlap_s"] == 0


def test_a_buffer_too_few_does_not_pass_the_gate(rows):
    assert_incorrect(rows["one-short"], f"^{DIFFER}")


def test_one_that_is_spared_by_the_gate_is_found_afterwards(rows):
    assert_incorrect(rows["one-buffer"], f"in a timed epoch: batch [0-9]: {DIFFER}")
