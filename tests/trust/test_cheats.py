"""Every planted cheat is caught, and its honest twin is not."""

import re

import pytest
from conftest import register, run_systems

SYSTEMS = {
    "honest": "Honest", "honest-thread": "HonestThread", "honest-recount": "HonestRecount",
    "no-sync": "NoSync", "half-on-the-side": "HalfOnTheSide",
    "forever-on-the-side": "ForeverOnTheSide", "phases-summed": "PhasesSummed",
    "first-dropped": "FirstDropped", "moved-to-warm-up": "WorkMovedToWarmUp",
    "cached-answer": "CachedAnswer", "another-epoch": "AnswersAnotherEpoch",
    "not-a-number": "NotANumber", "fewer-edges": "FewerEdges", "slightly-other": "SlightlyOther",
    "many-fewer-edges": "ManyFewerEdges",
}  # fmt: skip
HONEST = ("honest", "honest-thread", "honest-recount", "slightly-other")
INCORRECT = {
    "no-sync": "more than it says",
    "half-on-the-side": "more than it says",
    "phases-summed": "more than it says",
    "first-dropped": "more than it says",
    "cached-answer": "whatever the epoch",
    "another-epoch": "epoch 0 was answered where 1 was asked for",
    "not-a-number": "the loss of epoch 0 is nan",
    "fewer-edges": r"drew 3900 edges where the reference drew 4000",
    "many-fewer-edges": r"drew 3000 edges where the reference drew 4000",
}
DOUBTFUL = {
    "forever-on-the-side": "while idle",
    "moved-to-warm-up": "a warm-up epoch took",
}


@pytest.fixture(scope="module")
def rows(patch, tmp_path_factory):
    register(patch, "cheats", SYSTEMS)
    outcome = run_systems(SYSTEMS, tmp_path_factory.mktemp("cheats"), "honest")
    assert outcome.exit_code == 4
    return {r["system"]: r for r in outcome.rows}


def test_every_system_is_judged(rows):
    assert set(SYSTEMS) == set(HONEST) | set(INCORRECT) | set(DOUBTFUL) == set(rows)


@pytest.mark.parametrize("system", HONEST)
def test_honest_twins_pass(rows, system):
    row = rows[system]
    assert (row["status"], row["reason"]) == ("ok", "")
    own = row["doubtful"].replace("the worker of 'forever-on-the-side'", "")
    assert "while idle" not in own and "warm-up" not in own
    assert row["outer_s"] == pytest.approx(row["epoch_wall_s"], abs=0.05)


@pytest.mark.parametrize("system", INCORRECT)
def test_a_cheat_is_incorrect_and_has_no_ratio(rows, system):
    row = rows[system]
    assert row["status"] == "incorrect", row
    assert re.search(INCORRECT[system], row["reason"]), row["reason"]
    assert row.get("speedup") is None


@pytest.mark.parametrize("system", DOUBTFUL)
def test_what_cannot_be_proven_is_doubtful(rows, system):
    row = rows[system]
    if row["status"] == "ok":  # a thread that never rests may also fail the clock
        assert DOUBTFUL[system] in row["doubtful"]
    else:
        assert "more than it says" in row["reason"]


@pytest.mark.parametrize(
    "option,values,dead", [("label", "[1, 2]", 1), ("turbo", "[false, true]", 0)]
)
def test_a_dead_flag_is_reported_and_a_living_one_is_not(patch, tmp_path, option, values, dead):
    register(patch, "cheats", SYSTEMS)
    definition = tmp_path / "flags.toml"
    definition.write_text(
        'schema_version = 1\nextends = "breakdown"\nreference = "honest"\n[axes]\n'
        f'system = ["honest"]\n"options.{option}" = {values}\n'
    )
    rows = run_systems((), tmp_path / "out", "honest", repeats=4, definition=definition).rows
    assert [r["status"] for r in rows] == ["ok", "ok"]
    remarks = [r["remark"] for r in rows if r.get("remark")]
    assert len(remarks) == dead
    assert all("option label (1 or 2) changed nothing" in r for r in remarks)
