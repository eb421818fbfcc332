"""Cheats built on the real baseline: the gate, the recount, the runner's count and the recheck."""

import re

import native_cheats
import pytest
from compose import make, run
from planted import assert_incorrect, register, run_systems

from gnnbench.systems.runtime.runner import SystemRunner

RECIPES = {
    "honest-timed": "HONEST_TIMED", "stale-seen": "STALE_SEEN", "wrong-features": "WRONG_FEATURES",
    "less-batches": "LESS_BATCHES",
}  # fmt: skip
# Reported by the audit, as "stale-seen" is: its message becomes a row's reason there.
AUDITED = {
    "LESS_EDGES": "edges were drawn where [0-9]+ are right",
    "LESS_SEEDS_SEEN": "timed batch 1 was drawn for other seeds than its own",
    "SAME_SEEDS": "the batch order holds a training node twice",
    "ANY_SEEDS": "the batch order holds a node that is none of the training set",
    "HALF_EPOCH": "2 batches were run where the epoch has 4",
    "SAME_BATCH": "timed batch 2 was drawn for other seeds than its own",
    "LITTLE_TRAINED": "the model was trained on 1 batches of 4",
}
BLIND = {
    "honest-blind": "HonestBlind", "stale-features": "StaleFeatures", "stale-few": "StaleFew",
    "cached-batches": "CachedBatches", "less-seeds": "LessSeeds", "half-epoch": "HalfEpoch",
    "untrained": "Untrained",
}  # fmt: skip
INCORRECT = {
    "stale-seen": "gathered feature rows differ",
    "wrong-features": "^gathered feature rows differ",
    "less-batches": "ran 2 batches where it has 4",
    "stale-features": "when every batch was checked: batch 1: gathered feature rows differ",
    "stale-few": "when every batch was checked: batch 1: gathered feature rows differ",
    "cached-batches": "its picks are not 'without-replacement'",
    "less-seeds": "ran [0-9]+ seeds where it has [0-9]+",
    "half-epoch": "ran 2 batches where it has 4",
    "untrained": "whatever the epoch",
}
HONEST = ("baseline", "honest-timed", "honest-blind")


@pytest.fixture(scope="module")
def rows(native_patch, tmp_path_factory):
    register(native_patch, "native_cheats", {**RECIPES, **BLIND})
    outcome = run_systems(
        ["baseline", *RECIPES, *BLIND], tmp_path_factory.mktemp("native"), "baseline",
        options=("fanouts=[4, 3]", "batch_size=64", "hidden=8", "threads=1"), rounds=4,
    )  # fmt: skip
    assert outcome.exit_code == 4
    return {r["system"]: r for r in outcome.rows}


def test_every_system_is_judged(rows):
    assert {"baseline", *RECIPES, *BLIND} == {*HONEST, *INCORRECT} == set(rows)


@pytest.mark.parametrize("system", HONEST)
def test_the_baseline_and_its_honest_twins_pass(rows, system):
    row = rows[system]
    assert (row["status"], row["reason"]) == ("ok", "")
    if system != "baseline":
        assert row["work_class"] == "identical"


@pytest.mark.parametrize("system", ["baseline", *RECIPES, *BLIND])
def test_recipes_alone_are_vouched_for(rows, system):
    """What is derived from ``SystemRunner`` may have changed its gate and its audit."""
    assert rows[system]["verified"] is (system not in BLIND)


@pytest.mark.parametrize("cheat", ["HONEST_TIMED", *AUDITED])
def test_an_audit_tells_what_was_done(small_graph, one_thread, cheat):
    recipe = getattr(native_cheats, cheat).resolved("cpu")
    system = SystemRunner(make(small_graph, setup=False).cell, small_graph, recipe)
    system.setup()
    report = system.check()
    assert report.ok and report.verified, report.reason
    audit = run(system, epoch=5)
    assert audit.ok == (cheat == "HONEST_TIMED")
    assert re.search(AUDITED.get(cheat, "^$"), audit.reason), audit.reason


@pytest.mark.parametrize("system", INCORRECT)
def test_a_cheat_is_incorrect_and_has_no_ratio(rows, system):
    assert_incorrect(rows[system], INCORRECT[system])
