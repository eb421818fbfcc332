"""What a feature store is to a recipe (its spec) and to an epoch (the store)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gnnbench.stages.counts import CALLS, FEATURE_BYTES
from gnnbench.stages.spec import Spec

if TYPE_CHECKING:
    from torch import Tensor

    from gnnbench.minibatch import Batch
    from gnnbench.stages.job import Job


class FeatureStore(ABC):
    """Serves feature rows, and counts them by the path that they take."""

    def __init__(self, job: Job) -> None:
        table = job.graph.features
        self.job, self._counts = job, job.counts
        self._row_bytes = table.shape[1] * table.element_size()

    @abstractmethod
    def load(self, batch: Batch) -> Tensor:
        """Rows of the batch's input nodes ``[n, feature_dim]`` on the compute device, bit-equal to
        the feature table's; valid until the next call."""

    def count(self, rows: int, where: str) -> None:
        """Count rows served ``where`` (``gnnbench.stages.counts.WHERE``)."""
        self._counts.add("features", FEATURE_BYTES, rows * self._row_bytes, where)
        self._counts.add("features", CALLS, 1, where)

    def close(self) -> None:  # noqa: B027
        """Give back what the store took."""


@dataclass(frozen=True)
class StoreSpec(Spec):
    """A feature store as a recipe names it."""

    kind: ClassVar[str] = "features"

    @abstractmethod
    def build(self, job: Job) -> FeatureStore:
        """The store of a cell."""
