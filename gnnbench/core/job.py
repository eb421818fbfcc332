"""What the stages of one cell are built for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from gnnbench.core.cell import Cell
from gnnbench.core.counters import Counts
from gnnbench.core.peak_memory import Peak

if TYPE_CHECKING:  # keeps torch out of the listing of systems
    import torch

    from gnnbench.core.rendezvous import Peers
    from gnnbench.datasets.graph import Graph


def nobody(error: BaseException) -> None:
    """Nobody else can end what hangs here."""


@dataclass(frozen=True)
class Job:
    """A cell's settings, its graph, and where its stages count what they do.

    ``max_in_flight`` is the number of the feature store's results that must be valid at a time.
    ``peers`` are the other ranks of a group, or None. ``stuck`` is called on another thread with an
    error if processes of the schedule fail and the caller's thread cannot notice it. ``peak`` is
    the peak of the GPU's memory, one object for all stages of the process.
    """

    cell: Cell
    graph: Graph
    counts: Counts
    max_in_flight: int = 1
    peers: Peers | None = None
    stuck: Callable[[BaseException], None] = nobody
    peak: Peak = field(default_factory=Peak, compare=False)

    @cached_property
    def device(self) -> torch.device:
        """Where batches are computed on."""
        import torch

        device = torch.device(self.cell.device)
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", torch.cuda.current_device())
        return device
