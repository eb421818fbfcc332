"""Messages between the consumer and the producer's process, and the socket that carries them."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from enum import Enum
from multiprocessing.connection import Connection

import numpy as np
import numpy.typing as npt

from gnnbench.core.cell import Cell
from gnnbench.datasets.graph import Graph
from gnnbench.measure.timeline import Span


class Part(Enum):
    """Phases that a process runs: both; sampling alone; or memory IO alone.

    A process with ``GATHER`` starts another one with ``SAMPLE``.
    """

    BOTH = "both"
    SAMPLE = "sample"
    GATHER = "gather"


@dataclass(frozen=True)
class BuildProducer:
    """Build the stages of a cell, those of ``part``.

    ``device`` is the number of a GPU, None on a CPU. ``share`` is the percentage of its
    ``processors`` that MPS grants the producer, 100 without MPS.
    """

    cell: Cell
    graph: Graph
    threads: int
    device: int | None
    processors: int
    buffers: int
    share: int
    part: Part


@dataclass(frozen=True)
class ProduceEpoch:
    """Run batches of an epoch.

    ``seeds``: those of all batches; ``lengths``: how many each batch has; ``numbers``: the place
    of each batch in the epoch. ``trace``: the file for a trace of the epoch's kernels, "" for none.
    """

    number: int
    seeds: npt.NDArray[np.int64]
    lengths: list[int]
    numbers: list[int]
    trace: str = ""


@dataclass(frozen=True)
class ForeseeEpochs:
    """Prepare the store, an oracle, for the epochs that run next."""

    numbers: tuple[int, ...]


@dataclass(frozen=True)
class StopEpoch:
    """Stop the epoch: the consumer takes no more of its batches."""


@dataclass(frozen=True)
class RequestDone:
    """A request is done.

    ``counts`` and ``spans`` are those of an epoch, ``peak_bytes`` the peak of the producer's
    private memory.
    """

    counts: list[list[str | float]]
    spans: list[Span]
    peak_bytes: int


class GoneError(Exception):
    """The other process has ended."""


def send(connection: Connection[object, object], message: object) -> None:
    """Send a message to the other process. Raises ``GoneError``."""
    try:
        connection.send_bytes(pickle.dumps(message))
    except ConnectionError:
        raise GoneError from None


def receive(connection: Connection[object, object]) -> object:
    """Wait for a message of the other process. Raises ``GoneError``."""
    try:
        message = connection.recv_bytes()
    except (EOFError, ConnectionError):
        raise GoneError from None
    return pickle.loads(message)
