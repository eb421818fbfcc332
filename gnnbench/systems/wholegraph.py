"""``wholegraph``: NVIDIA's WholeGraph; its sampler and its feature store on one GPU.

Rows come out of locked host memory (``features.table=gpu``: the GPU's) by its own gather; each life
fills a copy of the table. It has no layers: an epoch ends with memory IO.
"""

from __future__ import annotations

from gnnbench.features.foreign_spec import WholeGraphGather
from gnnbench.sampling.wholegraph import WholeGraphSampler
from gnnbench.systems.runtime.recipe import Recipe

WHOLEGRAPH = Recipe(
    name="wholegraph",
    summary="NVIDIA's WholeGraph: its multi-layer sampler and its feature store, no layers",
    paper="Yang et al., WholeGraph, SC'22",
    sampler=WholeGraphSampler(),
    features=WholeGraphGather(),
    aggregate=None,
)
