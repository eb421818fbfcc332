"""The part of a sampler that adapters of DGL and PyG use."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from gnnbench.core.minibatch import MiniBatch


class SupportsSampling(Protocol):
    """The interface of :class:`gnnbench.sampling.base.Sampler` that an adapter needs."""

    @property
    def pick(self) -> str:
        """Name of the pick function."""

    @property
    def indptr(self) -> Tensor:
        """int64 ``[num_nodes + 1]``."""

    @property
    def indices(self) -> Tensor:
        """int32 or int64 ``[num_edges]``."""

    @property
    def num_nodes(self) -> int:
        """Nodes of the graph."""

    @property
    def num_edges(self) -> int:
        """Edges of the graph."""

    def sample(
        self, seeds: Tensor, epoch: int = 0, batch: int = 0, *, with_positions: bool | None = None
    ) -> MiniBatch:
        """The blocks for ``seeds``, input layer first."""
