"""The picks worked out by hand from chosen draws."""

import math

from gnnbench.kernels.reference import pick

HALF = 1 << 31  # bounded(HALF, n) is n // 2
QUARTER = 1 << 30
LAST = (1 << 32) - 1  # bounded(LAST, n) is n - 1


def test_reservoir_by_hand() -> None:
    # Items 3 and 4 of 5 come for 3 slots: 3 gets slot 4 // 2 = 2, 4 gets slot 5 // 2 = 2.
    assert pick.reservoir(5, 3, [HALF, HALF]) == [0, 1, 4]
    # 3 gets slot 0, 4 gets slot 4, which is none.
    assert pick.reservoir(5, 3, [0, LAST]) == [3, 1, 2]


def test_candidates_are_binomial() -> None:
    # 8 items, a quarter of them: none 3^8 / 4^8, one 8 * 3^7 / 4^8, and never more than 8.
    none, one, *_, eight = pick.candidate_counts(3)[:9]
    assert none == 3**8 * 2**16 - 1
    assert one == (3**8 + 8 * 3**7) * 2**16 - 1
    assert eight == LAST
    # Of many items they are Poisson's: exp(-2), 3 exp(-2).
    poisson = [round((1 << 32) * most * math.exp(-2)) - 1 for most in (1, 3, 5)]
    assert pick.candidate_counts(31)[:3] == poisson == [0x22A55546, 0x67EFFFD5, 0xAD3AAA64]


def test_reservoir_thinned_by_hand() -> None:
    # One slot: items 1 to 7 singly, draws 0 to 6; then cells of 8 and of 16 items, draws 8 and 28.
    assert pick.thinned_cells(30, 1) == [(8, 3), (16, 4)]
    draws = [LAST] * 48
    draws[8] = draws[28] = 0  # no candidate
    assert pick.reservoir_thinned(30, 1, draws) == [0]
    draws[2] = 0  # item 3 takes the slot
    assert pick.reservoir_thinned(30, 1, draws) == [3]
    # Two of 8: of seven places the middle, and half a draw is left: item 11 has slot 6 >> 2.
    draws[8], draws[9] = pick.candidate_counts(3)[1] + 1, HALF
    assert pick.reservoir_thinned(30, 1, draws) == [3]
    # A draw less of it, and slot 0 of 3: 0 + 8 and the rest of it nearly 0.
    draws[10] = 1
    assert pick.reservoir_thinned(30, 1, draws) == [8]
    # The same place again is the last of the cell, 15; its slot is 0.
    draws[9] = 1
    assert pick.reservoir_thinned(30, 1, draws) == [15]
    # One candidate of the last cell: place 14 is behind the row, place 13 is its last item.
    draws[28], draws[29] = pick.candidate_counts(4)[0] + 1, 14 << 28
    assert pick.reservoir_thinned(30, 1, draws) == [15]
    draws[29] = 13 << 28
    assert pick.reservoir_thinned(30, 1, draws) == [29]


def test_floyd_by_hand() -> None:
    # Bounds 3, 4, 5 for 3 of 5: 1, then 2, then 2 again and so the last, 4.
    assert pick.floyd(5, 3, [HALF, HALF, HALF]) == [1, 2, 4]
    assert pick.floyd(5, 3, [0, 0, 0]) == [0, 3, 4]
    assert pick.floyd(5, 3, [LAST, LAST, LAST]) == [2, 3, 4]


def test_fisher_yates_by_hand() -> None:
    # 0 1 2 3 4: entry 2 goes and 4 fills its place, 0 1 4 3: entry 2 again, 0 1 3: entry 1.
    assert pick.fisher_yates(5, 3, [HALF, HALF, HALF]) == [2, 4, 1]
    assert pick.fisher_yates(5, 3, [0, 0, 0]) == [0, 4, 3]
    assert pick.fisher_yates(5, 3, [LAST, LAST, LAST]) == [4, 3, 2]


def test_with_replacement_by_hand() -> None:
    assert pick.with_replacement(5, 3, [HALF, HALF, LAST]) == [2, 2, 4]


def test_weighted_alias_by_hand() -> None:
    # Entry 0 of 2 keeps a quarter of the coins, entry 1 keeps all.
    threshold, alias = [1 << 30, LAST], [1, 1]
    assert pick.weighted_alias(threshold, alias, 3, [0, (1 << 30) - 1, 0, 1 << 30, LAST, 0]) == [
        0,
        1,
        1,
    ]


def test_weighted_prefix_by_hand() -> None:
    # Weights 1, 0, 3: a quarter of the words is entry 0's, the rest entry 2's.
    assert pick.weighted_prefix(
        [1, 1, 4], 4, [0, 0, QUARTER - 1, LAST, QUARTER, 0, LAST, LAST]
    ) == [
        0,
        0,
        2,
        2,
    ]


def test_random_walk_by_hand() -> None:
    # 0 <- 1 2, 1 <- 3, 2 <- 0, 3 isolated
    rows: list[list[int]] = [[1, 2], [3], [0], []]

    def walk(walks: int, length: int, fanout: int, draws: list[int]) -> list[tuple[int, int]]:
        return pick.random_walk(rows.__getitem__, 0, walks, length, HALF, fanout, draws)

    # No restart (the coin of the first step is not looked at): 0 -> 1 -> 3.
    assert walk(1, 2, 9, [0, 0, HALF, 0]) == [(1, 1), (3, 1)]
    # A restart before the second step: 0 -> 1, again 0 -> 2.
    assert walk(1, 2, 9, [0, 0, HALF - 1, HALF]) == [(1, 1), (2, 1)]
    # Node 3 leads nowhere: 0 -> 1 -> 3, from 0 on -> 2 -> 0.
    assert walk(1, 4, 9, [0, 0, LAST, 0, LAST, LAST, LAST, 0]) == [(0, 1), (1, 1), (2, 1), (3, 1)]
    # Two walks, 0 -> 2 -> 0 and 0 -> 2 -> 0; of the most visited one.
    assert walk(2, 2, 9, [0, LAST, LAST, 0] * 2) == [(0, 2), (2, 2)]
    assert walk(2, 2, 1, [0, LAST, LAST, 0] * 2) == [(0, 2)]


def test_small_rows_are_taken_whole_and_draw_nothing() -> None:
    for name in pick.WITHOUT_REPLACEMENT:
        assert pick.positions(name, 3, 3, []) == [0, 1, 2]
        assert pick.positions(name, 0, 3, []) == []
        assert pick.draws_needed(name, 3, 3) == 0
    assert pick.draws_needed("floyd", 20, 5) == 5
    assert pick.draws_needed("reservoir", 20, 5) == 15
    assert pick.draws_needed("reservoir_thinned", 24, 5) == 19
    assert pick.draws_needed("reservoir_thinned", 25, 5) == 24 + 20
    assert pick.draws_needed("with_replacement", 3, 5) == 5
    assert pick.draws_needed("weighted_alias", 3, 5) == 10


def test_rows_without_anything_to_draw() -> None:
    assert pick.positions("with_replacement", 0, 3, []) == []
    assert pick.positions("weighted_alias", 2, 3, [], [[0, 0], [pick.NO_WEIGHT] * 2]) == []
    assert pick.positions("weighted_prefix", 2, 3, [], [[0, 0]]) == []


def test_integer_weights_by_hand() -> None:
    assert pick.integer_weights([1.0, 0.0, 3.0, 4.0]) == [1 << 29, 0, 3 << 29, 1 << 31]
    assert pick.integer_weights([1e-300, 1.0]) == [1, 1 << 31]
    assert pick.integer_weights([0.0, 0.0]) == [0, 0]
    assert pick.integer_weights([]) == []


def test_alias_table_by_hand() -> None:
    # Of 8 parts in 4 buckets of 2: entry 0 fills half of its own, 1 nothing; 2 gives 1 to bucket 0
    # and 2 to bucket 1, and has none left; 3 fills bucket 2 and its own.
    assert pick.alias_table([1, 0, 3, 4]) == ([HALF, 0, 0, pick.CERTAIN], [2, 2, 3, 3])
    assert pick.alias_table([5, 5]) == ([pick.CERTAIN] * 2, [0, 1])
    assert pick.alias_table([0, 0]) == ([0, 0], [pick.NO_WEIGHT] * 2)
    assert pick.alias_table([]) == ([], [])


def test_prefix_table_by_hand() -> None:
    assert pick.prefix_table([1, 0, 3, 4]) == [1, 1, 4, 8]
