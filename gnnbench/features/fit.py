"""Which feature store fits a GPU: from the sizes of a table, of a graph and of the memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import JsonValue

# Of the GPU's memory: kept for batches, weights and the allocator, whatever the store.
RESERVED = 1 / 8
# Of what the graph and the reserve leave: the largest cache; windows need the rest.
CACHED = 1 / 2
LEAST_RATIO = 0.01  # a smaller cache saves less than its look-ups cost


@dataclass(frozen=True)
class Sizes:
    """Bytes of the feature table, of the graph's topology, and of the GPU's memory in total."""

    table: int
    topology: int
    gpu: int

    @property
    def left(self) -> float:
        """Bytes that the topology and the reserve leave."""
        return (1 - RESERVED) * self.gpu - self.topology


Settings = Mapping[str, "JsonValue"]
Fit = Callable[[Sizes], Settings]


def table_or_cached_windows(sizes: Sizes) -> Settings:
    """Settings for the whole table on the GPU if it fits, else a cache of what fits below windows.

    Empty, which leaves windows without a cache, where hardly any row fits.
    """
    if sizes.table <= sizes.left:
        return {"features": "gpu"}
    ratio = math.floor(100 * CACHED * sizes.left / sizes.table) / 100
    if ratio < LEAST_RATIO:
        return {}
    return {"features.table": "cache", "features.table.ratio": ratio}
