"""The graph that every system trains on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gnnbench.core.errors import DataError, HostMemoryError, lacks_host_memory
from gnnbench.datasets.store import layout
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
    ``meta`` is the store's ``meta.json``, ``held`` has the addresses of arrays that a process holds
    in memory (``gnnbench.kernels.shared``). ``split_here``: the split is of ``with_splits``, not
    of the
    store.

    Sent to another process, a graph of the store is its ``path`` and is mapped there again, as is
    what is held; that raises ``DataError`` where another graph has taken its place, and ``OSError``
    where nothing is held any more.
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
    meta: dict[str, Any] = field(default_factory=dict)
    held: Mapping[str, str] = field(default_factory=dict)
    split_here: bool = False
    node_ids: Tensor | None = None

    def __repr__(self) -> str:
        """One line: the tensors' contents are of no use there."""
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
        cls, folder: Path, meta: dict[str, Any], held: Mapping[str, str] | None = None
    ) -> Graph:
        """The graph in a folder of the store, mapped read-only (private pages) and not checked.

        ``held``: addresses of arrays that a process holds in memory (``gnnbench.kernels.shared``).
        """
        wanted = [*layout.ARRAYS, *(array for array in layout.OPTIONAL if array in meta["arrays"])]
        tensors = {
            array: _map_tensor(folder, array, meta, (held or {}).get(array)) for array in wanted
        }
        classes = int(meta["num_classes"])
        return cls(
            name=meta["name"], num_classes=classes, path=folder, meta=meta,
            held=dict(held or {}), split_here=False, **tensors,
        )  # fmt: skip

    def with_splits(self) -> Graph:
        """The same with nodes to validate and to test on: its own where it has both.

        Else the labelled nodes are split anew, 60/20/20 in an order drawn by the counter-based
        generator (:func:`gnnbench.kernels.rng.permutation`) from nothing but their number. Raises
        ``DataError`` where fewer than 5 nodes have labels.
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
        return replace(self, train_idx=train, val_idx=val, test_idx=test, split_here=True)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.path is None:
            return super().__reduce_ex__(protocol)
        return _mapped_again, (self.path, self.meta, self.held, self.split_here)


def _mapped_again(
    folder: Path, meta: dict[str, Any], held: Mapping[str, str], split_here: bool
) -> Graph:
    """A graph that was opened, and so checked, in another process."""
    if layout.read_meta(folder) != meta:
        raise DataError(f"{folder} holds another graph than when it was opened; open it anew")
    layout.check_sizes(folder, meta)
    graph = Graph.mapped(folder, meta, held)
    return graph.with_splits() if split_here else graph


def _map_tensor(folder: Path, array: str, meta: dict[str, Any], held: str | None) -> Tensor:
    entry = meta["arrays"][array]
    dtype = {"int32": torch.int32, "int64": torch.int64, "float32": torch.float32}[entry["dtype"]]
    shape = tuple(entry["shape"])
    if held is not None:
        return map_shared(held, dtype, shape)
    if layout.is_made(entry):
        return _made_tensor(folder, meta, array)
    size = int(np.prod(shape, dtype=np.int64))
    if size == 0:
        return torch.empty(shape, dtype=dtype)
    # shared=False maps the file privately: torch may write to its pages, never to the file.
    flat = torch.from_file(str(layout.file_of(folder, array)), shared=False, size=size, dtype=dtype)
    return flat.view(shape)


def _made_tensor(folder: Path, meta: dict[str, Any], array: str) -> Tensor:
    """An array without a file. Raises ``DataError`` for a recipe of the wrong form,
    ``HostMemoryError`` where it does not fit."""
    from gnnbench.datasets.generators.generated_features import make

    try:
        return make(folder, meta, array)
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
