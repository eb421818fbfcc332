"""Which rows a cache holds: nodes ranked by its policy, and what ranking them takes."""

from __future__ import annotations

import time
from collections.abc import Iterable

import torch
from torch import Tensor

from gnnbench.cache.policy import Footprint, Policy, hotness, ranking
from gnnbench.stages.counts import HOTNESS_TIME, RANK_TIME, Measure
from gnnbench.stages.job import Job

# Bytes a node that counting and sorting take of a GPU, twice over: a process beside may rank, too.
BYTES = 160


def ranked_for(
    job: Job, policy: Policy, footprint: Footprint, epochs: Iterable[int] = ()
) -> tuple[Tensor, dict[Measure, float]]:
    """All nodes in the order in which ``policy`` caches them, int64 ``[num_nodes]`` on the host,
    and the seconds of counting and of sorting.

    ``epochs`` are those that ``optimal`` foresees. A ranking is the same wherever it is made.
    """
    graph, place = job.graph, _place(job.device, job.graph.num_nodes)
    begin = time.perf_counter()
    counted = hotness(policy, graph, footprint, epochs, place)
    if place.type == "cuda":
        torch.cuda.synchronize(place)
    known = time.perf_counter()
    found = ranking(counted, graph.num_nodes, job.cell.seed)
    seconds = {HOTNESS_TIME: known - begin, RANK_TIME: time.perf_counter() - known}
    del counted
    if place.type == "cuda":  # what is told of the device's memory is what the store keeps of it
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(place)
    return found, seconds


def _place(device: torch.device, nodes: int) -> torch.device:
    """The GPU, many times as fast, where it has room for that."""
    if device.type == "cuda" and torch.cuda.mem_get_info(device)[0] > BYTES * nodes:
        return device
    return torch.device("cpu")
