"""fused_id_map on the GPU maps ids like the CPU's three passes."""

import numpy as np
import pytest
import torch

from gnnbench.core.errors import UsageError
from gnnbench.kernels.fused import fused_id_map
from gnnbench.kernels.sampler import id_map

pytestmark = pytest.mark.gpu

IDS = [torch.int32, torch.int64]


@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("num_dst, num_neighbors", [(0, 0), (0, 9), (9, 0), (1, 1), (900, 300_000)])
@pytest.mark.parametrize("top", [1000, 2**31 - 1])
def test_id_map_equals_three_passes(dtype, num_dst, num_neighbors, top):
    rng = np.random.default_rng(num_neighbors)
    dst = torch.from_numpy(rng.permutation(1000)[:num_dst] * (top // 1000)).to(dtype)
    neighbors = torch.from_numpy(rng.integers(0, top, num_neighbors)).to(dtype)
    wanted, _ = id_map(dst, neighbors)
    src, (local,) = fused_id_map(dst.cuda(), [neighbors.cuda()])
    src, local = src.cpu(), local.cpu()
    assert src.dtype == dtype
    assert local.dtype == torch.int32
    assert torch.equal(src[:num_dst], dst)
    assert torch.equal(src.sort().values, wanted.sort().values)
    assert torch.equal(src[local.long()], neighbors)


def test_id_map_of_wide_ids_and_of_one_frequent_id():
    dst = torch.tensor([1 << 40, (1 << 40) + (1 << 32), 2**63 - 2], device="cuda")
    neighbors = torch.tensor([1 << 32, 1 << 40, 0, 2**63 - 2, 1 << 32], device="cuda")
    src, (local,) = fused_id_map(dst, [neighbors])
    assert src.numel() == 5
    assert torch.equal(src[:3], dst)
    assert torch.equal(src[local.long()], neighbors)
    hot = torch.full((200_000,), 4, dtype=torch.int32, device="cuda")
    src, (local,) = fused_id_map(torch.tensor([], dtype=torch.int32, device="cuda"), [hot])
    assert src.tolist() == [4]
    assert int(local.abs().max()) == 0


@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("nodes", [0, 1, 40, 100_000])
@pytest.mark.parametrize("hops", [0, 1, 3, 11])
def test_id_map_of_several_hops(dtype, nodes, hops):
    rng = np.random.default_rng(hops)
    dst = torch.from_numpy(rng.permutation(5000)[:30]).to(dtype)
    neighbors = [torch.from_numpy(rng.integers(0, 5000, 700 * h)).to(dtype) for h in range(hops)]
    src, local = fused_id_map(dst.cuda(), [t.cuda() for t in neighbors], nodes=nodes)
    src = src.cpu()
    known = dst
    for ids, renamed in zip(neighbors, local, strict=True):
        known, _ = id_map(known, ids)
        assert torch.equal(src[: known.numel()].sort().values, known.sort().values)
        assert torch.equal(src[renamed.cpu().long()], ids)
    assert src.numel() == known.numel()
    assert torch.equal(src[:30], dst)


def test_id_map_errors():
    ids = torch.tensor([3, 1], device="cuda")
    with pytest.raises(UsageError, match="dst holds an id twice"):
        fused_id_map(torch.tensor([3, 1, 3], device="cuda"), [ids])
    for dst, neighbors in ((ids, -ids), (-ids, ids)):
        with pytest.raises(UsageError, match="dst or neighbors holds a negative id"):
            fused_id_map(dst, [neighbors])
    with pytest.raises(UsageError, match="neighbors must be int64"):
        fused_id_map(ids, [ids.int()])
