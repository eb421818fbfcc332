"""``dgl``: the real DGL, its sampler, its fetch and its layers.

Where the host draws, ``sampler.id_type`` is int64 by default, for DGL 1.1.3's fused sampler loses
edges on int32 graphs from its second call on; asked for, that setting ends as ``incorrect``. Where
a GPU draws, ids are int32 if the graph's edges fit.
"""

from __future__ import annotations

from gnnbench.features.foreign_spec import DglGather
from gnnbench.models.aggregation import DglLayers
from gnnbench.sampling.dgl import DglSampler
from gnnbench.systems.runtime.recipe import Recipe

DGL = Recipe(
    name="dgl",
    summary="the real DGL: NeighborSampler, its own feature fetch, its own layers",
    paper="Wang et al., Deep Graph Library, arXiv:1909.01315",
    sampler=DglSampler(),
    features=DglGather(),
    aggregate=DglLayers(),
)
