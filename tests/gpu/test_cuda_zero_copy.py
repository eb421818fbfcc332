"""The device reads rows from locked host memory: identical to the table, and no other memory."""

from types import SimpleNamespace

import pytest
import torch
from gpu_graphs import assert_same

from gnnbench.core.counters import Counts
from gnnbench.core.errors import UsageError
from gnnbench.features.uva import ZeroCopyGather
from gnnbench.kernels.access import ACCESSES
from gnnbench.kernels.features import gather_zero_copy

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("ids_dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("dim", [1, 3, 4, 100, 128, 129, 602])
def test_rows_equal_the_table(ids_dtype, dim):
    generator = torch.Generator().manual_seed(dim)
    table = torch.randn(500, dim, generator=generator).pin_memory()
    ids = torch.randint(0, 500, (777,), generator=generator).to(ids_dtype)
    rows = gather_zero_copy(table, ids.cuda())
    assert rows.is_cuda
    assert_same(rows, table[ids.long()])


@pytest.mark.parametrize("access", ACCESSES)
def test_rows_are_written_to_given_memory(access):
    """And only there: rows of 480 bytes between guards."""
    table = torch.randn(500, 120).pin_memory()
    ids = torch.randint(0, 500, (77,))
    memory = torch.full((79, 120), 7.0, device="cuda")
    out = memory[1:-1]
    assert gather_zero_copy(table, ids.cuda(), access, out=out) is out
    assert_same(out, table[ids])
    assert torch.equal(memory[::78].cpu(), torch.full((2, 120), 7.0))
    for wrong in (memory, memory[1:-1, :4], memory[1:-1].double(), memory[1:-1].cpu()):
        with pytest.raises(UsageError, match="out must"):
            gather_zero_copy(table, ids.cuda(), access, out=wrong)


def test_empty_requests():
    table = torch.ones(5, 4).pin_memory()
    none = torch.empty(0, dtype=torch.int64, device="cuda")
    assert gather_zero_copy(table, none).shape == (0, 4)


def test_unlocked_memory_is_refused():
    ids = torch.tensor([1], device="cuda")
    with pytest.raises(UsageError, match="locked for CUDA"):
        gather_zero_copy(torch.ones(5, 4), ids)
    with pytest.raises(UsageError, match="ids must be on a CUDA device"):
        gather_zero_copy(torch.ones(5, 4).pin_memory(), ids.cpu())
    with pytest.raises(UsageError, match="on the CPU"):
        gather_zero_copy(torch.ones(5, 4, device="cuda"), ids)
    # The device still works after a refusal.
    assert float(torch.ones(3, device="cuda").sum()) == 3


def test_store_serves_any_table_and_releases_it():
    table = torch.randn(1000, 60)[:, ::2]  # not contiguous, not pinned
    job = SimpleNamespace(
        graph=SimpleNamespace(features=table), device=torch.device("cuda"), counts=Counts()
    )
    store = ZeroCopyGather(job)
    ids = torch.tensor([999, 0, 3, 3])
    assert_same(store.load(SimpleNamespace(input_nodes=ids.cuda())), table[ids])
    assert job.counts.rows()[0] == ["features", "feature_bytes", "zero_copy", 4 * 30 * 4]
    store.close()
    store.close()
