"""Ranks with one part of the graph each, over NCCL: the work of one GPU without a whole table."""

from dataclasses import replace

import pytest
import torch
from compose import counted, make, run_alike
from two_processes import alive

pytestmark = pytest.mark.gpu(count=2)

SMALL = {"batch_size": 4, "fanouts": (2, 2), "max_batches": 12, "device": "cuda"}
COPIES, WIDTH = 15, 1 << 14  # of 400 rows of 64 KiB each


def copied(graph):
    """Several disjoint copies of a graph with wide rows; training nodes are in the first copy."""
    nodes, edges = graph.num_nodes, graph.num_edges
    starts = torch.arange(COPIES).repeat_interleave(nodes) * edges
    moved = torch.arange(COPIES, dtype=torch.int32).repeat_interleave(edges) * nodes
    return replace(
        graph,
        indptr=torch.cat(
            [graph.indptr[:-1].repeat(COPIES) + starts, torch.tensor([COPIES * edges])]
        ),
        indices=graph.indices.repeat(COPIES) + moved,
        features=torch.randn(COPIES * nodes, WIDTH, generator=torch.Generator().manual_seed(3)),
        labels=graph.labels.repeat(COPIES),
    )


@pytest.mark.parametrize(
    ("mode", "features"), [("vanilla", "gpu"), ("hybrid", "gpu"), ("hybrid", "host")]
)
def test_ranks_do_the_work_of_one_gpu_with_only_their_parts(small_graph, mode, features):
    wide = copied(small_graph)
    plain = make(wide, settings={"features": features}, **SMALL)
    settings = {
        "features": features, "schedule": "data-parallel", "schedule.partition": mode,
        "schedule.method": "random",
    }  # fmt: skip
    system = make(wide, settings=settings, **SMALL)
    try:
        checked = system.check()
        assert checked.ok, checked.reason
        for epoch in range(2):
            ours, _ = run_alike(system, plain, epoch)
        counts = counted(ours)
        assert counts["features", "exchange_rounds", ""] == 12 * 2
        assert counts["features", "exchange_time_s", "1"] > 0
        # Half of the rows, and 80 MB for batches, the wide layer with its moments, and cuBLAS.
        assert counts["schedule", "rank_peak_bytes", "1"] < 0.9 * wide.features.nbytes
    finally:
        pids = system.schedule.pids
        system.close()
    assert not any(map(alive, pids))
