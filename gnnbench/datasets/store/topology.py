"""Write the CSC matrix of a graph from its edges."""

from __future__ import annotations

import numpy as np

from gnnbench.datasets.store.csc import (
    EdgeChunks,
    both_directions,
    build_rows,
    index_dtype,
    indptr_of,
    without_self_loops,
)
from gnnbench.datasets.store.writer import GraphWriter


def write_csc(
    out: GraphWriter,
    chunks: EdgeChunks,
    num_nodes: int,
    *,
    add_reverse: bool = False,
    merge: bool = False,
    drop_self_loops: bool = False,
) -> None:
    """Write ``indices`` and ``indptr`` of the edges in ``chunks`` (ids in range, any order).

    Self-loops are dropped first, then reverse edges added, then parallel edges merged.
    """
    if out.done("indices", "indptr"):
        return
    if drop_self_loops:
        chunks = without_self_loops(chunks)
    if add_reverse:
        chunks = both_directions(chunks)
    degrees = np.zeros(num_nodes, np.int64)
    out.forget("indices")  # degrees are counted while indices are written
    rows = build_rows(chunks, num_nodes, degrees, merge=merge)
    out.write("indices", index_dtype(num_nodes), (None,), rows)
    out.write("indptr", "int64", (num_nodes + 1,), [indptr_of(degrees)])
