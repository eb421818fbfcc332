"""What a feature store is to an epoch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core.counters import CALLS, FEATURE_BYTES, Measure

if TYPE_CHECKING:
    from torch import Tensor

    from gnnbench.core.job import Job
    from gnnbench.core.minibatch import Batch
    from gnnbench.features.policies.policy import Footprint


CHUNK_BYTES = 1 << 28  # of the rows that are copied at a time to fill a cache
NARROW = 64  # bytes; what copies narrower rows takes more memory for their ids than for them


@dataclass(frozen=True)
class Point:
    """Rows that a cache of ``policy`` and ``ratio`` finds and misses in an epoch.

    Both are of the rows that are asked of it: what stands before it may ask for fewer than the
    batches need.
    """

    policy: str
    ratio: float
    hits: int
    missed: int


class FeatureStore(ABC):
    """Serves feature rows, and counts them by the path that they take.

    ``window`` batches are drawn and announced before the first of them is loaded. ``overlaps``: it
    loads less the more batches have in common. ``bytes_apart`` are those of the GPU's memory that
    it holds and that torch's allocator does not know.
    """

    window: int = 1
    bytes_apart: int = 0
    overlaps: ClassVar[bool] = False

    def __init__(self, job: Job) -> None:
        table = job.graph.features
        self.job, self._counts = job, job.counts
        self._row_bytes = table.shape[1] * table.element_size()

    @abstractmethod
    def load(self, batch: Batch) -> Tensor:
        """Rows of the batch's input nodes ``[n, feature_dim]`` on the compute device, bit-equal to
        the feature table's; valid until ``job.held`` calls later.

        On a GPU the work that they are read by is over, in the order of streams, before what that
        call enqueues.
        """

    def reserve(self, rows: int) -> list[Tensor]:
        """Make room for results of up to so many rows: the buffers, on the compute device, at whose
        beginnings ``load`` then leaves them; none where they are elsewhere each time.

        What is behind a result in its buffer are rows of the table or 0.
        """
        return []

    def forget(self) -> None:  # noqa: B027
        """An epoch begins: no row that a batch of an earlier one left behind may be reused.

        What a cache holds stays: it is there from epoch to epoch.
        """

    def announce(self, batches: Sequence[Batch]) -> None:  # noqa: B027
        """Hear, where ``window`` is above 1, which batches are loaded next, in their order."""

    def count(self, rows: int, where: str, calls: int = 1) -> None:
        """Count rows served ``where`` (``gnnbench.core.counters.WHERE``) by so many calls."""
        self._counts.add("features", FEATURE_BYTES, rows * self._row_bytes, where)
        self._counts.add("features", CALLS, calls, where)

    def fit(self, peak: Callable[[], int]) -> dict[Measure, float]:
        """Derive how much memory there is to take, once all stages are there; what that took.

        ``peak`` runs batches as the store stands and gives the most bytes of the device's memory
        that were in use. Called before ``prepare``.
        """
        return {}

    def prepare(self, footprint: Footprint) -> dict[Measure, float]:
        """Get ready once the sampler is there, before any batch; what that took and holds.

        ``footprint`` draws the input nodes of an epoch's batches, with the cell's own sampler.
        """
        return {}

    def foresee(self, footprint: Footprint, epoch: int) -> None:  # noqa: B027
        """Get ready for ``epoch``, which is run next; told only where the spec ``foresees``."""

    def curves(self, footprint: Footprint, epoch: int) -> list[Point]:
        """What caches of other sizes would have hit in ``epoch``; asked where the spec is
        ``traced``."""
        return []

    def close(self) -> None:  # noqa: B027
        """Give back what the store took."""


def in_chunks(ids: Tensor, out: Tensor, row_bytes: int) -> Iterable[tuple[Tensor, Tensor]]:
    """Rows of ``out`` and their ``ids``, so many at a time that what copies them takes little
    memory of its own."""
    rows = max(1, CHUNK_BYTES // max(NARROW, row_bytes))
    return zip(out.split(rows), ids.split(rows), strict=True)


class RowStore(FeatureStore):
    """A store that needs nothing of a batch but its ids, so that others may stand before it."""

    @abstractmethod
    def fetch(self, ids: Tensor) -> Tensor:
        """Rows of ``ids`` int32 or int64 ``[n]``, which are on the compute device or the host:
        ``[n, feature_dim]`` on the compute device, valid as those of ``load``."""

    def load(self, batch: Batch) -> Tensor:
        """Rows of the batch's input nodes."""
        return self.fetch(batch.input_nodes)


class TableStore(RowStore):
    """A store that reads the table itself, so that it can fill a cache before it."""

    @abstractmethod
    def copy_rows(self, ids: Tensor, out: Tensor) -> None:
        """Copy rows of ``ids`` int64 ``[n]``, anywhere, to ``out`` ``[n, feature_dim]`` on the
        compute device, in the order of streams, and count nothing."""

    @abstractmethod
    def copy_all(self, out: Tensor) -> None:
        """Copy all rows in the order of their ids, likewise."""


class Over(FeatureStore):
    """A store before another, ``under``, which it asks for the rows that it lacks.

    What is asked of it is asked of both. The one below is told of the epochs what it will be asked.
    """

    def __init__(self, job: Job, under: RowStore) -> None:
        super().__init__(job)
        self._under = under

    def lacking(self, batches: Iterable[Tensor]) -> Iterable[Tensor]:
        """Ids that are asked of the store below while an epoch's ``batches`` are loaded."""
        return batches

    def _below(self, footprint: Footprint) -> Footprint:
        return lambda epoch: self.lacking(footprint(epoch))

    def forget(self) -> None:
        """An epoch begins for the store below as well."""
        self._under.forget()

    def fit(self, peak: Callable[[], int]) -> dict[Measure, float]:
        """As the store below."""
        return self._under.fit(peak)

    def prepare(self, footprint: Footprint) -> dict[Measure, float]:
        """As the store below."""
        return self._under.prepare(self._below(footprint))

    def foresee(self, footprint: Footprint, epoch: int) -> None:
        """As the store below."""
        self._under.foresee(self._below(footprint), epoch)

    def curves(self, footprint: Footprint, epoch: int) -> list[Point]:
        """Those of the store below."""
        return self._under.curves(self._below(footprint), epoch)

    def close(self) -> None:
        """Give back what the store below took."""
        self._under.close()
