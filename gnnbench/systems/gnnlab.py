"""``gnnlab``: GNNLab, on one GPU its Sampler and its standby Trainer in turns.

Its sampler (``sampler.pick``: ``fisher_yates``; ``weighted_alias`` or ``weighted_prefix``;
``random_walk``) draws a whole epoch, whose samples wait in host memory; then its Trainer takes
them, over a cache that pre-sampling fills (``features.policy=presc#K``). The topology stays where
it is, and the cache has the memory that is left, as the paper's standby Trainer has.
``features.ratio=auto`` derives the ratio from measured memory, as the paper does.

What it has over ``tsota`` are two fields, ``schedule`` and ``features.policy``. Its Trainer fetches
a batch while it trains on the one before (``schedule.depth``; 0: it does not).

On several GPUs ``schedule=factored`` has Samplers and Trainers in processes of their own, bridged
by a bounded queue (``schedule.samplers``, ``.trainers``; ``.allocation=auto`` by the paper's
formula; ``.standby=true`` has a Sampler that is done train where the paper's profit says so, as
printed with ``.profit=published``). ``.marks=true`` has Samplers mark cached nodes, and
``.staleness`` above 0 makes updates asynchronous with a bound: by default they are synchronous, as
in the paper's comparisons. ``.standby_ratio`` is that of a standby Trainer's smaller cache.
"""

from __future__ import annotations

from gnnbench.features.spec import Cache
from gnnbench.pipelines.alternate import Alternate
from gnnbench.sampling.native import native
from gnnbench.systems.runtime.recipe import Recipe

GNNLAB = Recipe(
    name="gnnlab",
    summary="GNNLab on one GPU: an epoch sampled, then trained, over a cache by pre-sampling",
    paper="Yang et al., GNNLab: A Factored System for Sample-based GNN Training over GPUs,"
    " EuroSys 2022",
    sampler=native("gnnlab"),
    features=Cache(policy="presc#1"),
    schedule=Alternate(depth=1),
)
