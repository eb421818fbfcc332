"""Copies through a ring of buffers: no buffer is overwritten while its copy is in progress."""

import pytest
import torch

from gnnbench.kernels import to_device as module
from gnnbench.kernels.to_device import send, to_device


class Late:
    """A copy that completes only when it is waited for."""

    waiting = 0

    def __init__(self, piece, target):
        self.piece, self.target = piece, target
        Late.waiting += 1

    def synchronize(self):
        self.target.copy_(self.piece)
        Late.waiting -= 1


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 16, 23, 24, 25, 100])
@pytest.mark.parametrize("buffers", [1, 3])
def test_late_copies_are_complete(size, buffers):
    source, target = torch.arange(size), torch.full((size,), -1)
    send(source, target, [torch.zeros(8, dtype=torch.int64) for _ in range(buffers)], Late)
    assert torch.equal(source, target) and Late.waiting == 0


def test_cpu_returns_the_same_tensor(monkeypatch):
    monkeypatch.setattr(module, "WORTH_IT", 0)
    tensor = torch.arange(5)
    assert to_device(tensor, torch.device("cpu")) is tensor
