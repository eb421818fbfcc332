"""Systems that train on less than they draw are found by a reference that starts as they do."""

import pytest
from planted import assert_incorrect, register, run_systems

RECIPES = {
    "honest-around": "HONEST", "half-trained": "HALF_TRAINED", "now-and-then": "NOW_AND_THEN",
    "detached": "DETACHED",
}  # fmt: skip
ASTRAY = "epoch [0-9]+ of its process (moved (layer|the parameters)|left parameters of norm)"
INCORRECT = {
    "half-trained": ASTRAY,
    "now-and-then": ASTRAY,
    "detached": "gradients of the weights on the fixed block are off by",
}


@pytest.fixture(scope="module")
def rows(native_patch, tmp_path_factory):
    register(native_patch, "learning_cheats", RECIPES)
    outcome = run_systems(
        ["baseline", *RECIPES], tmp_path_factory.mktemp("learning"), "baseline",
        options=("fanouts=[4, 3]", "batch_size=64", "hidden=8", "threads=1"),
    )  # fmt: skip
    return {r["system"]: r for r in outcome.rows}


def test_the_honest_twin_passes(rows):
    row = rows["honest-around"]
    assert (row["status"], row["reason"], row["work_class"]) == ("ok", "", "identical")


@pytest.mark.parametrize("system", INCORRECT)
def test_a_cheat_is_incorrect_and_has_no_ratio(rows, system):
    assert_incorrect(rows[system], INCORRECT[system])
