"""Aggregation as a stage: whose layers train on the blocks, and what sums their neighbours."""

from gnnbench.stages.aggregate.spec import (
    FEWEST_BYTES,
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
    "FEWEST_BYTES",
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
