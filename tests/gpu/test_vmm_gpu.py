"""Host memory allocated by the driver: read by kernels, written by the host, and freed."""

import ctypes
import gc
from types import SimpleNamespace

import psutil
import pytest
import torch
from gpu_graphs import assert_same

from gnnbench.core.cell import Cell
from gnnbench.core.counters import LOCK_TIME, Counts
from gnnbench.core.job import Job
from gnnbench.features import Uva
from gnnbench.features.match import MatchStore
from gnnbench.kernels.access import ALIGNED, NAIVE, PAGE_ORDERED
from gnnbench.kernels.features import gather_once, gather_zero_copy
from gnnbench.kernels.locked import VMM, LockedTensor, vmm_memory

pytestmark = pytest.mark.gpu

PAGE = 2 << 20


def known_to_cuda(address, size):
    """Whether the driver knows the address; nothing is read there."""
    memory = (ctypes.c_uint8 * size).from_address(address)
    return torch.frombuffer(memory, dtype=torch.uint8).is_pinned()


@pytest.mark.parametrize("size", [1, 4097, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE + 5])
def test_kernels_read_what_the_host_writes(size):
    memory = vmm_memory(size, "cuda")
    assert memory.device.type == "cpu" and memory.dtype is torch.uint8 and memory.shape == (size,)
    memory.copy_(torch.arange(size, dtype=torch.int64).to(torch.uint8))
    ids = torch.tensor([size - 1, 0, size // 2])
    right = memory.clone()[ids]
    for access in (NAIVE, ALIGNED, PAGE_ORDERED):  # others need rows of 4 bytes
        assert_same(gather_zero_copy(memory, ids.cuda(), access), right)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("width", [1, 33, 128])
def test_copy_of_a_table(dtype, width):
    source = torch.randn(40_001, width, generator=torch.Generator().manual_seed(2)).to(dtype)
    made = LockedTensor(source, "cuda", "features", VMM)
    assert torch.equal(made.tensor, source)
    ids = torch.randperm(40_001, generator=torch.Generator().manual_seed(3)).cuda()
    assert_same(gather_zero_copy(made.tensor, ids), source[ids.cpu()])
    read = torch.zeros(1, dtype=torch.int64, device="cuda")
    batches = [ids, ids[:9]]
    out = torch.empty(40_010, width, dtype=dtype, device="cuda")
    assert_same(gather_once(made.tensor, batches, read, out), source[torch.cat(batches).cpu()])
    assert int(read) == 40_001
    made.close()


def test_memory_is_freed():
    """With its last tensor, repeatedly."""
    size = 4 << 30
    gc.collect()
    before = psutil.virtual_memory().available
    memory = vmm_memory(size, "cuda")
    part = memory[:5]
    address = memory.data_ptr()
    assert known_to_cuda(address, size)
    assert before - psutil.virtual_memory().available > size // 2
    del memory
    assert known_to_cuda(address, size)
    del part
    assert not known_to_cuda(address, size)
    assert before - psutil.virtual_memory().available < size // 2
    for _ in range(3):
        vmm_memory(size, "cuda")[-1] = 7
    assert before - psutil.virtual_memory().available < size // 2
    assert float((torch.ones(3, device="cuda") + 1).sum()) == 6  # no error is left behind


def test_free_waits_for_readers():
    table = torch.randn(200_000, 64)
    made = LockedTensor(table, "cuda", "features", VMM)
    ids = torch.arange(199_999, -1, -1, device="cuda")
    gather_zero_copy(made.tensor, ids[:3])
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        rows = gather_zero_copy(made.tensor, ids)
    made.close()
    assert stream.query()
    assert_same(rows, table.flip(0))


@pytest.mark.parametrize("over", [False, True], ids=["alone", "match"])
def test_store_with_vmm_memory(over):
    """Rows, allocation time, and no memory left after it is closed."""
    table = torch.randn(1000, 60)[:, ::2]
    graph = SimpleNamespace(name="t", features=table, num_nodes=1000)
    job = Job(Cell("e", "s", "t", "", device="cuda"), graph, Counts())
    under = Uva(memory=VMM).resolved("cuda").build(job)
    assert under.prepare(None)[LOCK_TIME] > 0
    store = MatchStore(job, under) if over else under
    address = under.table.data_ptr()
    for ids in ([999, 0, 3], [3, 5]):
        at = torch.tensor(ids)
        assert_same(store.load(SimpleNamespace(input_nodes=at.cuda())), table[at])
    assert known_to_cuda(address, 1)
    store.close()
    gc.collect()
    assert not known_to_cuda(address, 1)
    store.close()


def test_more_memory_than_available_is_refused():
    with pytest.raises(MemoryError, match="bytes are to be locked"):
        vmm_memory(psutil.virtual_memory().total * 2, "cuda")
    assert float((torch.ones(3, device="cuda") + 1).sum()) == 6
