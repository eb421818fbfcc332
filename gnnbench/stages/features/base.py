"""What a feature store is to an epoch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from gnnbench.stages.counts import CALLS, FEATURE_BYTES, Measure

if TYPE_CHECKING:
    from torch import Tensor

    from gnnbench.cache.policy import Footprint
    from gnnbench.minibatch import Batch
    from gnnbench.stages.job import Job


class FeatureStore(ABC):
    """Serves feature rows, and counts them by the path that they take.

    ``window`` batches are drawn and announced before the first of them is loaded. ``overlaps``: it
    loads less the more batches have in common.
    """

    window: int = 1
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

    def forget(self) -> None:  # noqa: B027
        """An epoch begins: nothing that an earlier batch left may be used."""

    def announce(self, batches: Sequence[Batch]) -> None:  # noqa: B027
        """Hear, where ``window`` is above 1, which batches are loaded next, in their order."""

    def count(self, rows: int, where: str, calls: int = 1) -> None:
        """Count rows served ``where`` (``gnnbench.stages.counts.WHERE``) by so many calls."""
        self._counts.add("features", FEATURE_BYTES, rows * self._row_bytes, where)
        self._counts.add("features", CALLS, calls, where)

    def prepare(self, footprint: Footprint) -> dict[Measure, float]:
        """Get ready once the sampler is there, before any batch; what that took and holds.

        ``footprint`` draws the input nodes of an epoch's batches, with the cell's own sampler.
        """
        return {}

    def foresee(self, footprint: Footprint, epoch: int) -> None:  # noqa: B027
        """Get ready for ``epoch``, which is run next; told only where the spec ``foresees``."""

    def curves(self, footprint: Footprint, epoch: int) -> list[dict[str, Any]]:
        """What caches of other sizes would have hit in ``epoch``: rows of ``curves.csv`` without
        the cell; asked where the spec is ``traced``."""
        return []

    def close(self) -> None:  # noqa: B027
        """Give back what the store took."""


class RowStore(FeatureStore):
    """A store that needs nothing of a batch but its ids, so that others may stand before it."""

    @abstractmethod
    def fetch(self, ids: Tensor) -> Tensor:
        """Rows of ``ids`` int32 or int64 ``[n]``, which are on the compute device or the host:
        ``[n, feature_dim]`` on the compute device, valid as those of ``load``."""

    def load(self, batch: Batch) -> Tensor:
        """Rows of the batch's input nodes."""
        return self.fetch(batch.input_nodes)
