"""Graphs and comparisons shared by the tests of the CUDA operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

IDS = (torch.int32, torch.int64)


@dataclass
class Csc:
    """indptr int64, indices of an id dtype, on the CPU."""

    indptr: Tensor
    indices: Tensor

    @property
    def num_nodes(self) -> int:
        return self.indptr.numel() - 1


def csc_of(degrees: np.ndarray, dtype: torch.dtype, seed: int) -> Csc:
    """A random graph with given in-degrees; it can have parallel edges and self-loops."""
    indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    rng = np.random.default_rng(seed)
    indices = rng.integers(0, len(degrees), indptr[-1])
    return Csc(torch.from_numpy(indptr), torch.from_numpy(indices).to(dtype))


@st.composite
def graphs_and_seeds(draw: Any) -> tuple[Csc, Tensor]:
    """A graph of up to 40 nodes, and distinct seeds in the dtype of its ids."""
    n = draw(st.integers(1, 40))
    degrees = draw(st.lists(st.integers(0, 60), min_size=n, max_size=n))
    csc = csc_of(np.array(degrees), draw(st.sampled_from(IDS)), draw(st.integers(0, 1000)))
    seeds = draw(st.lists(st.integers(0, n - 1), unique=True))
    return csc, torch.tensor(seeds, dtype=csc.indices.dtype)


def skewed(num_nodes: int, dtype: torch.dtype, seed: int, top: int = 300) -> Csc:
    """A tenth of the nodes is isolated; the other degrees follow Zipf's law up to ``top``."""
    rng = np.random.default_rng(seed)
    degrees = np.minimum(rng.zipf(1.5, num_nodes), top) * (rng.random(num_nodes) > 0.1)
    return csc_of(degrees, dtype, seed + 1)


def assert_same(on_gpu: Any, on_cpu: Any) -> None:
    """Asserts identical bits, dtypes and shapes."""
    if isinstance(on_cpu, Tensor):
        assert on_gpu.dtype == on_cpu.dtype
        assert on_gpu.shape == on_cpu.shape
        assert torch.equal(on_gpu.cpu(), on_cpu)
        return
    assert len(on_gpu) == len(on_cpu)
    for a, b in zip(on_gpu, on_cpu, strict=True):
        assert_same(a, b)
