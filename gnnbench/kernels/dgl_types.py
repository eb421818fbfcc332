"""Structural types of DGL objects; DGL itself has no annotations and may be absent."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class DglGraph(Protocol):
    """A homogeneous ``dgl.DGLGraph``, as far as this package uses it."""

    idtype: torch.dtype
    device: torch.device
    is_homogeneous: bool

    def num_nodes(self) -> int:
        """Number of nodes."""

    def num_edges(self) -> int:
        """Number of edges."""

    def formats(self) -> Mapping[str, list[str]]:
        """Sparse formats: those created, and those that may be created."""

    def adj_tensors(self, fmt: str) -> tuple[Tensor, Tensor, Tensor]:
        """Offsets, columns and edge ids of ``csc`` or ``csr``; the ids are empty where ordered."""

    def edges(self, form: str = "uv", order: str = "eid") -> tuple[Tensor, Tensor]:
        """Sources and destinations of all edges."""

    def find_edges(self, eid: Tensor) -> tuple[Tensor, Tensor]:
        """Sources and destinations of edges by their ids."""


class DglBlock(Protocol):
    """A ``dgl`` block: a bipartite layer whose destinations are its first sources."""

    srcdata: MutableMapping[str, Tensor]
    dstdata: MutableMapping[str, Tensor]
    edata: MutableMapping[str, Tensor]

    def num_src_nodes(self) -> int:
        """Number of source nodes."""

    def num_dst_nodes(self) -> int:
        """Number of destination nodes."""

    def num_edges(self) -> int:
        """Number of edges."""

    def adj_tensors(self, fmt: str) -> tuple[Tensor, Tensor, Tensor]:
        """Offsets, columns and edge ids of ``csc`` or ``csr``."""

    def edges(self) -> tuple[Tensor, Tensor]:
        """Local ids of sources and destinations."""

    def in_degrees(self) -> Tensor:
        """Sampled edges of each destination."""

    def local_scope(self) -> AbstractContextManager[None]:
        """Discard new node and edge data at the end of the block."""

    def update_all(self, message_func: object, reduce_func: object) -> None:
        """Send messages along all edges and reduce them at the destinations."""

    def apply_edges(self, func: object) -> None:
        """Compute edge data."""

    def to(self, device: torch.device | str) -> DglBlock:
        """Copy to a device."""
