"""Memory of another process, registered in place and read by kernels."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from gpu_graphs import assert_same

from gnnbench.core.counters import Counts
from gnnbench.datasets import shared_memory
from gnnbench.features.host import StagedGather
from gnnbench.features.uva import ZeroCopyGather
from gnnbench.kernels import locked, shared
from gnnbench.kernels.features import gather_zero_copy
from gnnbench.kernels.locked import LockedTensor

pytestmark = pytest.mark.gpu


@pytest.fixture
def table(tmp_path):
    """A table of many pages, the last one partial, and a copy with the expected contents."""
    rows = torch.randn(50_001, 33, generator=torch.Generator().manual_seed(5))
    (tmp_path / "features.bin").write_bytes(rows.numpy().tobytes())
    descriptor = shared_memory.share_file(tmp_path / "features.bin")
    mapped = shared.map_shared(
        shared_memory.address_of(descriptor), torch.float32, tuple(rows.shape)
    )
    os.close(descriptor)
    return mapped, rows


def test_shared_table_is_registered_in_place_and_stays_read_only(table):
    shared_rows, rows = table
    made = LockedTensor(shared_rows, "cuda", "features")
    address = shared_rows.data_ptr()
    assert made.tensor.data_ptr() == address
    assert made.tensor.is_pinned()
    region = next(
        line.split()[1]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if int(line.split("-")[0], 16) <= address < int(line.split()[0].split("-")[1], 16)
    )
    assert region == "r--s"
    ids = torch.randperm(len(rows), generator=torch.Generator().manual_seed(1))
    assert_same(gather_zero_copy(made.tensor, ids.cuda()), rows[ids])
    made.close()
    assert not shared_rows.is_pinned()
    assert torch.equal(shared_rows, rows)


def test_two_readers_share_one_registration(table):
    shared_rows, rows = table
    first, second = (LockedTensor(shared_rows, "cuda", "features") for _ in range(2))
    first.close()
    assert shared_rows.is_pinned()
    ids = torch.arange(len(rows) - 1, -1, -1)
    assert_same(gather_zero_copy(second.tensor, ids.cuda()), rows[ids])
    second.close()
    assert not shared_rows.is_pinned()
    assert float((torch.ones(3, device="cuda") + 1).sum()) == 6  # no error is left behind


def test_failed_registration_leaves_the_table_unlocked_and_read_only(table, monkeypatch):
    shared_rows, _ = table
    monkeypatch.setattr(locked, "lock", lambda memory: 2)
    with pytest.raises(MemoryError, match="of features cannot be locked"):
        LockedTensor(shared_rows, "cuda", "features")
    monkeypatch.undo()
    assert not shared_rows.is_pinned()
    made = LockedTensor(shared_rows, "cuda", "features")
    assert made.tensor.is_pinned()
    made.close()


@pytest.mark.parametrize("store", [ZeroCopyGather, StagedGather])
def test_both_stores_read_the_shared_table(table, store):
    shared_rows, rows = table
    job = SimpleNamespace(
        graph=SimpleNamespace(features=shared_rows), device=torch.device("cuda:0"), counts=Counts()
    )
    served = store(job)
    for seed in range(3):
        ids = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))[:20_000]
        assert_same(served.load(SimpleNamespace(input_nodes=ids.cuda())), rows[ids])
    served.close()
