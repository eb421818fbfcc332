"""Ranking of nodes by a cache policy, and the memory of ranking."""

from __future__ import annotations

import time
from collections.abc import Iterable

import torch
from torch import Tensor

from gnnbench.core.counters import HOTNESS_TIME, RANK_TIME, Metric
from gnnbench.core.job import Job
from gnnbench.features.policies.policy import CHUNK, OPTIMAL, Footprint, Policy, hotness, ranking
from gnnbench.measure.allocated import free_on

# Twice the GPU memory of counting and sorting: a concurrent process may rank, too.
NODE_BYTES, EDGE_BYTES = 160, 32


def ranked_for(
    job: Job, policy: Policy, footprint: Footprint, rows: int, epochs: Iterable[int] = ()
) -> tuple[Tensor, dict[Metric, float]]:
    """The first ``rows`` nodes in the order in which ``policy`` caches them, int64 ``[rows]``, and
    the seconds of counting and of sorting.

    ``epochs`` are those that an oracle foresees. The ranking is computed on, and stays on, the
    job's device or the host, with equal results. Call ``settle_memory`` again after copying rows.
    """
    graph, device = job.graph, _ranking_device(job)
    begin = time.perf_counter()
    counted = hotness(policy, graph, footprint, epochs, device)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    known = time.perf_counter()
    nodes = ranking(counted, graph.num_nodes, job.cell.seed)
    if rows < graph.num_nodes:
        nodes = nodes[:rows].clone()  # frees the others
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    seconds = {HOTNESS_TIME: known - begin, RANK_TIME: time.perf_counter() - known}
    del counted
    settle_memory(job, policy)
    return nodes, seconds


def settle_memory(job: Job, policy: Policy) -> None:
    """Exclude temporary memory from the reported peak, after ranking and after filling."""
    if job.device.type != "cuda":
        return
    torch.cuda.reset_peak_memory_stats(job.device)
    if policy.name != OPTIMAL:  # an oracle's timed epoch comes next and reuses the memory
        torch.cuda.empty_cache()


def _ranking_device(job: Job) -> torch.device:
    """The GPU, which is much faster, if it has enough memory; else the host."""
    graph, host = job.graph, torch.device("cpu")
    if job.device.type == "cpu":
        return host
    needs = NODE_BYTES * graph.num_nodes + EDGE_BYTES * min(graph.num_edges, CHUNK)
    return job.device if free_on(job.device) > needs else host
