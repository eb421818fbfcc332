"""gnnbench: benchmarking and reproduction suite for sampling-based GNN training systems.

As a library::

    import gnnbench

    graph = gnnbench.load_dataset("products~twin@0.01")
    sampler = gnnbench.build_sampler("fused-map", graph, fanouts=[15, 10, 5])
    batch = sampler.sample(graph.train_idx[:1024], epoch=0, batch=0)

Everything is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from gnnbench.version import __version__ as __version__

if TYPE_CHECKING:
    from gnnbench.core.minibatch import Block, MiniBatch
    from gnnbench.datasets.graph import Graph
    from gnnbench.datasets.prepare import load_dataset
    from gnnbench.models.convert import to_dgl, to_pyg
    from gnnbench.sampling.base import Sampler
    from gnnbench.sampling.blocks import BlockBuilder
    from gnnbench.sampling.build import build_sampler
    from gnnbench.sampling.registry import SamplerInfo, samplers
    from gnnbench.systems.runtime.preflight import check_sampler, check_system

_EXPORTS = {
    "Block": "gnnbench.core.minibatch",
    "BlockBuilder": "gnnbench.sampling.blocks",
    "Graph": "gnnbench.datasets.graph",
    "MiniBatch": "gnnbench.core.minibatch",
    "Sampler": "gnnbench.sampling.base",
    "SamplerInfo": "gnnbench.sampling.registry",
    "build_sampler": "gnnbench.sampling.build",
    "check_sampler": "gnnbench.systems.runtime.preflight",
    "check_system": "gnnbench.systems.runtime.preflight",
    "load_dataset": "gnnbench.datasets.prepare",
    "samplers": "gnnbench.sampling.registry",
    "to_dgl": "gnnbench.models.convert",
    "to_pyg": "gnnbench.models.convert",
}

__all__ = [
    "Block",
    "BlockBuilder",
    "Graph",
    "MiniBatch",
    "Sampler",
    "SamplerInfo",
    "build_sampler",
    "check_sampler",
    "check_system",
    "load_dataset",
    "samplers",
    "to_dgl",
    "to_pyg",
]


def __getattr__(name: str) -> object:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'gnnbench' has no attribute '{name}'")
    value = getattr(importlib.import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTS})
