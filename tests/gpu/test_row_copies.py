"""Rows copied one by one from locked host memory: identical to the table, and no other memory."""

from types import SimpleNamespace

import pytest
import torch
from gpu_graphs import assert_same

from gnnbench.core.counters import Counts
from gnnbench.core.errors import UsageError
from gnnbench.features.row_copies import RowCopies
from gnnbench.kernels.features import gather_by_copies

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("ids_dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("dim", [1, 3, 129, 5000])
def test_rows_are_written_to_given_memory(ids_dtype, dim, together):
    """And only there: between guards."""
    table = torch.randn(50, dim).pin_memory()
    ids = torch.randint(0, 50, (77,)).to(ids_dtype)
    memory = torch.full((79, dim), 7.0, device="cuda")
    out = memory[1:-1]
    assert gather_by_copies(table, ids, out, together) is out
    assert_same(out, table[ids.long()])
    assert torch.equal(memory[::78].cpu(), torch.full((2, dim), 7.0))


@pytest.mark.parametrize("together", [False, True])
def test_copies_keep_the_order_of_their_stream(together):
    """Kernels before and after them, on the default stream and on another."""
    table, ids = torch.randn(64, 4096).pin_memory(), torch.randperm(64)
    for stream in (torch.cuda.default_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            out = torch.zeros(64, 4096, device="cuda")
            for _ in range(20):
                out.fill_(3.0)
                gather_by_copies(table, ids, out, together)
                doubled = out * 2
            assert_same(doubled, table[ids] * 2)


@pytest.mark.parametrize("together", [False, True])
def test_empty_requests(together):
    none = torch.empty(0, dtype=torch.int64)
    out = torch.empty(0, 4, device="cuda")
    assert gather_by_copies(torch.ones(5, 4).pin_memory(), none, out, together) is out


def test_wrong_arguments_are_refused_before_any_copy():
    table, ids = torch.ones(5, 4).pin_memory(), torch.tensor([1, 4, 0])
    out = torch.zeros(3, 4, device="cuda")
    for wrong in (out[:2], out[:, :2], out.double()):
        with pytest.raises(UsageError, match="out must"):
            gather_by_copies(table, ids, wrong)
    with pytest.raises(UsageError, match="ids must be on the CPU"):
        gather_by_copies(table, ids.cuda(), out)
    with pytest.raises(UsageError, match="locked for CUDA"):
        gather_by_copies(torch.ones(5, 4), ids, out)
    for bad in (5, -1):
        with pytest.raises(UsageError, match=f"ids holds {bad} at position 2"):
            gather_by_copies(table, torch.tensor([1, 4, bad]), out)
    assert not out.any()


def test_store_serves_any_table_and_counts_its_copies():
    table = torch.randn(1000, 60)[:, ::2]  # not contiguous, not pinned
    job = SimpleNamespace(
        graph=SimpleNamespace(features=table), device=torch.device("cuda"), counts=Counts()
    )
    store = RowCopies(job)
    batch = SimpleNamespace(input_nodes=torch.tensor([999, 0, 3, 3]).cuda())
    rows = store.load(batch)
    assert_same(rows, table[batch.input_nodes.cpu()])
    out = torch.empty_like(rows)
    assert store.load_into(batch, out)
    assert_same(out, rows.cpu())
    assert job.counts.rows()[0] == ["features", "feature_bytes", "host_copy", 2 * 4 * 30 * 4]
    store.close()
