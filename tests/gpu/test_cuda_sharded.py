"""The gather from shards that all lie on one GPU: rows, counts, and bad arguments."""

import pytest
import torch
from stores import DTYPES, WIDTHS, same

from gnnbench.core.errors import UsageError
from gnnbench.kernels.sharded import gather_sharded

pytestmark = pytest.mark.gpu

NODES = 997
RATIOS = (0, 1, 0.3, 1.0)  # 1: a single row


def table(dtype, width):
    draws = torch.Generator().manual_seed(width)
    raw = torch.randint(
        0, 256, (NODES * width * dtype.itemsize,), dtype=torch.uint8, generator=draws
    )
    return raw.view(dtype).view(NODES, width)


def dealt(rows, ranks):
    return [rows[rank::ranks].contiguous().cuda() for rank in range(ranks)]


def some_ids(n, dtype):
    return torch.randint(0, NODES, (n,), generator=torch.Generator().manual_seed(n)).to(dtype)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_rows_of_a_whole_table(ranks, dtype, width):
    rows = table(dtype, width)
    shards = dealt(rows, ranks)
    for n, ids_dtype in (
        (0, torch.int64),
        (1, torch.int32),
        (5000, torch.int32),
        (777, torch.int64),
    ):
        ids = some_ids(n, ids_dtype)
        for blocks, depth in ((0, 1), (0, 2), (0, 4), (3, 1), (3, 4)):
            counts = torch.zeros(3, dtype=torch.int64, device="cuda")
            own = ranks - 1
            actual = gather_sharded(shards, own, None, None, ids.cuda(), counts, blocks, depth)
            assert same(actual.cpu(), rows[ids.long()])
            mine = int((ids % ranks == own).sum())
            assert counts.tolist() == [mine, n - mine, 0]


@pytest.mark.parametrize("page_bytes", [0, 1 << 12, 1 << 21])
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize(
    ("dtype", "width"), [(torch.float32, 128), (torch.float16, 5), (torch.bfloat16, 129)]
)
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_rows_outside_all_shards_come_from_the_host(ranks, dtype, width, ratio, page_bytes):
    rows = table(dtype, width)
    cached = torch.randperm(NODES, generator=torch.Generator().manual_seed(4))
    cached = cached[: ratio if isinstance(ratio, int) else round(ratio * NODES)]
    places = torch.full((NODES,), -1, dtype=torch.int32)
    places[cached] = torch.arange(cached.numel(), dtype=torch.int32)
    shards, locked = dealt(rows[cached], ranks), rows.pin_memory()
    counts = torch.zeros(3, dtype=torch.int64, device="cuda")
    expected_counts = torch.zeros(3, dtype=torch.int64)
    for n in (0, 3, 2000):
        ids = some_ids(n, torch.int64)
        actual = gather_sharded(
            shards, 0, places.cuda(), locked, ids.cuda(), counts, page_bytes=page_bytes, readers=4
        )
        assert same(actual.cpu(), rows[ids])
        at = places[ids]
        mine = int(((at >= 0) & (at % ranks == 0)).sum())
        none = int((at < 0).sum())
        expected_counts += torch.tensor([mine, n - mine - none, none])
    assert torch.equal(counts.cpu(), expected_counts)


def test_unreadable_memory_is_refused():
    rows = table(torch.float32, 4)
    shards, ids = dealt(rows, 2), torch.arange(5, device="cuda")
    counts = torch.zeros(3, dtype=torch.int64, device="cuda")
    places = torch.zeros(NODES, dtype=torch.int32, device="cuda")

    def refused(words, shards=shards, own=0, places=None, host=None, ids=ids, counts=counts, **how):
        with pytest.raises(UsageError, match=words):
            gather_sharded(shards, own, places, host, ids, counts, **how)

    refused("1 to 64", shards=[])
    refused("1 to 64", shards=[shards[0]] * 65)
    refused("own must be one of the 2", own=2)
    refused("in round-robin order", shards=[shards[1], shards[0]])
    refused("rows of one shape", shards=[shards[0], shards[1][:, :2].contiguous()])
    refused("CUDA device", shards=[shards[0], shards[1].cpu()])
    refused("ids must be on a CUDA device", ids=ids.cpu())
    refused("depth must be 1, 2 or 4", depth=3)
    refused("blocks must be at least 0", blocks=-1)
    refused("counts must have 3", counts=counts[:2])
    refused("in pinned memory", places=places, host=rows.cuda())
    refused("locked for CUDA", places=places, host=rows)
    refused("a row for each of the places", places=places[:-1], host=rows.pin_memory())
