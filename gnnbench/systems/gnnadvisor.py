"""``gnnadvisor``: GNNAdvisor's aggregation behind DGL's sampler, as FastGL measures it.

It was made for whole graphs, whose neighbours it groups once. Every sampled block is another graph:
its groups are made in each batch, within the time of compute (``aggregate.group``,
``aggregate.dim_workers``). Its renumbering of nodes is left out: ids of a block are new anyway.
"""

from __future__ import annotations

from dataclasses import replace

from gnnbench.models.aggregation import GnnAdvisor
from gnnbench.systems.baseline import BASELINE

GNNADVISOR = replace(
    BASELINE,
    name="gnnadvisor",
    summary="GNNAdvisor: neighbour groups and 2D workload, made for every block; the rest as DGL",
    paper="Wang et al., GNNAdvisor: An Adaptive and Efficient Runtime System for GNN Acceleration"
    " on GPUs, OSDI 2021",
    aggregate=GnnAdvisor(),
)
