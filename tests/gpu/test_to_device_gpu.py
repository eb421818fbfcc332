"""Copies of large host tensors to a GPU: every byte, for any type and shape."""

import pytest
import torch

from gnnbench.kernels import to_device as module
from gnnbench.kernels.to_device import to_device

pytestmark = pytest.mark.gpu
DEVICE = torch.device("cuda", 0)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(module, "CHUNK_BYTES", 1 << 16)
    monkeypatch.setattr(module, "WORTH_IT", 0)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float32, torch.uint8])
@pytest.mark.parametrize("shape", [(0,), (1,), (1 << 20,), (12345, 67), (3, 5, 100_001)])
def test_every_byte_arrives(dtype, shape):
    tensor = torch.randint(0, 127, shape).to(dtype)
    torch.cuda._sleep(20_000_000)  # copies are delayed, so that every buffer is in use
    copied = to_device(tensor, DEVICE)
    assert (copied.shape, copied.dtype, copied.device) == (tensor.shape, dtype, DEVICE)
    assert torch.equal(copied.cpu(), tensor)


def test_mapped_files_and_non_contiguous_tensors(tmp_path):
    whole = torch.arange(1 << 18, dtype=torch.int32)
    whole.numpy().tofile(tmp_path / "ids")
    mapped = torch.from_file(str(tmp_path / "ids"), False, 1 << 18, dtype=torch.int32)
    assert torch.equal(to_device(mapped, DEVICE).cpu(), whole)
    every_other = whole[::2]
    assert torch.equal(to_device(every_other, DEVICE).cpu(), every_other)


def test_locked_and_device_memory_are_copied_directly():
    locked = torch.arange(1 << 16).pin_memory()
    there = to_device(locked, DEVICE)
    assert torch.equal(there.cpu(), locked)
    assert to_device(there, DEVICE) is there


def test_result_is_ready_for_other_streams():
    tensor = torch.ones(1 << 22, dtype=torch.int32)
    torch.cuda._sleep(50_000_000)
    copied = to_device(tensor, DEVICE)
    with torch.cuda.stream(torch.cuda.Stream(DEVICE)):
        assert int(copied.sum()) == 1 << 22
