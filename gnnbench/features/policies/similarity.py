"""Similarity of the most visited nodes of two epochs."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.features.policies.policy import ranked

SHARE = 0.1  # of all nodes: GNNLab's Table 2


def hot_similarity(first: Tensor, second: Tensor, share: float = SHARE) -> float:
    """Common visits to nodes hot in both epochs, over the second epoch's visits to its hot nodes.

    ``first``, ``second``: visits of each node, ``[num_nodes]``. Hot nodes are the ``share`` of all
    nodes with the most visits, at least one (GNNLab, EuroSys 2022, section 6.2). NaN if the second
    epoch has no visits.
    """
    size = max(1, int(first.numel() * share))
    mine, other = (ranked(visits)[:size] for visits in (first, second))
    in_both = mine[torch.isin(mine, other)]
    kept = torch.minimum(first[in_both], second[in_both]).sum()
    return float(kept) / float(second[other].sum() or float("nan"))
