"""Setting and placed graph of a sampler."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.sampling.placed_graph import PlacedGraph
from gnnbench.sampling.rebuilt import RebuiltFromArguments
from gnnbench.sampling.setting import Setting


class GraphSampling(RebuiltFromArguments):
    """A checked ``setting``, and the graph's tensors on the sampling device."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._sampled_on = setting.sampled_on
        self._placed = PlacedGraph(setting)
        self._indptr, self._indices = self._placed.indptr, self._placed.indices
        self._pick, self._weights = self._placed.pick, self._placed.weights

    @property
    def pick(self) -> str:
        """Name of the pick function."""
        return self.setting.pick.name

    @property
    def frontier(self) -> str:
        """``cumulative`` or ``new``."""
        return self.setting.frontier

    @property
    def fanouts(self) -> tuple[int, ...]:
        """Neighbours per destination and hop, from the seeds outwards."""
        return self.setting.fanouts

    @property
    def device(self) -> torch.device:
        """The device that receives the blocks."""
        return self.setting.device

    @property
    def indptr(self) -> Tensor:
        """int64 ``[num_nodes + 1]``, on the sampling device."""
        return self._indptr

    @property
    def indices(self) -> Tensor:
        """int32 or int64 ``[num_edges]``, on the sampling device."""
        return self._indices

    @property
    def weights(self) -> Tensor | None:
        """float ``[num_edges]`` in the order of ``indices``; None unless the law is
        ``weighted``."""
        return self._weights

    @property
    def num_nodes(self) -> int:
        """Nodes of the graph."""
        return self._indptr.numel() - 1

    @property
    def num_edges(self) -> int:
        """Edges of the graph."""
        return self._indices.numel()

    def close(self) -> None:
        """Unlock the graph's host memory; the sampler cannot be used afterwards."""
        self._placed.close()
