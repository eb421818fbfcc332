"""``graphbolt``: DGL's newer loader, GraphBolt: its sampling, its fetch, DGL's layers.

It is in DGL from 2.0 on, built for one release of torch, so that most environments have none. Its
own loader overlaps stages; here ``schedule`` does. Its layer-neighbour sampler draws by another law
and its GPU cache of rows is not wired here (``features=cache`` is ours). ``features.file`` is
its feature store on a disk.
"""

from __future__ import annotations

from gnnbench.features.foreign_spec import BoltGather
from gnnbench.models.aggregation import DglLayers
from gnnbench.sampling.graphbolt import BoltSampler
from gnnbench.systems.runtime.recipe import Recipe

GRAPHBOLT = Recipe(
    name="graphbolt",
    summary="DGL's GraphBolt: its neighbour sampling and feature fetch, DGL's layers",
    paper="Wang et al., Deep Graph Library, arXiv:1909.01315; GraphBolt is its data loading of 2.0",
    sampler=BoltSampler(),
    features=BoltGather(),
    aggregate=DglLayers(),
)
