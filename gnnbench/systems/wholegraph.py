"""``wholegraph``: NVIDIA's WholeGraph; what a user would pick instead for sampling on one GPU.

It samples only: its feature store is not wired here.
"""

from __future__ import annotations

from gnnbench.composition.recipe import Recipe
from gnnbench.stages.sampler.wholegraph import WholeGraphSampler

WHOLEGRAPH = Recipe(
    name="wholegraph",
    summary="NVIDIA's WholeGraph: its multi-layer sampler on one GPU, sampling only",
    paper="Yang et al., WholeGraph, SC'22",
    sampler=WholeGraphSampler(),
    features=None,
    aggregate=None,
)
