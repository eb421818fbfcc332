"""``pagraph``: PaGraph on one GPU, neighbours drawn by the host, the hottest features on the GPU.

The cache holds the nodes of the highest out-degree; ``features.ratio=auto`` derives its size from
what batches without it leave of the memory, as the paper does. Partitions of the training nodes
over several GPUs are not built.
"""

from __future__ import annotations

from dataclasses import replace

from gnnbench.features.spec import Cache
from gnnbench.sampling.native import native
from gnnbench.systems.baseline import BASELINE

PAGRAPH = replace(
    BASELINE,
    name="pagraph",
    summary="PaGraph: sampled by the host, features cached on the GPU by out-degree, serial",
    paper="Lin et al., PaGraph: Scaling GNN Training on Large Graphs via Computation-aware Caching,"
    " SoCC 2020",
    sampler=native("hop-by-hop", topology="cpu"),
    features=Cache(policy="degree"),
)
