"""Padding on a GPU is identical to padding on the CPU."""

import pytest
import torch

from gnnbench.core.errors import UsageError
from gnnbench.kernels.padding import pad_blocks

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("weighted", [False, True])
def test_padding_equals_the_cpu(seed, weighted):
    """Several layers, one of them large, offsets at every alignment."""
    draw = torch.Generator().manual_seed(seed)
    layers = 1 + seed
    rows = [int(torch.randint(0, 9000, (), generator=draw)) for _ in range(layers)]
    rows[0] = 150_000
    batch, room = ([], [], []), ([], [], [])
    for n in rows:
        degrees = torch.randint(0, 9, (n,), generator=draw)
        indptr = torch.cat([torch.zeros(1, dtype=torch.int64), degrees.cumsum(0)]).int()
        edges, more = int(indptr[-1]), int(torch.randint(0, 999, (), generator=draw))
        behind = 1 + int(torch.randint(0, 99, (), generator=draw))
        batch[0].append(indptr)
        batch[1].append(torch.arange(edges, dtype=torch.int32))
        room[0].append(torch.full((n + 1 + behind,), 5, dtype=torch.int32))
        room[1].append(torch.full((edges + more,), 5, dtype=torch.int32))
        if weighted:
            batch[2].append(torch.rand(edges, generator=draw))
            room[2].append(torch.ones(edges + more))
    labels, room_labels = torch.arange(rows[-1]), torch.full((rows[-1] + seed,), 5)

    def there(parts):
        return [[t.cuda() for t in part] for part in parts]

    ours, labels_there = there(room), room_labels.cuda()
    pad_blocks(*there(batch), labels.cuda(), *ours, labels_there)
    pad_blocks(*batch, labels, *room, room_labels)
    for own, right in zip(ours, room, strict=True):
        assert all(torch.equal(a.cpu(), b) for a, b in zip(own, right, strict=True))
    assert torch.equal(labels_there.cpu(), room_labels)


def test_memory_of_two_devices_is_refused():
    host, gpu = torch.zeros(3, dtype=torch.int32), torch.zeros(3, dtype=torch.int32, device="cuda")
    labels = torch.zeros(1, dtype=torch.int64, device="cuda")
    room = [[torch.zeros_like(gpu)], [torch.zeros_like(gpu)], [], torch.zeros_like(labels)]
    with pytest.raises(UsageError, match="must be on a CUDA device"):
        pad_blocks([gpu[:2]], [host[:1]], [], labels, *room)
