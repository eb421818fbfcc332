"""Every planted cheat is caught, and its honest twin is not."""

import re

import pytest
from cheats import EPOCH_S, SHORT_S
from planted import assert_incorrect, register, run_systems

SYSTEMS = {
    "short": "Short", "honest": "Honest", "longer": "Longer", "honest-thread": "HonestThread",
    "honest-recount": "HonestRecount", "no-sync": "NoSync", "half-on-the-side": "HalfOnTheSide",
    "forever-on-the-side": "ForeverOnTheSide", "moved-to-warm-up": "WorkMovedToWarmUp",
    "moved-to-audit": "WorkMovedToAudit", "slow-clock": "SlowClock", "short-clock": "ShortClock",
    "stopped-early": "StoppedEarly",
    "missing-span": "MissingSpan", "spans-elsewhere": "SpansElsewhere",
    "old-timeline": "OldTimeline", "booked-elsewhere": "BookedElsewhere",
    "says-verified": "SaysVerified", "cached-answer": "CachedAnswer",
    "another-epoch": "AnswersAnotherEpoch", "fewer-edges": "FewerEdges",
    "slightly-other": "SlightlyOther",
    # Last: the trials of the others have trained the reference as often as its spread needs.
    "many-fewer-edges": "ManyFewerEdges", "clock-reset": "ClockReset",
    "not-a-number": "NotANumber",
}  # fmt: skip
SAMPLING = {
    "short": "Short", "honest-thread": "HonestThread", "outside-spans": "OutsideSpans",
    "own-span-clock": "OwnSpanClock", "booked-elsewhere": "BookedElsewhere",
    "stopped-early": "StoppedEarly",
}  # fmt: skip
HONEST = ("short", "honest", "longer", "honest-thread", "honest-recount", "slightly-other")
# Found over several epochs: two losses could be alike, little CPU time be rounding.
OVER_EPOCHS = ("cached-answer", "forever-on-the-side")
IN_VAIN = ("says-verified", "booked-elsewhere")  # it changes nothing
CLOCKS = {
    "slow-clock": r"0\.2.* s by the harness's clock where it reports 0\.002",
    "short-clock": r"0\.1.* s by the harness's clock where it reports 0\.0[678]",
    "stopped-early": r"0\.1.* s by the harness's clock where it reports 0\.0[89]",
}
INCORRECT = {
    **CLOCKS,
    "no-sync": "work goes on after they have ended",
    "half-on-the-side": "work goes on after they have ended",
    "missing-span": "epoch [0-9]+ has no span of the phase compute",
    "spans-elsewhere": "epoch [0-9]+ has no span of the phase sample",
    "old-timeline": "epoch [0-9]+ has no span of the phase sample",
    "clock-reset": "has a loss of 0.81 where the reference has 0.9",  # it trains twice
    "cached-answer": "whatever the epoch",
    "another-epoch": "epoch [0-9]+ was answered where [0-9]+ was",
    "not-a-number": "has a loss of nan",
    "fewer-edges": r"drew 3900 edges where the reference drew 4000",
    "many-fewer-edges": r"drew 3000 edges where the reference drew 4000",
}
DOUBTFUL = {
    "forever-on-the-side": "of a core while 'longer' was measured",
    "moved-to-warm-up": "a warm-up epoch took",
    "moved-to-audit": "after each epoch",
}


@pytest.fixture(scope="module")
def rows(patch, tmp_path_factory):
    register(patch, "cheats", SYSTEMS)
    once = [s for s in SYSTEMS if s not in (*OVER_EPOCHS, "longer")]
    outcome = run_systems(once, tmp_path_factory.mktemp("cheats"), "short")
    assert outcome.exit_code == 4
    wanted = ("longer", *OVER_EPOCHS)
    more = run_systems(wanted, tmp_path_factory.mktemp("more"), "longer", rounds=4)
    return {r["system"]: r for r in [*outcome.rows, *more.rows]}


@pytest.fixture(scope="module")
def sampling(patch, tmp_path_factory):
    register(patch, "cheats", SAMPLING)
    out = tmp_path_factory.mktemp("sampling")
    outcome = run_systems(SAMPLING, out, "short", options=("until=sample",))
    return {r["system"]: r for r in outcome.rows}


def test_every_system_is_judged(rows):
    judged = {*HONEST, *IN_VAIN, *INCORRECT, *DOUBTFUL}
    assert set(SYSTEMS) == judged == set(rows)


@pytest.mark.parametrize("system", [*HONEST, *IN_VAIN])
def test_honest_twins_pass(rows, system):
    row = rows[system]
    assert (row["status"], row["reason"]) == ("ok", "")
    assert row["verified"] is False  # nobody but itself vouches for it
    own = [d for d in row["doubtful"].split("; ") if "'forever-on-the-side'" not in d]
    words = "of a core while|warm-up|after each epoch|in no phase"
    assert not re.search(words, "; ".join(own)), own
    assert row["epoch_wall_s"] >= (SHORT_S if system == "short" else EPOCH_S)  # its work


def test_a_clock_that_is_reset_is_not_the_harnesss(rows):
    assert rows["clock-reset"]["status"] == "incorrect"
    assert rows["booked-elsewhere"]["epoch_wall_s"] >= 2 * EPOCH_S


@pytest.mark.parametrize("system", INCORRECT)
def test_a_cheat_is_incorrect_and_has_no_ratio(rows, system):
    assert_incorrect(rows[system], INCORRECT[system])


@pytest.mark.parametrize("system", DOUBTFUL)
def test_what_cannot_be_proven_is_doubtful(rows, system):
    row = rows[system]
    if row["status"] == "ok":  # a thread that never rests may also fail the clock
        assert DOUBTFUL[system] in row["doubtful"]
    else:
        assert system == "forever-on-the-side"
        assert "work goes on after they have ended" in row["reason"]


def test_who_samples_in_its_phase_passes(sampling):
    row = sampling["honest-thread"]
    assert (row["status"], row["reason"]) == ("ok", "")
    assert "in no phase" not in row["doubtful"]
    assert row["judged_s"] >= EPOCH_S


@pytest.mark.parametrize("system", ["outside-spans", "own-span-clock"])
def test_work_in_no_phase_is_doubtful_where_a_phase_is_judged(sampling, system):
    assert sampling[system]["status"] == "ok"
    assert re.search("are in no phase: work may be left out of its", sampling[system]["doubtful"])


def test_a_clock_that_is_bent_is_incorrect_where_a_phase_is_judged(sampling):
    assert_incorrect(sampling["stopped-early"], CLOCKS["stopped-early"])


def test_work_in_a_phase_that_is_not_run_is_incorrect(sampling):
    assert sampling["booked-elsewhere"]["status"] == "incorrect"
    assert (
        "spans of 'compute' where its phases are: sample" in sampling["booked-elsewhere"]["reason"]
    )
