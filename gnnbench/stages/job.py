"""What the stages of one cell are built for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from gnnbench.cell import Cell
from gnnbench.stages.counts import Counts

if TYPE_CHECKING:  # keeps torch out of the listing of systems
    import torch

    from gnnbench.data.graph import Graph
    from gnnbench.stages.peers import Peers


@dataclass(frozen=True)
class Job:
    """A cell's settings, its graph, and where its stages count what they do.

    ``held`` is how many results of its feature store must be valid at a time; ``peers`` are the
    ranks that are built beside this one, None where there are none.
    """

    cell: Cell
    graph: Graph
    counts: Counts
    held: int = 1
    peers: Peers | None = None

    @cached_property
    def device(self) -> torch.device:
        """Where batches are computed on."""
        import torch

        device = torch.device(self.cell.device)
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", torch.cuda.current_device())
        return device
