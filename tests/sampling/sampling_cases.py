"""Every sampler with every pick and frontier that it has on the CPU."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

import gnnbench
from gnnbench.kernels.picks import WEIGHTED

UNSOUND = "pgsampler-as-printed"
INFOS = [s for s in gnnbench.samplers() if "cpu" in s.devices and s.name != UNSOUND]
NAMES = [s.name for s in INFOS]
CASES = [
    (s.name, pick, frontier) for s in INFOS for pick in s.picks["cpu"] for frontier in s.frontiers
]


def weights_of(graph, seed: int = 5):
    """Weights of a graph's edges, every third one zero."""
    weights = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(seed))
    weights[::3] = 0
    return weights


def build(name, graph, fanouts, pick=None, **how):
    """A sampler, with weights of the graph's edges where the pick needs any."""
    if pick in WEIGHTED and "weights" not in how:
        how["weights"] = weights_of(graph)
    return gnnbench.build_sampler(name, graph, fanouts, pick=pick, **how)


@contextmanager
def one_thread() -> Iterator[None]:
    """Threads that wait for one another over tiny layers would take most of the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
