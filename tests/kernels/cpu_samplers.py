"""The whole-batch samplers of the CPU, with the arguments of ``sampler.hop_by_hop``."""

from functools import partial
from typing import Any

from torch import Tensor

from gnnbench.core.minibatch import MiniBatch
from gnnbench.kernels.fused import DenseMap, fastsample, fused_map
from gnnbench.kernels.gnnlab import VersionedTable, gnnlab
from gnnbench.kernels.pgsampler import TaskStats, pgsampler
from gnnbench.kernels.sampler import hop_by_hop

_maps: dict[int, DenseMap] = {}
_table = VersionedTable()


def fused_map_batch(*args: Any, **how: Any) -> MiniBatch:
    return fused_map(*args, **how)[0]


def fastsample_batch(indptr: Tensor, *args: Any, **how: Any) -> MiniBatch:
    """Uses one dense map for all graphs of a size; asserts that each batch clears it."""
    n = indptr.numel() - 1
    dense_map = _maps.setdefault(n, DenseMap.of(n))
    try:
        return fastsample(indptr, *args, **how, dense_map=dense_map)[0]
    finally:
        assert (dense_map.ids == -1).all()


def gnnlab_batch(*args: Any, **how: Any) -> MiniBatch:
    """Uses one versioned table for all graphs and batches."""
    return gnnlab(*args, **how, table=_table)


def pgsampler_batch(*args: Any, frontier: str = "cumulative", **how: Any) -> MiniBatch:
    """Asserts that no task is lost; supports the cumulative frontier only."""
    assert frontier == "cumulative"
    batch, stats = pgsampler(*args, **how)
    assert_tasks_processed(batch, stats)
    return batch


def assert_tasks_processed(batch: MiniBatch, stats: TaskStats) -> None:
    """Exactly one task was processed for each destination of each hop."""
    assert (stats.lost, stats.stale) == (0, 0)
    assert stats.enqueued == stats.processed == sum(b.num_dst for b in batch.blocks)
    assert stats.capacity == (stats.enqueued + stats.parts, batch.sampled_edges)


FUSED = {
    "fused_by_hop": partial(hop_by_hop, id_map="fused"), "fused_map": fused_map_batch,
    "fastsample": fastsample_batch,
    "algorithm_1": partial(fastsample_batch, kernel="algorithm-1"), "gnnlab": gnnlab_batch,
}  # fmt: skip
SAMPLERS = {"hop_by_hop": hop_by_hop, **FUSED, "pgsampler": pgsampler_batch}
