"""``cugraph-pyg``: NVIDIA's cuGraph-PyG on one GPU: its sampler, WholeGraph's memory, PyG's layers.

One call of its sampler draws many batches, by default as many as cuGraph expects to fit. Features
are in WholeGraph's memory, as in its ``FeatureStore``: in locked host memory
(``features.table=gpu``: the GPU's). As in PyG the frontier is ``new``.
"""

from __future__ import annotations

from gnnbench.features.foreign_spec import WholeGraphGather
from gnnbench.models.aggregation import PygLayers
from gnnbench.sampling.cugraph_pyg import CuGraphSampler
from gnnbench.systems.runtime.recipe import Recipe

CUGRAPH_PYG = Recipe(
    name="cugraph-pyg",
    summary="NVIDIA's cuGraph-PyG: its NeighborLoader, WholeGraph's feature store, PyG's layers",
    paper="RAPIDS cuGraph-PyG; its memory is WholeGraph: Yang et al., SC'22",
    sampler=CuGraphSampler(),
    features=WholeGraphGather(),
    aggregate=PygLayers(),
)
