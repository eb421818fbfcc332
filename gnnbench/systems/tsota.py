"""``tsota``: the baseline of GNNLab: DGL's method with a cache of the features.

GNNLab's sampler and PaGraph's cache (the nodes of the highest out-degree) in one process that does
one thing after the other. ``features.policy=presc#1`` is GNNLab's own cache.

GNNLab's Table 1 switches two things on, a field each::

    neither         sampler.topology=cpu features=uva
    + cache         sampler.topology=cpu
    + GPU sampling  features=uva
    both            unchanged
"""

from __future__ import annotations

from gnnbench.features.spec import Cache
from gnnbench.sampling.native import native
from gnnbench.systems.runtime.recipe import Recipe

TSOTA = Recipe(
    name="tsota",
    summary="GNNLab's T_SOTA: sampler and feature cache by degree share the GPU, serial",
    paper="Yang et al., GNNLab, EuroSys 2022, section 7.1",
    sampler=native("gnnlab"),
    features=Cache(policy="degree"),
)
