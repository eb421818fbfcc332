"""Base classes of feature stores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core.counters import CALLS, FEATURE_BYTES, Metric

if TYPE_CHECKING:
    from torch import Tensor

    from gnnbench.core.job import Job
    from gnnbench.core.minibatch import Batch
    from gnnbench.features.policies.policy import Footprint


CHUNK_BYTES = 1 << 28  # bytes of rows copied at a time to fill a cache
MIN_ROW_BYTES = 64  # ids of narrower rows take more memory than the rows


@dataclass(frozen=True)
class CachePoint:
    """Hits and misses in an epoch of a cache of ``policy`` and ``ratio``.

    Both count requested rows. A store above the cache may request fewer rows than batches need.
    """

    policy: str
    ratio: float
    hits: int
    missed: int


class FeatureStore(ABC):
    """Serves feature rows, and counts them by path.

    ``window`` batches are drawn and announced before the first of them is loaded. ``overlaps``:
    rows that batches have in common are loaded once. ``bytes_apart``: GPU memory of the store that
    torch's allocator does not manage.
    """

    window: int = 1
    bytes_apart: int = 0
    overlaps: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        defined = cls.__dict__
        if "load_into" not in defined and ("load" in defined or "fetch" in defined):
            cls.load_into = FeatureStore.load_into  # type: ignore[method-assign]

    def __init__(self, job: Job) -> None:
        table = job.graph.features
        self.job, self._counts = job, job.counts
        self._row_bytes = table.shape[1] * table.element_size()

    @abstractmethod
    def load(self, batch: Batch) -> Tensor:
        """Rows of the batch's input nodes ``[n, feature_dim]`` on the compute device, bit-equal to
        the feature table.

        They stay valid until the ``job.max_in_flight``-th following call. On a GPU the reader's
        work precedes, in stream order, the work that this call enqueues.
        """

    def load_into(self, batch: Batch, out: Tensor) -> bool:
        """Write the rows that ``load`` returns to ``out``, of their shape, dtype and device.

        Returns whether they were gathered there. If not, they were loaded and then copied, as in
        every subclass with another ``load`` or ``fetch`` that does not define this method, too.
        """
        out.copy_(self.load(batch))
        return False

    def reserve(self, rows: int) -> list[Tensor]:
        """Allocate buffers for results of up to ``rows`` rows, on the compute device.

        ``load`` then returns the beginning of one of them; the remainder is 0 or has rows of the
        table. Empty if results have no fixed buffers.
        """
        return []

    def forget(self) -> None:  # noqa: B027
        """Begin an epoch: rows left by batches of earlier epochs must not be reused.

        A cache keeps its rows across epochs.
        """

    def announce(self, batches: Sequence[Batch]) -> None:  # noqa: B027
        """Receive the next batches in order; called if ``window`` is above 1."""

    def count(self, rows: int, where: str, calls: int = 1) -> None:
        """Count rows served by ``calls`` calls on path ``where`` (``core.counters.WHERE``)."""
        self._counts.add("features", FEATURE_BYTES, rows * self._row_bytes, where)
        self._counts.add("features", CALLS, calls, where)

    def fit(self, peak: Callable[[], int]) -> dict[Metric, float]:
        """Derive the store's size from free memory; returns measures of that step.

        ``peak`` runs batches with the current store and returns the peak of device memory in bytes.
        Called before ``prepare``, when all stages are built.
        """
        return {}

    def prepare(self, footprint: Footprint) -> dict[Metric, float]:
        """Prepare the store before any batch; returns measures of that step.

        ``footprint`` draws the input nodes of an epoch's batches with the cell's sampler.
        """
        return {}

    def foresee(self, footprint: Footprint, epochs: Sequence[int]) -> None:  # noqa: B027
        """Prepare for ``epochs``, which run next; called only if the spec ``foresees``."""

    def curves(self, footprint: Footprint, epoch: int) -> list[CachePoint]:
        """Hits of caches of other sizes in ``epoch``; called only if the spec is ``traced``."""
        return []

    def close(self) -> None:  # noqa: B027
        """Free all resources."""


def in_chunks(ids: Tensor, out: Tensor, row_bytes: int) -> Iterable[tuple[Tensor, Tensor]]:
    """Split ``out`` and ``ids`` into chunks that need little temporary memory to copy."""
    rows = max(1, CHUNK_BYTES // max(MIN_ROW_BYTES, row_bytes))
    return zip(out.split(rows), ids.split(rows), strict=True)


class RowStore(FeatureStore):
    """A store that needs only ids, so that another store can use it as its fallback."""

    @abstractmethod
    def fetch(self, ids: Tensor) -> Tensor:
        """Rows ``[n, feature_dim]`` on the compute device, valid as those of ``load``.

        ``ids`` int32 or int64 ``[n]``, on the compute device or the host.
        """

    def load(self, batch: Batch) -> Tensor:
        """Rows of the batch's input nodes."""
        return self.fetch(batch.input_nodes)


class TableStore(RowStore):
    """A store that reads the table itself, so that it can fill a cache."""

    @abstractmethod
    def copy_rows(self, ids: Tensor, out: Tensor) -> None:
        """Copy rows of ``ids`` int64 ``[n]``, on any device, to ``out`` ``[n, feature_dim]`` on
        the compute device, in stream order, without counting them."""

    def fetch_to(self, ids: Tensor, places: Tensor, out: Tensor) -> None:
        """Write the rows of ``ids`` to ``out[places]``; ``places`` int32 ``[n]``, distinct, on the
        device of ``out``. Stores that the cores gather for write each row once."""
        out.index_copy_(0, places.long(), self.fetch(ids))

    @abstractmethod
    def copy_all(self, out: Tensor) -> None:
        """Copy all rows to ``out`` in the order of ids, likewise."""


class FallbackStore(FeatureStore):
    """A store with a ``fallback``, which fetches missing rows.

    Calls are passed on to the fallback; its footprint contains only the missing rows.
    """

    def __init__(self, job: Job, fallback: RowStore) -> None:
        super().__init__(job)
        self._fallback = fallback

    def missing_ids(self, batches: Iterable[Tensor]) -> Iterable[Tensor]:
        """Ids requested from the fallback while an epoch's ``batches`` are loaded."""
        return batches

    def _fallback_footprint(self, footprint: Footprint) -> Footprint:
        return lambda epoch: self.missing_ids(footprint(epoch))

    def forget(self) -> None:
        """Begin an epoch, also for the fallback."""
        self._fallback.forget()

    def fit(self, peak: Callable[[], int]) -> dict[Metric, float]:
        """As the fallback."""
        return self._fallback.fit(peak)

    def prepare(self, footprint: Footprint) -> dict[Metric, float]:
        """As the fallback."""
        return self._fallback.prepare(self._fallback_footprint(footprint))

    def foresee(self, footprint: Footprint, epochs: Sequence[int]) -> None:
        """As the fallback."""
        self._fallback.foresee(self._fallback_footprint(footprint), epochs)

    def curves(self, footprint: Footprint, epoch: int) -> list[CachePoint]:
        """Curves of the fallback."""
        return self._fallback.curves(self._fallback_footprint(footprint), epoch)

    def close(self) -> None:
        """Free the fallback."""
        self._fallback.close()
