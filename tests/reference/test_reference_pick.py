"""The picks worked out by hand from chosen draws."""

from gnnbench.reference import pick

HALF = 1 << 31  # bounded(HALF, n) is n // 2
LAST = (1 << 32) - 1  # bounded(LAST, n) is n - 1


def test_reservoir_by_hand() -> None:
    # Items 3 and 4 of 5 come for 3 slots: 3 gets slot 4 // 2 = 2, 4 gets slot 5 // 2 = 2.
    assert pick.reservoir(5, 3, [HALF, HALF]) == [0, 1, 4]
    # 3 gets slot 0, 4 gets slot 4, which is none.
    assert pick.reservoir(5, 3, [0, LAST]) == [3, 1, 2]


def test_floyd_by_hand() -> None:
    # Bounds 3, 4, 5 for 3 of 5: 1, then 2, then 2 again and so the last, 4.
    assert pick.floyd(5, 3, [HALF, HALF, HALF]) == [1, 2, 4]
    assert pick.floyd(5, 3, [0, 0, 0]) == [0, 3, 4]
    assert pick.floyd(5, 3, [LAST, LAST, LAST]) == [2, 3, 4]


def test_small_rows_are_taken_whole_and_draw_nothing() -> None:
    for name in pick.WITHOUT_REPLACEMENT:
        assert pick.positions(name, 3, 3, []) == [0, 1, 2]
        assert pick.positions(name, 0, 3, []) == []
        assert pick.draws_needed(name, 3, 3) == 0
    assert pick.draws_needed("floyd", 20, 5) == 5
    assert pick.draws_needed("reservoir", 20, 5) == 15
