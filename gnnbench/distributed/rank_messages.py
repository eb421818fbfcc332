"""Messages between rank 0 and the processes of the other ranks. Each is answered by one object."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from gnnbench.core.batch_choice import NO_BATCHES, BatchChoice

if TYPE_CHECKING:
    from torch import Tensor

    from gnnbench.core.cell import Cell
    from gnnbench.datasets.graph import Graph
    from gnnbench.distributed.partition.split import Split
    from gnnbench.measure.timeline import Span

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class BuildRank:
    """Build the system of a cell.

    ``device`` is the number of a GPU, None on a CPU. ``peers_port`` is the port of the rendezvous
    that ranks use while they are built.
    """

    peers_port: int
    cell: Cell
    graph: Graph
    rank: int
    ranks: int
    threads: int
    device: int | None
    split: Split | None = None


@dataclass(frozen=True)
class JoinGroup:
    """Join the process group: all ranks are built."""


@dataclass(frozen=True)
class MeasurePhases:
    """Rank ``rank`` runs an epoch alone and answers with its ``PhaseTimes``."""

    rank: int


@dataclass(frozen=True)
class PhaseTimes:
    """Seconds of a batch in each phase."""

    sample_s: float
    memory_io_s: float
    compute_s: float


@dataclass(frozen=True)
class RunEpoch:
    """Run the rank's part of an epoch; the answer is an ``EpochResult``.

    ``record_edges``: the gate checks every batch, and the rank returns the edges that it samples.
    ``broadcast_state``: rank 0 sends its weights to the others first. ``copied`` are the
    batches that are copied aside and checked.
    """

    number: int
    record_edges: bool
    broadcast_state: bool
    copied: BatchChoice = NO_BATCHES


@dataclass(frozen=True)
class ComparePartition:
    """Compare what the rank's partition samples and loads with the whole graph's stages.

    ``batches`` are seeds. The answer is the fault, or "".
    """

    epoch: int
    batches: list[Tensor]


@dataclass(frozen=True)
class AuditEpoch:
    """Audit the last epoch, ``number``; the answer is what the rank did in it."""

    number: int


@dataclass(frozen=True)
class EpochResult:
    """Counts, spans and peak memory of a rank in an epoch."""

    counts: list[list[str | float]]
    spans: list[Span]
    peak_bytes: int


def expect(kind: type[Answer], answers: Iterable[object]) -> list[Answer]:
    """Return the answers of all ranks, which must be of one type."""
    checked: list[Answer] = []
    for answer in answers:
        assert isinstance(answer, kind), type(answer).__name__
        checked.append(answer)
    return checked
