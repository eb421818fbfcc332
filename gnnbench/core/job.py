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

    ``held`` is how many results of its feature store must be valid at a time; ``peers`` are the
    ranks that are built beside this one, None where there are none. ``stuck`` is called on another
    thread where processes of the schedule are lost and the caller's thread does not come to know of
    it, with what it would raise. ``peak`` is that of the GPU's memory, one object for all stages of
    the process.
    """

    cell: Cell
    graph: Graph
    counts: Counts
    held: int = 1
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
