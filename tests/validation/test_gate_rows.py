"""Feature rows compared with the table bit by bit, in chunks."""

from types import SimpleNamespace

import pytest
import torch

from gnnbench.validation import feature_rows as check_rows
from gnnbench.validation import gate

IDS = torch.tensor([4, 0, 6, 6, 2], dtype=torch.int32)


def table(dtype=torch.float32, width=3):
    return torch.arange(7 * width, dtype=dtype).view(7, width)


def check(features, rows, ids=IDS):
    gate.check_features(SimpleNamespace(features=features), ids, rows)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("piece", [1, 24, 1 << 23])  # bytes: a row at a time, two, all
def test_every_bit_of_every_row_is_compared(dtype, piece, monkeypatch):
    monkeypatch.setattr(check_rows, "PIECE", piece)
    features = table(dtype)
    expected = features[IDS.long()]
    check(features, expected)
    for row in range(len(IDS)):
        for column in range(3):
            rows = expected.clone()
            rows.view(torch.uint8)[row, (column + 1) * rows.element_size() - 1] ^= 1
            with pytest.raises(gate.Fault, match="feature rows differ"):
                check(features, rows)


def test_bits_are_compared_instead_of_values():
    features = table()
    features[4, 0], features[0, 0] = float("nan"), 0.0
    rows = features[IDS.long()]
    check(features, rows)
    rows[1, 0] = -0.0
    with pytest.raises(gate.Fault):
        check(features, rows)


@pytest.mark.parametrize(
    "rows",
    [table()[IDS.long()][:4], table()[IDS.long()][:, :2], table()[IDS.long()].double(),
     table()[IDS.long()].flatten(), torch.empty(0, 3)],
    ids=["rows", "columns", "dtype", "dims", "none"],
)  # fmt: skip
def test_rows_of_another_shape_or_dtype_are_a_fault(rows):
    with pytest.raises(gate.Fault):
        check(table(), rows)


@pytest.mark.parametrize("width", [0, 3])
def test_no_rows_are_accepted(width):
    check(table(width=width), torch.empty(0, width), IDS[:0])


def test_rows_may_be_non_contiguous():
    features = table()
    rows = features[IDS.long()].t().contiguous().t()
    check(features, rows)
    check(features, features[IDS.long()].repeat_interleave(2, 0)[::2])


@pytest.mark.parametrize("bad", [-1, 7])
def test_ids_outside_the_table_are_a_fault(bad):
    ids = torch.tensor([0, bad])
    with pytest.raises(gate.Fault):
        check(table(), table()[[0, bad % 7]], ids)
