"""``gnnlab``: GNNLab on one GPU, which is its Sampler and its standby Trainer in turns.

Its sampler (``sampler.pick``: ``fisher_yates``; ``weighted_alias`` or ``weighted_prefix``;
``random_walk``) draws a whole epoch, whose samples wait in host memory; then its Trainer takes
them, over a cache that pre-sampling fills (``features.policy=presc#K``). The topology stays where
it is, and the cache has what is left beside it, as the paper's standby Trainer has.
``features.ratio=auto`` derives the ratio from measured memory, as the paper does.

What it has over ``tsota`` are two fields, ``schedule`` and ``features.policy``. Its Trainer fetches
a batch while it trains on the one before (``schedule.depth``; 0: it does not).

Several GPUs (Samplers and Trainers apart, bridged by a queue) are not built yet; how many there
would be of each, and when one switches, is ``gnnbench.stages.schedule.allocation``.
"""

from __future__ import annotations

from gnnbench.composition.recipe import Recipe
from gnnbench.stages.features.spec import Cache
from gnnbench.stages.sampler.native import native
from gnnbench.stages.schedule.alternate import Alternate

GNNLAB = Recipe(
    name="gnnlab",
    summary="GNNLab on one GPU: an epoch sampled, then trained, over a cache by pre-sampling",
    paper="Yang et al., GNNLab: A Factored System for Sample-based GNN Training over GPUs,"
    " EuroSys 2022",
    sampler=native("gnnlab"),
    features=Cache(policy="presc#1"),
    schedule=Alternate(depth=1),
)
