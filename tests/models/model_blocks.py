"""A fixed batch of two blocks, and the available frameworks."""

import pytest
import torch

from gnnbench.core.minibatch import Block, MiniBatch
from gnnbench.models.aggregation import Csr, DglLayers, PygLayers

FRAMEWORKS = {"native": Csr(), "dgl": DglLayers(), "pyg": PygLayers()}


def block(indptr, indices, src, num_dst, weights=None):
    return Block(
        torch.tensor(indptr, dtype=torch.int32),
        torch.tensor(indices, dtype=torch.int32),
        torch.tensor(src),
        num_dst,
        weights=weights,
    )


# Destination 1 of the outer block has no neighbour; the inner block has a parallel edge.
OUTER = block([0, 2, 2], [2, 3], [10, 11, 12, 13], 2)
INNER = block([0, 1, 4, 4, 5], [4, 0, 5, 5, 3], [10, 11, 12, 13, 14, 15], 4)
BATCH = MiniBatch(torch.tensor([10, 11]), [INNER, OUTER], 7)


def framework_of(name):
    spec = FRAMEWORKS[name]
    if missing := spec.missing("cpu"):
        pytest.skip(f"{name}: {missing.reason}")
    return spec.build()
