"""PGSampler on a GPU compared with the reference on the CPU."""

from __future__ import annotations

import torch
from gpu_graphs import Csc

from gnnbench.kernels.pgsampler import TaskStats, pgsampler
from gnnbench.kernels.picks import PickSpec
from gnnbench.kernels.sampler import hop_by_hop
from gnnbench.validation.same_work import same_work

IDS = [torch.int32, torch.int64]


KEY = 0x0123_4567_89AB_CDEF


UNWEIGHTED = ["reservoir", "reservoir_thinned", "floyd", "fisher_yates", "with_replacement"]


PICKS = [*UNWEIGHTED, "weighted_alias", "weighted_prefix"]


SOUND = ["persistent", "fusion", "non_persistent"]


def pick_of(name: str, csc: Csc) -> PickSpec:
    if name.startswith("weighted"):
        weights = torch.rand(csc.indices.numel(), generator=torch.Generator().manual_seed(3))
        weights[weights < 0.2] = 0
        return PickSpec.weighted(name, csc.indptr, weights)
    return PickSpec.of(name)


def on_gpu(csc: Csc, seeds, fanouts, pick="reservoir", put=lambda t: t.cuda(), **how):
    spec = PickSpec.of(pick)
    spec = PickSpec(spec.name, tuple(put(t) for t in spec.tables), spec.walk)
    how = {"key": KEY, "batch": 3, "with_positions": True, **how}
    return pgsampler(put(csc.indptr), put(csc.indices), seeds.cuda(), fanouts, pick=spec, **how)


def expected_of(csc: Csc, seeds, fanouts, pick="reservoir", **how):
    how = {"key": KEY, "batch": 3, "with_positions": True, **how}
    return hop_by_hop(
        csc.indptr, csc.indices, seeds, fanouts, pick=pick, frontier="cumulative", **how
    )


def assert_sound(batch, stats: TaskStats) -> None:
    assert (stats.lost, stats.stale) == (0, 0)
    # Exactly one task for each destination of each hop.
    assert stats.enqueued == stats.processed == sum(b.num_dst for b in batch.blocks)
    assert stats.capacity[0] == stats.enqueued + stats.parts


def check(csc: Csc, seeds, fanouts, pick="reservoir", **how) -> TaskStats:
    batch, stats = on_gpu(csc, seeds, fanouts, pick, **how)
    assert_sound(batch, stats)
    assert same_work(expected_of(csc, seeds, fanouts, pick), batch) is None
    for block in batch.blocks:
        assert block.indptr.dtype == block.indices.dtype == torch.int32
        assert block.src_nodes.dtype == csc.indices.dtype
        assert block.indptr.is_cuda
    return stats


# 0 <- 1 2 3, 1 <- 0, 2 <- 2 (self-loop) 4 4 (parallel), 3 isolated, 4 <- 0 1 2 3 4 5, 5 <- 0
HAND = Csc(
    torch.tensor([0, 3, 4, 7, 7, 13, 14]),
    torch.tensor([1, 2, 3, 0, 2, 4, 4, 0, 1, 2, 3, 4, 5, 0], dtype=torch.int32),
)
