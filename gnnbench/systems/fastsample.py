"""``fastsample``: FastSample's sampler, straight to CSC over a dense map of the nodes.

On one machine the paper's system is its sampler under DGL's training; its partitioned features
need several.
"""

from __future__ import annotations

from dataclasses import replace

from gnnbench.sampling.native import native
from gnnbench.systems.baseline import BASELINE

FASTSAMPLE = replace(
    BASELINE,
    name="fastsample",
    summary="FastSample: sampling fused with the building of CSC, a dense map of the nodes",
    paper="Mostafa et al., FastSample: Accelerating Distributed GNN Training, Algorithm 1",
    sampler=native("fastsample"),
)
