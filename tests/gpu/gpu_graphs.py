"""Graphs and comparisons shared by the tests of the CUDA operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor


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
