"""Picks computed by hand from chosen draws."""

import math

from gnnbench.kernels.reference import pick

HALF = 1 << 31  # bounded(HALF, n) is n // 2
QUARTER = 1 << 30
LAST = (1 << 32) - 1  # bounded(LAST, n) is n - 1


def test_reservoir_by_hand() -> None:
    # 3 slots and 5 items: item 3 takes slot 4 // 2 = 2, then item 4 takes slot 5 // 2 = 2.
    assert pick.reservoir(5, 3, [HALF, HALF]) == [0, 1, 4]
    # Item 3 takes slot 0; item 4 draws slot 4, which does not exist.
    assert pick.reservoir(5, 3, [0, LAST]) == [3, 1, 2]


def test_candidates_are_binomial() -> None:
    # 8 items with probability 1/4: none 3^8 / 4^8, one 8 * 3^7 / 4^8, at most 8.
    none, one, *_, eight = pick.candidate_counts(3)[:9]
    assert none == 3**8 * 2**16 - 1
    assert one == (3**8 + 8 * 3**7) * 2**16 - 1
    assert eight == LAST
    # For many items, cumulative Poisson probabilities: exp(-2), 3 exp(-2), 5 exp(-2).
    poisson = [round((1 << 32) * most * math.exp(-2)) - 1 for most in (1, 3, 5)]
    assert pick.candidate_counts(31)[:3] == poisson == [0x22A55546, 0x67EFFFD5, 0xAD3AAA64]


def test_reservoir_thinned_by_hand() -> None:
    # One slot. Items 1 to 7 use draws 0 to 6; cells of 8 and 16 items begin at draws 8 and 28.
    assert pick.thinned_cells(30, 1) == [(8, 3), (16, 4)]
    draws = [LAST] * 48
    draws[8] = draws[28] = 0  # no candidate
    assert pick.reservoir_thinned(30, 1, draws) == [0]
    draws[2] = 0  # item 3 takes slot 0
    assert pick.reservoir_thinned(30, 1, draws) == [3]
    # Two candidates of 8: the first is item 11, the middle of the cell, and draws slot 6 >> 2 = 1.
    draws[8], draws[9] = pick.candidate_counts(3)[1] + 1, HALF
    assert pick.reservoir_thinned(30, 1, draws) == [3]
    # The second is item 8 + 0 and draws slot 0.
    draws[10] = 1
    assert pick.reservoir_thinned(30, 1, draws) == [8]
    # A repeated place is replaced by the last item of the cell, 15, which draws slot 0.
    draws[9] = 1
    assert pick.reservoir_thinned(30, 1, draws) == [15]
    # One candidate of the last cell: place 14 is beyond the row, place 13 is its last item.
    draws[28], draws[29] = pick.candidate_counts(4)[0] + 1, 14 << 28
    assert pick.reservoir_thinned(30, 1, draws) == [15]
    draws[29] = 13 << 28
    assert pick.reservoir_thinned(30, 1, draws) == [29]


def test_floyd_by_hand() -> None:
    # Bounds 3, 4, 5: draws 1, then 2, then 2 again, which is replaced by the last item, 4.
    assert pick.floyd(5, 3, [HALF, HALF, HALF]) == [1, 2, 4]
    assert pick.floyd(5, 3, [0, 0, 0]) == [0, 3, 4]
    assert pick.floyd(5, 3, [LAST, LAST, LAST]) == [2, 3, 4]


def test_fisher_yates_by_hand() -> None:
    # Entry 2 of 0 1 2 3 4 is drawn and replaced by the last; entry 2 of 0 1 4 3; entry 1 of 0 1 3.
    assert pick.fisher_yates(5, 3, [HALF, HALF, HALF]) == [2, 4, 1]
    assert pick.fisher_yates(5, 3, [0, 0, 0]) == [0, 4, 3]
    assert pick.fisher_yates(5, 3, [LAST, LAST, LAST]) == [4, 3, 2]


def test_with_replacement_by_hand() -> None:
    assert pick.with_replacement(5, 3, [HALF, HALF, LAST]) == [2, 2, 4]


def test_weighted_alias_by_hand() -> None:
    # Entry 0 is kept for a quarter of the second draws, entry 1 always.
    threshold, alias = [1 << 30, LAST], [1, 1]
    assert pick.weighted_alias(threshold, alias, 3, [0, (1 << 30) - 1, 0, 1 << 30, LAST, 0]) == [
        0,
        1,
        1,
    ]


def test_weighted_prefix_by_hand() -> None:
    # Weights 1, 0, 3: a quarter of the words select entry 0, the others entry 2.
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

    # No restart (the first step ignores its restart draw): 0 -> 1 -> 3.
    assert walk(1, 2, 9, [0, 0, HALF, 0]) == [(1, 1), (3, 1)]
    # A restart before the second step: 0 -> 1, then 0 -> 2.
    assert walk(1, 2, 9, [0, 0, HALF - 1, HALF]) == [(1, 1), (2, 1)]
    # Node 3 has no neighbours, so the walk restarts: 0 -> 1 -> 3, then 0 -> 2 -> 0.
    assert walk(1, 4, 9, [0, 0, LAST, 0, LAST, LAST, LAST, 0]) == [(0, 1), (1, 1), (2, 1), (3, 1)]
    # Two walks 0 -> 2 -> 0; with fanout 1, only the most visited node with the smallest id.
    assert walk(2, 2, 9, [0, LAST, LAST, 0] * 2) == [(0, 2), (2, 2)]
    assert walk(2, 2, 1, [0, LAST, LAST, 0] * 2) == [(0, 2)]


def test_rows_up_to_the_fanout_are_complete_and_need_no_draws() -> None:
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


def test_rows_without_edges_or_weights_have_no_positions() -> None:
    assert pick.positions("with_replacement", 0, 3, []) == []
    assert pick.positions("weighted_alias", 2, 3, [], [[0, 0], [pick.NO_WEIGHT] * 2]) == []
    assert pick.positions("weighted_prefix", 2, 3, [], [[0, 0]]) == []


def test_integer_weights_by_hand() -> None:
    assert pick.integer_weights([1.0, 0.0, 3.0, 4.0]) == [1 << 29, 0, 3 << 29, 1 << 31]
    assert pick.integer_weights([1e-300, 1.0]) == [1, 1 << 31]
    assert pick.integer_weights([0.0, 0.0]) == [0, 0]
    assert pick.integer_weights([]) == []


def test_alias_table_by_hand() -> None:
    # 8 parts in 4 buckets of 2: entry 0 fills half of bucket 0, entry 1 nothing; entry 2 gives 1
    # part to bucket 0 and 2 parts to bucket 1; entry 3 fills buckets 2 and 3.
    assert pick.alias_table([1, 0, 3, 4]) == ([HALF, 0, 0, pick.CERTAIN], [2, 2, 3, 3])
    assert pick.alias_table([5, 5]) == ([pick.CERTAIN] * 2, [0, 1])
    assert pick.alias_table([0, 0]) == ([0, 0], [pick.NO_WEIGHT] * 2)
    assert pick.alias_table([]) == ([], [])


def test_prefix_table_by_hand() -> None:
    assert pick.prefix_table([1, 0, 3, 4]) == [1, 1, 4, 8]
