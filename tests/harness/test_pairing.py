"""The number of rounds of a pair, set once by costs and the budget, and when a pair stops."""

from dataclasses import replace

import pytest

from gnnbench.config.experiment import MeasureLimits
from gnnbench.core.cell import Cell
from gnnbench.harness import pairing as pairings
from gnnbench.harness.journal import RunJournal
from gnnbench.harness.pairing import Pairing
from gnnbench.harness.plan import CellPair

PAIR = CellPair(Cell("e", "b", "d", "m"), Cell("e", "a", "d", "m"))


@pytest.mark.parametrize("measure,rounds", [
    ({}, 12),  # 300 s for 3 pairs of 4 s and rounds of 0.5 s
    ({"time_budget_s": 24.0}, 8),  # 8 s a pair, of which 4 s are start-up
    ({"time_budget_s": 40.0, "pairs": [4]}, 12),
    ({"time_budget_s": 1.0}, 2),
    ({"time_budget_s": 1.0, "rounds": 8}, 8),  # as requested
])  # fmt: skip
def test_rounds_fit_the_time_budget(tmp_path, observer, measure, rounds):
    journal = RunJournal(tmp_path)
    pairing = Pairing(journal, MeasureLimits(**measure), observer, None)
    assert pairing._rounds(PAIR, 4.0, 0.5) == rounds
    assert pairing._rounds(PAIR, 400.0, 50.0) == rounds  # decided in the first trial
    assert RunJournal(tmp_path).rounds_of == {PAIR.id: rounds}


@pytest.mark.parametrize("pairs", [[5], [5, 10], [5, 10, 20], [10, 20]])
@pytest.mark.parametrize("replica", [0, 1])
def test_doubtful_comparison_stops_after_its_first_check(
    tmp_path, observer, monkeypatch, pairs, replica
):
    """A doubtful calibration stops at once; a long one leaves the pair out."""
    journal, started = RunJournal(tmp_path), []

    class Doubted:
        def __init__(self, pair, number, *_):
            self.pair, self.number = pair, number

        def run(self, rounds):
            started.append(self.number)
            journal.record(
                "life", pair=self.pair.id, life=self.number, seconds=1.0,
                doubt="noise" if self.number in (2, 3) else "", void=self.number == 2,
            )  # fmt: skip

    monkeypatch.setattr(pairings, "Trial", Doubted)
    monkeypatch.setattr(pairings, "round_logs", lambda journal, pair: [[0.1], [-0.1]] * 30)
    monkeypatch.setattr(Pairing, "_profile", lambda self, pair: None)
    system = replace(PAIR.system, replica=replica)

    def stop(*_, **__):
        return "enough" if len(started) > pairs[-1] else ""

    monkeypatch.setattr("gnnbench.statistics.stopping_rule.Rule.stop", stop)
    Pairing(journal, MeasureLimits(pairs=pairs), observer, None)._run(
        CellPair(system, PAIR.reference)
    )
    (done,) = journal.done.values()
    if not replica:
        ends = "enough" if pairs[0] == pairs[-1] else "doubt"
        assert (done["why"], len(started)) == (ends, pairs[0] + 1)  # plus a void one
    elif pairs[-1] < 20:
        assert (done["why"], len(started)) == ("doubt", 4)
    else:
        assert (done["why"], len(started)) == ("enough", pairs[-1] + 1)


def test_retry_resets_void_trials_and_suspects(tmp_path):
    journal = RunJournal(tmp_path)
    fields = {"doubt": "x", "seconds": 1.0, "suspects": {"c": "clock"}}
    journal.record("life", pair=PAIR.id, life=0, void=True, **fields)
    assert journal.void_trials(PAIR) == 1 and journal.last_trial(PAIR)["life"] == 0
    journal.retry((), [PAIR.id])
    for reopened in (journal, RunJournal(tmp_path)):
        assert reopened.void_trials(PAIR) == 0 and reopened.last_trial(PAIR) is None
        assert reopened.next_trial(PAIR) == 1
