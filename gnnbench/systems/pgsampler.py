"""``pgsampler``: PGSampler, all hops in one persistent kernel.

The paper changes the sampler and leaves the rest to DGL: so does this. Its own settings are
``sampler.fetch_size`` (5, the paper's), the pick, a reservoir inside each task, and
``sampler.hubs``: a task is one worker's however long its row is (``split`` spreads it). A worker is
a warp; with ``sampler.worker`` ``block`` it is a block, as in the paper. The ablation without
persistence is the sampler ``dgl-fusion``. As published: ``pgsampler-as-published`` and
``dgl-fusion-as-published``; Algorithm 1 to the letter: ``pgsampler-as-printed``.
"""

from __future__ import annotations

from dataclasses import replace

from gnnbench.sampling.native import native
from gnnbench.systems.baseline import BASELINE

PGSAMPLER = replace(
    BASELINE,
    name="pgsampler",
    summary="PGSampler: all hops in one persistent kernel over a task queue, the rest as DGL",
    paper="Wei et al., PGSampler: Accelerating GPU-based Graph Sampling via Workload Fusion",
    sampler=native("pgsampler", pick="reservoir", hubs="whole"),
)
