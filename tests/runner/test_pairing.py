"""How many rounds a pair has: by costs, known noise and the budget, once for all its lives."""

import pytest

from gnnbench.cell import Cell
from gnnbench.experiment import Measure
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
