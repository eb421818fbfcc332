"""What a feature store is to an epoch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gnnbench.errors import UnsupportedError
from gnnbench.stages.counts import CALLS, FEATURE_BYTES

if TYPE_CHECKING:
    from torch import Tensor

    from gnnbench.minibatch import Batch
    from gnnbench.stages.job import Job


class FeatureStore(ABC):
    """Serves feature rows, and counts them by the path that they take.

    ``window`` batches are drawn and announced before the first of them is loaded.
    """

    window: int = 1

    def __init__(self, job: Job) -> None:
        table = job.graph.features
        self.job, self._counts = job, job.counts
        self._row_bytes = table.shape[1] * table.element_size()

    @abstractmethod
    def load(self, batch: Batch) -> Tensor:
        """Rows of the batch's input nodes ``[n, feature_dim]`` on the compute device, bit-equal to
        the feature table's; valid until the next call."""

    def rows(self, ids: Tensor) -> Tensor:
        """The same for ids that are given. Raises ``UnsupportedError`` where it needs a batch."""
        raise UnsupportedError(f"{type(self).__name__} fetches for whole batches only")

    def forget(self) -> None:  # noqa: B027
        """An epoch begins: nothing that an earlier batch left may be used."""

    def announce(self, batches: Sequence[Batch]) -> None:  # noqa: B027
        """Hear, where ``window`` is above 1, which batches are loaded next, in their order."""

    def count(self, rows: int, where: str) -> None:
        """Count rows served ``where`` (``gnnbench.stages.counts.WHERE``)."""
        self._counts.add("features", FEATURE_BYTES, rows * self._row_bytes, where)
        self._counts.add("features", CALLS, 1, where)

    def close(self) -> None:  # noqa: B027
        """Give back what the store took."""
