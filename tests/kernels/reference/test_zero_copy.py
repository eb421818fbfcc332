"""The address model of zero-copy rows: the paper's example and hand-computed requests."""

import pytest

from gnnbench.kernels.reference.zero_copy import requests


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
