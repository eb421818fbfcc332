"""Graphs for the tests of the operators, and checks that a batch is valid."""

import hypothesis.strategies as st
import numpy as np
import torch
from hypothesis.extra import numpy as hnp
from torch import Tensor

from gnnbench.core.minibatch import MiniBatch

FRONTIERS = ("cumulative", "new")

# 0 <- 1 2 3, 1 <- 0, 2 <- 2 (self-loop) 4 4 (parallel), 3 isolated, 4 <- 0 1 2 3 4 5, 5 <- 0
INDPTR = torch.tensor([0, 3, 4, 7, 7, 13, 14])
INDICES = torch.tensor([1, 2, 3, 0, 2, 4, 4, 0, 1, 2, 3, 4, 5, 0], dtype=torch.int32)


def csc(degrees: list[int], id_dtype: torch.dtype, seed: int) -> tuple[Tensor, Tensor]:
    """A random graph with given in-degrees; it can have parallel edges and self-loops."""
    indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    indices = np.random.default_rng(seed).integers(0, len(degrees), indptr[-1])
    return torch.from_numpy(indptr), torch.from_numpy(indices).to(id_dtype)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Up to 60 nodes: isolated ones, self-loops, parallel edges, int32 and int64 ids."""
    n = draw(st.integers(1, 60))
    degrees = draw(hnp.arrays(np.int64, n, elements=st.sampled_from([0, 1, 2, 5, 6, 9, 30])))
    dtype = draw(st.sampled_from([torch.int32, torch.int64]))
    return csc(degrees.tolist(), dtype, draw(st.integers(0, 2**32 - 1)))


def same(a: MiniBatch, b: MiniBatch) -> None:
    """Bit-identical structure, ids, positions, weights and dtypes."""
    assert len(a.blocks) == len(b.blocks)
    assert a.sampled_edges == b.sampled_edges
    assert torch.equal(a.seeds, b.seeds)
    for x, y in zip(a.blocks, b.blocks, strict=True):
        assert x.num_dst == y.num_dst
        for name in ("indptr", "indices", "src_nodes", "positions", "weights"):
            s, t = getattr(x, name), getattr(y, name)
            assert (s is None) == (t is None), name
            if s is not None:
                assert s.dtype == t.dtype, name
                assert torch.equal(s, t), name
