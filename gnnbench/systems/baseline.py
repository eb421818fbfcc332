"""``baseline``: DGL's method, native. Everything else is compared with it.

Per hop pick and three-pass id map; host gather with all cores; aggregation over compact blocks;
one batch after the other. On a GPU topology, sampling and training are there; features stay in
host memory unless set otherwise (``features=uva``, ``features=gpu``).
"""

from __future__ import annotations

from gnnbench.features.spec import Host
from gnnbench.models.aggregation import Csr
from gnnbench.sampling.native import native
from gnnbench.systems.runtime.recipe import Recipe

BASELINE = Recipe(
    name="baseline",
    summary="DGL's method, native: hop-by-hop sampler, three-pass id map, host gather, serial",
    paper="Wang et al., Deep Graph Library, arXiv:1909.01315; id map as its OrderedHashTable",
    sampler=native("hop-by-hop"),
    features=Host(),
    aggregate=Csr(),
)
