"""Coordination of ranks that train on whole batches, several in an update."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from torch import Tensor

from gnnbench.core.counters import Counts
from gnnbench.distributed.coordination import Coordination
from gnnbench.distributed.factored_results import TrainedEpoch, merge_trained
from gnnbench.distributed.merge import MergedEpoch
from gnnbench.distributed.rank_trainer import rank_trainer
from gnnbench.distributed.step_verification import StepVerification, flat_weights
from gnnbench.distributed.tasks import TrainingStep
from gnnbench.pipelines.schedule import Stages
from gnnbench.pipelines.utilization import add_rows


class StepCoordination(Coordination):
    """Merges the ranks' batches, and verifies the updates of a verification epoch.

    ``steps`` are those of the last epoch; ``verification`` is set after an epoch whose every batch
    the gate checks.
    """

    def __init__(self) -> None:
        self._batches = 0
        self.steps: Sequence[TrainingStep] = []
        self.verification: StepVerification | None = None

    @contextmanager
    def recorded(
        self, batches: list[Tensor], stages: Stages, records_edges: bool
    ) -> Iterator[None]:
        """Keep what a verification epoch starts from and ends with."""
        self._batches, self.verification = len(batches), None
        trainer = rank_trainer(stages)
        before = trainer.kept() if records_edges and trainer is not None else None
        yield
        if before is not None and trainer is not None:
            self.verification = StepVerification(batches, stages, before, flat_weights(trainer))

    def merge_whole(
        self, epoch: int, results: Sequence[TrainedEpoch], counts: Counts
    ) -> MergedEpoch:
        """Merge the results of all ranks.

        If a step of a verification epoch had several batches, this process takes its steps again.
        """
        merged = merge_trained(results, self._batches)
        if self.verification is None or merged.reason:
            return merged
        if all(len(step.batches) < 2 for step in self.steps):
            return merged
        rows = counts.rows()
        fault = self.verification.fault(epoch, self.steps, merged.losses or [])
        counts.clear()  # of what the verification loaded
        add_rows(counts, rows)
        return replace(merged, reason=fault)
