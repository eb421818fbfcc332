"""The graph that every system trains on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import SupportsIndex

import numpy as np
import torch
from torch import Tensor

from gnnbench.core.errors import DataError, HostMemoryError, lacks_host_memory
from gnnbench.datasets.store import layout
from gnnbench.datasets.store.schema import GraphMeta
from gnnbench.kernels import rng
from gnnbench.kernels.shared import map_shared


@dataclass(frozen=True)
class Graph:
    """A graph in CSC of in-neighbours with node data, opened read-only from the store.

    ``indptr`` int64 ``[num_nodes + 1]``; ``indices`` int32 or int64 ``[num_edges]``: the
    in-neighbours of node ``v`` are ``indices[indptr[v]:indptr[v + 1]]`` (parallel edges and
    self-loops allowed). ``features`` float32 ``[num_nodes, feature_dim]``; ``labels`` int64
    ``[num_nodes]``, -1 where unlabelled; split indices int64, sorted, unique. ``weights`` float32
    ``[num_edges]`` in the order of ``indices``, finite and at least 0, or None. ``node_ids`` int64
    ``[num_nodes]`` are the ids that an imported source gave its nodes, or None where they are 0 to
    ``num_nodes`` - 1.
    ``meta`` is the store's ``meta.json``. ``shared`` has the addresses of arrays in the shared
    memory of another process (``gnnbench.kernels.shared``). ``has_drawn_split``: the split is that
    of ``with_splits``, not of the store.

    A pickled graph of the store is its ``path``; unpickling maps it and its shared arrays again.
    That raises ``DataError`` if the folder has another graph by then, and ``OSError`` if the shared
    memory is gone.
    """

    name: str
    indptr: Tensor
    indices: Tensor
    features: Tensor
    labels: Tensor
    train_idx: Tensor
    val_idx: Tensor
    test_idx: Tensor
    num_classes: int
    weights: Tensor | None = None
    path: Path | None = None
    meta: GraphMeta = field(default_factory=GraphMeta)
    shared: Mapping[str, str] = field(default_factory=dict)
    has_drawn_split: bool = False
    node_ids: Tensor | None = None

    def __repr__(self) -> str:
        """Name and counts in one line, without the tensors."""
        weighted = ", weighted" * (self.weights is not None)
        return (
            f"Graph({self.name!r}, {self.num_nodes:,} nodes, {self.num_edges:,} edges{weighted}, "
            f"features {self.feature_dim} wide, {self.num_classes} classes, "
            f"{self.train_idx.numel():,} to train on)"
        )

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.indptr.numel() - 1

    @property
    def num_edges(self) -> int:
        """Number of directed edges, parallel ones counted each."""
        return self.indices.numel()

    @property
    def feature_dim(self) -> int:
        """Width of a feature row."""
        return int(self.features.shape[1])

    @classmethod
    def mapped(
        cls, folder: Path, meta: GraphMeta, shared: Mapping[str, str] | None = None
    ) -> Graph:
        """Map the graph in a folder of the store read-only (private pages), without checks.

        ``shared``: addresses of arrays in shared memory (``gnnbench.kernels.shared``).
        """
        names = [*layout.ARRAYS, *(array for array in layout.OPTIONAL if array in meta["arrays"])]
        tensors = {
            array: _map_tensor(folder, array, meta, (shared or {}).get(array)) for array in names
        }
        return cls(
            name=meta["name"], num_classes=meta["num_classes"], path=folder, meta=meta,
            shared=dict(shared or {}), has_drawn_split=False, **tensors,
        )  # fmt: skip

    def with_splits(self) -> Graph:
        """The graph with validation and test nodes: its own split if it has both.

        Otherwise the labelled nodes are split 60/20/20 in a random order that depends on their
        number only (:func:`gnnbench.kernels.rng.permutation`). Raises ``DataError`` if fewer than 5
        nodes have labels.
        """
        if self.val_idx.numel() and self.test_idx.numel():
            return self
        labelled = (self.labels >= 0).nonzero().flatten()
        n = labelled.numel()
        if n < 5:
            raise DataError(f"'{self.name}' has {n} labelled nodes, too few to evaluate a model on")
        order = labelled[rng.permutation(n, rng.key(0, 0, "split"))]
        train, val, test = (
            part.sort().values for part in order.tensor_split([n * 3 // 5, n * 4 // 5])
        )
        return replace(self, train_idx=train, val_idx=val, test_idx=test, has_drawn_split=True)

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[object, ...]:
        if self.path is None:
            return super().__reduce_ex__(protocol)
        return _map_again, (self.path, self.meta, self.shared, self.has_drawn_split)


def _map_again(
    folder: Path, meta: GraphMeta, shared: Mapping[str, str], has_drawn_split: bool
) -> Graph:
    """Unpickle a graph that the sending process has opened, and so checked."""
    if layout.read_meta(folder) != meta:
        raise DataError(f"{folder} holds another graph than when it was opened; open it anew")
    layout.check_sizes(folder, meta)
    graph = Graph.mapped(folder, meta, shared)
    return graph.with_splits() if has_drawn_split else graph


def _map_tensor(folder: Path, array: str, meta: GraphMeta, address: str | None) -> Tensor:
    entry = meta["arrays"][array]
    dtype = {"int32": torch.int32, "int64": torch.int64, "float32": torch.float32}[entry["dtype"]]
    shape = tuple(entry["shape"])
    if address is not None:
        return map_shared(address, dtype, shape)
    if layout.is_generated(entry):
        return _generated_tensor(folder, meta, array)
    size = int(np.prod(shape, dtype=np.int64))
    if size == 0:
        return torch.empty(shape, dtype=dtype)
    # shared=False maps private pages: writes by torch do not reach the file.
    flat = torch.from_file(str(layout.file_of(folder, array)), shared=False, size=size, dtype=dtype)
    return flat.view(shape)


def _generated_tensor(folder: Path, meta: GraphMeta, array: str) -> Tensor:
    """Generate an array without a file. Raises ``DataError`` for a malformed recipe and
    ``HostMemoryError`` if it does not fit into memory."""
    from gnnbench.datasets.generators.generated_features import generate_array

    try:
        return generate_array(folder, meta, array)
    except (KeyError, TypeError, ValueError, OverflowError, RuntimeError) as error:
        if lacks_host_memory(error):
            raise HostMemoryError(
                f"'{array}' of {folder} takes {meta['arrays'][array]['bytes'] / 2**30:.1f} GiB of "
                "memory, more than is free; use a machine with more memory"
            ) from None
        raise DataError(
            f"'{array}' of {folder} cannot be made from {layout.META} ({str(error).splitlines()[0]}"
            "); delete the folder and prepare the dataset again"
        ) from None
