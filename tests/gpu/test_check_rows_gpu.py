"""Comparison of feature rows on a GPU with the table on the host."""

import pytest
import stores
import torch

from gnnbench.validation import feature_rows as check_rows

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("piece", [1, 4096, 1 << 23])
@pytest.mark.parametrize("width", stores.WIDTHS)
@pytest.mark.parametrize("dtype", stores.DTYPES)
def test_one_wrong_bit_of_any_row_is_detected(dtype, width, piece, monkeypatch):
    monkeypatch.setattr(check_rows, "PIECE", piece)
    table = stores.table(dtype, width)
    draws = torch.Generator().manual_seed(width)
    ids = torch.randint(len(table), (97,), generator=draws)
    rows = table[ids].cuda()
    assert check_rows.same_rows(table, ids.cuda(), rows)
    for row in (0, 50, 96):
        wrong = rows.clone()
        wrong.view(torch.uint8)[row, -1] ^= 1
        assert not check_rows.same_rows(table, ids.cuda(), wrong)


def test_alternating_buffers_are_not_written_before_they_are_read():
    """Many pieces on a busy stream."""
    table = torch.randn(1 << 16, 256)
    ids = torch.randint(len(table), (1 << 17,), generator=torch.Generator().manual_seed(0))
    rows = table[ids].cuda()
    for _ in range(3):
        torch.cuda._sleep(50_000_000)
        assert check_rows.same_rows(table, ids, rows)
    rows[-1, -1] += 1
    torch.cuda._sleep(50_000_000)
    assert not check_rows.same_rows(table, ids, rows)
