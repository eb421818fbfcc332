"""The models by what one of their layers computes; imports no torch, so that names cost nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mode = Literal["sum", "mean", "gcn"]


@dataclass(frozen=True)
class LayerKind:
    """A layer that maps an aggregate linearly: W_neighbour a_v (+ W_self h_v) + bias.

    ``mode``, how a_v is made of the sampled neighbours: their ``sum``; their ``mean``, 0 where
    there are none; ``gcn``, (sum + self) / (d + 1). ``own_weights``: the destination's own row has
    weights of its own, W_self. W_neighbour goes first where it narrows the rows, in every
    framework: it commutes with the aggregation and leaves fewer bytes to aggregate (DGL's layers
    decide the same way).
    """

    name: str
    mode: Mode
    own_weights: bool


# GCN (Kipf and Welling, ICLR 2017) on a block; GraphSAGE (Hamilton et al., NeurIPS 2017), mean.
GCN = LayerKind("gcn", "gcn", own_weights=False)
GRAPHSAGE = LayerKind("graphsage", "mean", own_weights=True)

MODELS: dict[str, LayerKind] = {kind.name: kind for kind in (GCN, GRAPHSAGE)}
