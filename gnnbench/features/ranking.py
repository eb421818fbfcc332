"""Which rows a cache holds: nodes ranked by its policy, and what ranking them takes."""

from __future__ import annotations

import time
from collections.abc import Iterable

import torch
from torch import Tensor

from gnnbench.core.counters import HOTNESS_TIME, RANK_TIME, Measure
from gnnbench.core.job import Job
from gnnbench.features.policies.policy import CHUNK, OPTIMAL, Footprint, Policy, hotness, ranking
from gnnbench.measure.allocated import free_on

# What counting and sorting take of a GPU, twice over: a process beside may rank, too.
NODE_BYTES, EDGE_BYTES = 160, 32


def ranked_for(
    job: Job, policy: Policy, footprint: Footprint, rows: int, epochs: Iterable[int] = ()
) -> tuple[Tensor, dict[Measure, float]]:
    """The first ``rows`` nodes in the order in which ``policy`` caches them, int64 ``[rows]``, and
    the seconds of counting and of sorting.

    ``epochs`` are those that ``optimal`` foresees. A ranking is the same wherever it is made, on
    the job's device or the host, and stays there. Once the rows are copied, ``settle_memory``
    again.
    """
    graph, place = job.graph, _place(job)
    begin = time.perf_counter()
    counted = hotness(policy, graph, footprint, epochs, place)
    if place.type == "cuda":
        torch.cuda.synchronize(place)
    known = time.perf_counter()
    found = ranking(counted, graph.num_nodes, job.cell.seed)
    if rows < graph.num_nodes:
        found = found[:rows].clone()  # the others take memory, and nobody asks for them
    if place.type == "cuda":
        torch.cuda.synchronize(place)
    seconds = {HOTNESS_TIME: known - begin, RANK_TIME: time.perf_counter() - known}
    del counted
    settle_memory(job, policy)
    return found, seconds


def settle_memory(job: Job, policy: Policy) -> None:
    """After ranking, and after filling: what is told of a GPU's memory is what the store keeps."""
    if job.device.type != "cuda":
        return
    torch.cuda.reset_peak_memory_stats(job.device)
    if policy.name != OPTIMAL:  # an oracle's timed epoch comes next: it finds its memory there
        torch.cuda.empty_cache()


def _place(job: Job) -> torch.device:
    """The GPU, many times as fast, where it has room for that."""
    graph, host = job.graph, torch.device("cpu")
    if job.device.type == "cpu":
        return host
    needs = NODE_BYTES * graph.num_nodes + EDGE_BYTES * min(graph.num_edges, CHUNK)
    return job.device if free_on(job.device) > needs else host
