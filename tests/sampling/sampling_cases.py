"""Every sampler with every pick and frontier that it has on the CPU."""

import torch

import gnnbench
from gnnbench.ops.picks import WEIGHTED

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
