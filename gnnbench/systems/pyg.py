"""``pyg``: the real PyG, its loader (which samples on the CPU), filter and message passing.

Its frontier is ``new`` (only nodes first seen at the last hop are expanded), so its work differs
from DGL's.
"""

from __future__ import annotations

from gnnbench.features.foreign_spec import PygFilter
from gnnbench.models.aggregation import PygLayers
from gnnbench.sampling.pyg import PygSampler
from gnnbench.systems.runtime.recipe import Recipe

PYG = Recipe(
    name="pyg",
    summary="the real PyG: NeighborLoader with its own sampler, message passing",
    paper="Fey and Lenssen, Fast graph representation learning with PyTorch Geometric, 2019",
    sampler=PygSampler(),
    features=PygFilter(),
    aggregate=PygLayers(),
    stand_in="pyg-native-sampler",
)
