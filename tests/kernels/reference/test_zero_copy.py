"""The address model of zero-copy rows: the paper's example and hand-computed requests."""

import pytest

from gnnbench.kernels.reference.zero_copy import lines, requests, row_requests


def test_example_of_the_paper():
    """Rows of 480 bytes, the second of them: 8 requests become 5 (Fig. 5)."""
    assert requests([1], 120) == 8
    assert requests([1], 120, aligned=True) == 5


@pytest.mark.parametrize(
    "ids,features,naive,aligned",
    [
        ([0], 32, 1, 1),  # a line is a row
        ([3, 1], 32, 2, 2),
        ([0], 64, 2, 2),
        ([1], 256, 8, 8),  # a multiple of a line is not shifted
        ([1], 16, 1, 1),  # shorter than a line: half of one
        ([0, 2], 16, 2, 2),
        # 33 features, row 1: bytes 132 to 264, lines 1 and 2. The first warp reads both lines, the
        # second warp line 2. With the shift, the first warp still reads both.
        ([1], 33, 3, 3),
        # 261 features, row 1: bytes 1044 to 2088, lines 8 to 16: nine warps, eight of two lines
        ([1], 261, 17, 10),
    ],
)
def test_requests_by_hand(ids, features, naive, aligned):
    assert requests(ids, features) == naive
    assert requests(ids, features, aligned=True) == aligned


def test_alignment_never_adds_requests():
    for features in range(33, 300, 7):
        for row in range(40):
            assert requests([row], features, aligned=True) <= requests([row], features)


def test_requests_of_rows_by_hand():
    """Rows of 480 bytes are one load of 30 lanes, which reads 4 or 5 lines, shifted or not."""
    for aligned in (False, True):
        assert row_requests([0], 480, aligned) == 4  # bytes 0 to 479
        assert row_requests([1], 480, aligned) == 5  # bytes 480 to 959, lines 3 to 7
        per_row = row_requests(range(4096), 480, aligned) / 4096
        assert per_row == lines(range(4096), 120) / 4096 == 4.5


@pytest.mark.parametrize(
    "ids,row_bytes,naive,aligned",
    [
        ([1], 1024, 8, 8),
        # 257 units of 4 bytes, 4 bytes into a line: 8 loads of 2 lines, and one unit. With the
        # shift 7 loads of one line; the next one reads the end of the row and its begin.
        ([1], 1028, 17, 10),
        # 129 units of 16 bytes, 16 bytes into a line: 4 loads of 5 lines, and one unit. With the
        # shift 3 loads of 4 lines; the next one reads 4 lines at the end of the row and its begin.
        ([1], 2064, 21, 18),
        ([0, 1], 64, 1, 1),  # a warp reads both rows, of one line, by one load
        ([0, 2], 64, 2, 2),
        ([5], 2, 1, 1),
    ],
)
def test_requests_of_rows_by_width(ids, row_bytes, naive, aligned):
    assert row_requests(ids, row_bytes) == naive
    assert row_requests(ids, row_bytes, aligned=True) == aligned


def test_requests_of_elements_and_of_rows_agree_for_rows_of_whole_lines():
    ids = [3, 9, 4]
    assert requests(ids, 256) == row_requests(ids, 1024) == 24
