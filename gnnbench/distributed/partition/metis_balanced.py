"""Partitions by METIS with several balanced weights a node, as FastSample's (section 4).

pymetis passes one weight a node. The METIS within it takes more, so it is called through its C
interface (METIS 5.1 manual, section 5.7).
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gnnbench.core.errors import MissingError
from gnnbench.datasets.graph import Graph
from gnnbench.distributed.partition.metis import metis_missing, symmetric_weights

if TYPE_CHECKING:
    import scipy.sparse as sp  # which workers of other environments may lack

    Ids = npt.NDArray[np.int64]

OK = 1  # METIS_OK
OPTIONS = 40  # METIS_NOPTIONS


def balanced_owners(graph: Graph, parts: int, seed: int) -> Tensor:
    """Owners by METIS, int64 ``[num_nodes]``; nodes, edges and training nodes are balanced.

    The edges of a part are those into its nodes, which it stores. METIS balances each of the three
    within 3 % where it can, and minimises cut edges; parallel edges count each. ``seed`` seeds its
    random numbers. Raises ``MissingError`` without pymetis, or without METIS' C interface in it.
    """
    missing = metis_missing()
    if missing is not None:
        raise MissingError(f"METIS cannot partition: {missing.reason}; {missing.fix}")
    if parts == 1 or graph.num_nodes == 0:
        return torch.zeros(graph.num_nodes, dtype=torch.int64)
    between = symmetric_weights(graph)
    if between.nnz == 0:  # METIS takes no weights of no edges
        return torch.arange(graph.num_nodes) % parts
    training = np.zeros(graph.num_nodes, np.int64)
    training[graph.train_idx.numpy()] = 1
    degrees = np.diff(graph.indptr.numpy())
    weights = [np.ones(graph.num_nodes, np.int64), degrees, training]
    # METIS divides by a weight's sum.
    balanced = np.stack([w for w in weights if w.any()], axis=1)
    return torch.from_numpy(_part_graph(between, balanced, parts, seed))


def _part_graph(between: sp.csr_matrix, weights: Ids, parts: int, seed: int) -> Ids:
    """Call METIS_PartGraphKway; ``weights`` ``[n, balanced]`` of the nodes."""
    import pymetis
    from pymetis import _internal

    try:
        library = ctypes.CDLL(_internal.__file__)
        part_graph, set_defaults = library.METIS_PartGraphKway, library.METIS_SetDefaultOptions
    except (OSError, AttributeError):
        raise MissingError(
            "METIS cannot balance edges: this pymetis has no C interface of METIS; install its"
            " wheel ('pip install --force-reinstall --only-binary :all: pymetis -c"
            " constraints.txt'), or take method 'metis'"
        ) from None
    ids = np.dtype(pymetis.zero_copy_dtype())
    options = np.zeros(OPTIONS, ids)
    set_defaults(_pointer(options))
    options[int(vars(_internal)["options_indices"].SEED)] = seed % 2**31  # not in pymetis' types
    numbers = np.array([*weights.shape, parts, 0], ids)
    nodes, balanced, count, cut = (_pointer(numbers[i:]) for i in range(4))
    owners = np.empty(weights.shape[0], ids)
    arrays = [between.indptr, between.indices, weights, between.data]
    indptr, indices, of_nodes, of_edges = [np.ascontiguousarray(a, ids) for a in arrays]
    status = part_graph(
        nodes, balanced, _pointer(indptr), _pointer(indices), _pointer(of_nodes), None,
        _pointer(of_edges), count, None, None, _pointer(options), cut, _pointer(owners),
    )  # fmt: skip
    if status != OK:
        raise RuntimeError(f"METIS_PartGraphKway failed with status {status}")
    return owners.astype(np.int64)


def _pointer(array: npt.NDArray[np.int32 | np.int64]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
