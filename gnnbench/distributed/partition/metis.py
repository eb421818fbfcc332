"""Edge-cut partitions by METIS, through pymetis."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gnnbench.core.errors import MissingError
from gnnbench.core.missing import Missing
from gnnbench.datasets.graph import Graph
from gnnbench.distributed.partition.balance import share_evenly

if TYPE_CHECKING:
    import scipy.sparse as sp  # which workers of other environments may lack


def metis_missing() -> Missing | None:
    """Return why METIS cannot partition here; None if it can."""
    for name in ("pymetis", "scipy"):
        if find_spec(name) is None:
            return Missing(
                f"{name} is not installed", f"run 'pip install {name} -c constraints.txt'"
            )
    return None


def symmetric_weights(graph: Graph) -> sp.csr_matrix:
    """Count the edges between two nodes, in both directions: int64 ``[num_nodes, num_nodes]``.

    Self-loops are omitted; no partition cuts them.
    """
    import scipy.sparse as sp

    shape = (graph.num_nodes, graph.num_nodes)
    ones = np.ones(graph.num_edges, np.int64)
    # Of in-neighbours: row v has the sources of v's edges. Parallel edges add up.
    edges = sp.csr_matrix((ones, graph.indices.numpy(), graph.indptr.numpy()), shape)
    both = (edges + edges.T).tocoo()
    keep = both.row != both.col
    weights = sp.csr_matrix((both.data[keep], (both.row[keep], both.col[keep])), shape)
    weights.sort_indices()
    return weights


def metis_owners(graph: Graph, parts: int, seed: int) -> Tensor:
    """Owners by METIS (Karypis and Kumar, SISC 20(1), 1998), int64 ``[num_nodes]``.

    METIS balances the number of nodes and minimises cut edges; parallel edges count each. pymetis
    takes one weight a node. FastSample (section 4) also balances training nodes, so
    :func:`gnnbench.distributed.partition.balance.share_evenly` does this afterwards. Edges are not
    balanced; :mod:`gnnbench.distributed.partition.metis_balanced` does that. ``seed`` seeds METIS'
    random numbers. Raises ``MissingError`` without pymetis.
    """
    missing = metis_missing()
    if missing is not None:
        raise MissingError(f"METIS cannot partition: {missing.reason}; {missing.fix}")
    if parts == 1 or graph.num_nodes == 0:
        return torch.zeros(graph.num_nodes, dtype=torch.int64)
    between = symmetric_weights(graph)
    if between.nnz == 0:  # METIS takes no weights of no edges
        owners = np.arange(graph.num_nodes) % parts
    else:
        owners = _by_metis(between, parts, seed)
    training = np.zeros(graph.num_nodes, bool)
    training[graph.train_idx.numpy()] = True
    return torch.from_numpy(share_evenly(between, owners, training, parts))


def _by_metis(between: sp.csr_matrix, parts: int, seed: int) -> npt.NDArray[np.int64]:
    import pymetis

    ids = pymetis.zero_copy_dtype()
    adjacency = pymetis.CSRAdjacency(between.indptr.astype(ids), between.indices.astype(ids))
    _, owners = pymetis.part_graph(
        parts,
        adjacency,
        eweights=between.data.astype(ids),
        options=pymetis.Options(seed=seed % 2**31),
        recursive=False,
    )
    return np.asarray(owners, np.int64)
