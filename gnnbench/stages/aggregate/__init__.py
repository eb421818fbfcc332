"""Aggregation as a stage: whose layers train on the blocks, and what sums their neighbours."""

from gnnbench.stages.aggregate.spec import (
    AggregateSpec,
    Csr,
    DglLayers,
    GnnAdvisor,
    MemoryAware,
    PygLayers,
    Scatter,
    Spmm,
    Tuned,
)

__all__ = [
    "AggregateSpec",
    "Csr",
    "DglLayers",
    "GnnAdvisor",
    "MemoryAware",
    "PygLayers",
    "Scatter",
    "Spmm",
    "Tuned",
]
