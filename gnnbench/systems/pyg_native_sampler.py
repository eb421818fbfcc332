"""``pyg-native-sampler``: PyG with our sampler in its loader, where its extension is missing."""

from __future__ import annotations

from dataclasses import replace

from gnnbench.sampling.pyg import PygNativeSampler
from gnnbench.systems.pyg import PYG

PYG_NATIVE_SAMPLER = replace(
    PYG,
    name="pyg-native-sampler",
    summary="PyG's NodeLoader and message passing around our hop-by-hop sampler",
    sampler=PygNativeSampler(),
    stand_in="",
)
