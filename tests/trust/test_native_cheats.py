"""Cheats built on the real baseline: the gate, the recount, the runner's count and the recheck."""

import re

import pytest
from conftest import register, run_systems

from gnnbench.ops.library import native_info

SYSTEMS = {
    "honest-timed": "HonestTimed", "honest-blind": "HonestBlind",
    "stale-seen": "StaleSeen", "stale-features": "StaleFeatures", "stale-few": "StaleFew",
    "cached-batches": "CachedBatches", "less-batches": "LessBatches", "less-seeds": "LessSeeds",
    "less-edges": "LessEdges", "wrong-features": "WrongFeatures", "untrained": "Untrained",
}  # fmt: skip
INCORRECT = {
    "stale-seen": "timed batch: gathered feature rows differ",
    "stale-features": "after timing: gathered feature rows differ",
    "stale-few": "after timing: gathered feature rows differ",
    "cached-batches": "after timing: the destinations of hop 1 are not",
    "less-batches": "ran 2 batches where it has 4",
    "less-seeds": "ran [0-9]+ seeds where it has [0-9]+",
    "less-edges": "edges were drawn where [0-9]+ are right",
    "wrong-features": "^gathered feature rows differ",
    "untrained": "whatever the epoch",
}


@pytest.fixture(scope="module")
def rows(patch, tmp_path_factory):
    if not native_info()["cpu_built"]:
        pytest.skip("the native library is not built; run 'make install'")
    register(patch, "native_cheats", SYSTEMS)
    outcome = run_systems(
        ["baseline", *SYSTEMS], tmp_path_factory.mktemp("native"), "baseline",
        options=("fanouts=[4, 3]", "hidden=8"),
    )  # fmt: skip
    assert outcome.exit_code == 4
    return {r["system"]: r for r in outcome.rows}


@pytest.mark.parametrize("system", ["baseline", "honest-timed", "honest-blind"])
def test_the_baseline_and_its_honest_twin_pass(rows, system):
    row = rows[system]
    assert (row["status"], row["reason"]) == ("ok", "")
    assert row["outer_s"] >= row["epoch_wall_s"]
    if system != "baseline":
        assert row["work_class"] == "identical"


@pytest.mark.parametrize("system", INCORRECT)
def test_a_cheat_is_incorrect_and_has_no_ratio(rows, system):
    row = rows[system]
    assert row["status"] == "incorrect", row
    assert re.search(INCORRECT[system], row["reason"]), row["reason"]
    assert row.get("speedup") is None
