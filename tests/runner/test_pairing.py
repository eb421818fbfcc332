"""How many rounds a pair has: by costs, known noise and the budget, once for all its lives."""

from dataclasses import replace

import pytest

from gnnbench.cell import Cell
from gnnbench.experiment import Measure
from gnnbench.runner import pairing as pairings
from gnnbench.runner.ledger import Ledger
from gnnbench.runner.pairing import Pairing
from gnnbench.runner.plan import Pair

PAIR = Pair(Cell("e", "b", "d", "m"), Cell("e", "a", "d", "m"))


@pytest.mark.parametrize("measure,rounds", [
    ({}, 12),  # 300 s for 5 pairs of 4 s and rounds of 0.5 s
    ({"time_budget_s": 40.0}, 6),  # 8 s a pair less 4, and the verification epoch
    ({"time_budget_s": 40.0, "pairs": [4]}, 10),
    ({"time_budget_s": 1.0}, 2),
    ({"time_budget_s": 1.0, "rounds": 8}, 8),  # as asked
])  # fmt: skip
def test_the_first_look_is_to_fit_the_budget(tmp_path, observer, measure, rounds):
    ledger = Ledger(tmp_path)
    pairing = Pairing(ledger, Measure(**measure), observer, None)
    assert pairing._rounds(PAIR, 4.0, 0.5) == rounds
    assert pairing._rounds(PAIR, 400.0, 50.0) == rounds  # decided in the first life
    assert Ledger(tmp_path).rounds_of == {PAIR.id: rounds}


@pytest.mark.parametrize("pairs", [[5], [5, 10], [5, 10, 20], [10, 20]])
@pytest.mark.parametrize("replica", [0, 1])
def test_a_life_in_doubt_twice_ends_a_comparison(tmp_path, observer, monkeypatch, pairs, replica):
    """No verdict comes of it; a long calibration leaves such lives out."""
    ledger, begun = Ledger(tmp_path), []

    class Doubted:
        def __init__(self, pair, number, *_):
            self.pair, self.number = pair, number

        def run(self, rounds):
            begun.append(self.number)
            ledger.record(
                "life", pair=self.pair.id, life=self.number, seconds=1.0,
                doubt="noise" if self.number in (2, 3) else "", void=self.number == 2,
            )  # fmt: skip

    monkeypatch.setattr(pairings, "Life", Doubted)
    monkeypatch.setattr(pairings, "logs", lambda ledger, pair: [0.1, -0.1] * 30)
    monkeypatch.setattr(Pairing, "_profile", lambda self, pair: None)
    system = replace(PAIR.system, replica=replica)

    def stop(*_, **__):
        return "enough" if len(begun) > pairs[-1] else ""

    monkeypatch.setattr("gnnbench.measure.rule.Rule.stop", stop)
    Pairing(ledger, Measure(pairs=pairs), observer, None)._run(Pair(system, PAIR.reference))
    (done,) = ledger.done.values()
    spared = replica and pairs[-1] >= 20
    assert done["why"] == ("enough" if spared else "doubt")
    assert len(begun) == (pairs[-1] + 1 if spared else 4)
