"""Whether the nodes that one epoch visits most are those of the next."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.features.policies.policy import ranked

SHARE = 0.1  # of all nodes: GNNLab's Table 2


def hot_similarity(first: Tensor, second: Tensor, share: float = SHARE) -> float:
    """Visits that both epochs make to nodes hot in both, over the second's to its own hot nodes.

    ``first``, ``second``: visits of every node, ``[num_nodes]``; hot are the ``share`` of all nodes
    that an epoch visits most, at least one (GNNLab, EuroSys 2022, section 6.2). NaN where the
    second visits none.
    """
    size = max(1, int(first.numel() * share))
    mine, other = (ranked(visits)[:size] for visits in (first, second))
    in_both = mine[torch.isin(mine, other)]
    kept = torch.minimum(first[in_both], second[in_both]).sum()
    return float(kept) / float(second[other].sum() or float("nan"))
