"""``fastgl``: FastGL, all three phases of a batch changed at once.

Fused-Map draws as DGL does (reservoir on a GPU, Floyd on a CPU), Greedy Reorder puts a window of
batches in order, Match loads what the last batch did not have, Memory-Aware kernels aggregate (X =
8 destinations x Y = 32 columns a block). Batches go one after the other. What the paper prefetches
is the next batch's topology, with ``order.waiting=host``; by default a window's batches are on the
GPU already. ``schedule=prefetch`` does more than that: memory IO overlaps compute.
``features.table=cache`` is the paper's optional cache (``features.table.ratio``). ``fused-map``
goes beyond the paper: one kernel samples and renumbers, one hash table serves all hops, and the
host waits once a batch.
``sampler=fused-map-by-hop`` is the paper's version: DGL's sampling, then the id map.

Fig. 3 and 15 switch the techniques on one after the other, a field each::

    naive      sampler=hop-by-hop aggregate=csr order=as-drawn features=uva
    + Match    sampler=hop-by-hop aggregate=csr order=as-drawn
    + Reorder  sampler=hop-by-hop aggregate=csr    (MR of the paper is Match and Reorder)
    + MA       sampler=hop-by-hop
    + FM       sampler=fused-map-by-hop
    + ours     unchanged

The Memory-Aware kernels need GPU shared memory. On a CPU the recipe uses ``csr``, so results of a
CPU say nothing about this technique. ``schedule=data-parallel schedule.batches=whole`` is the
paper's training on several GPUs: each reuses rows of its own batches and reorders them itself.
"""

from __future__ import annotations

from gnnbench.features.spec import Match
from gnnbench.models.aggregation import Csr, MemoryAware
from gnnbench.pipelines.greedy import Greedy
from gnnbench.sampling.native import native
from gnnbench.systems.runtime.recipe import Recipe

FASTGL = Recipe(
    name="fastgl",
    summary="FastGL: Fused-Map, Match and Greedy Reorder, Memory-Aware aggregation",
    paper="Zhu et al., FastGL: A GPU-Efficient Framework for Accelerating Sampling-Based GNN"
    " Training at Large Scale, ASPLOS 2024",
    sampler=native("fused-map", pick="reservoir"),
    features=Match(),
    order=Greedy(),
    aggregate=MemoryAware(x=8, y=32),
    on_cpu=(native("fused-map"), Csr()),
)
