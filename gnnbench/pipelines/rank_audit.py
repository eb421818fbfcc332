"""What gate and audit ask of a schedule whose epoch is divided among several ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from gnnbench.core.batch_choice import BatchChoice
    from gnnbench.distributed.merge import MergedEpoch
    from gnnbench.sampling.stage import SamplerStage


class RankAudit:
    """The answers of a schedule of one process, which runs every batch itself."""

    def record_edges(self, enabled: bool) -> None:
        """Have the other ranks record the edges that they sample, for the gate."""

    def copy_batches(self, choice: BatchChoice) -> None:
        """Have the other ranks copy these batches of the next epochs aside."""

    def own_seeds(self, batches: Sequence[Tensor]) -> list[Tensor]:
        """Return for each of an epoch's batches the seeds that this process samples for."""
        return list(batches)

    def own_numbers(self, batches: int) -> range:
        """Return the numbers of an epoch's ``batches`` that this process runs."""
        return range(batches)

    def trained_batches(self, batches: int) -> int:
        """Return on how many of ``batches`` batches of the last epoch this process trained."""
        return batches

    def merge(self, epoch: int, reason: str) -> MergedEpoch | None:
        """Merge the last epoch's results of all ranks; None where this process is the only one.

        ``reason`` is the fault that the audit of this process found, or "".
        """
        return None

    def compare(self, epoch: int, batches: Sequence[Tensor]) -> str:
        """Compare what the ranks sample and load with the stages that the gate checks.

        ``batches`` are seeds. Returns the fault, or "".
        """
        return ""

    def sampled_per_seed(
        self, sampler: SamplerStage, batches: Sequence[Tensor]
    ) -> tuple[float, float] | None:
        """Return edges and nodes per seed of these batches as all ranks together sample them.

        None where the ranks sample what one process samples.
        """
        return None
