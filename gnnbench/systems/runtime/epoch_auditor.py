"""Audits an epoch after it was timed, and reports what it did."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from torch import Tensor

from gnnbench.core.cell import Until
from gnnbench.core.minibatch import Sizes
from gnnbench.systems.runtime.built_system import BuiltSystem
from gnnbench.systems.runtime.epoch_audit import (
    check_batch_order,
    check_batches,
    check_last_rows,
    check_seeds,
    mean_loss,
)
from gnnbench.systems.runtime.spot_checks import PLAIN_TYPES, is_plain, sizes_fault
from gnnbench.systems.runtime.stochastic import verifier
from gnnbench.systems.runtime.system import EpochReport

if TYPE_CHECKING:
    from gnnbench.distributed.merge import MergedEpoch
    from gnnbench.systems.runtime.verification import Verifier

MIN_LOSS = 1e-3  # below it there is nothing left to learn, as with a single class


class EpochAuditor:
    """Checks the recorded batches of a system's last epoch.

    ``merged`` is the last epoch's result of all ranks; None where one process runs every batch.
    """

    def __init__(self, system: BuiltSystem) -> None:
        self._system = system
        self._sorted_train_nodes: Tensor | None = None
        self._digests: dict[int, str] = {}  # of the copied batches, by number
        self.merged: MergedEpoch | None = None

    def audit(self, epoch: int) -> EpochReport:
        """Check and count the epoch that ran last.

        Seeds and edge counts of every batch; all edges and some rows of the copied batches; rows of
        the last batch; losses and parameter updates. Of what stages returned, only tensors and
        sizes of known types are read.
        """
        system = self._system
        law = system.stages.sampler.law.on(system.job.device)
        seeds = system.order.batches(epoch, system.job.device)
        own_seeds = system.schedule.rank_audit.own_seeds(seeds)
        window = system.order.window if system.until > Until.SAMPLE else 1
        executed = system.recorder.take_batches()
        lazy_fault = self._check_types([sizes for _, sizes in executed])
        if lazy_fault:
            executed = []
        copies_fault = self._check_copies(executed, window)
        own = system.schedule.rank_audit.own_numbers(len(seeds))
        batches, order_fault = check_batch_order(executed, window, own)
        last = system.recorder.take_last()
        reason = (
            lazy_fault
            or self._law_fault(law.name)
            or check_seeds(seeds, self._train_nodes())
            or order_fault
            or check_batches(batches, own_seeds, law, system.job.cell.fanouts)
            or copies_fault
        )
        if last is not None:
            reason = reason or check_last_rows(system.job.graph, *last)
        report = EpochReport(
            epoch=epoch,
            batches=len(batches),
            seeds=sum(sizes.seeds.numel() for sizes in batches),
            sampled_edges=sum(sizes.num_edges for sizes in batches),
            unique_nodes=sum(sizes.num_nodes for sizes in batches),
            loss=None,
        )
        self._audit_training(report, seeds, reason)
        report = self._merge_ranks(report, seeds)
        if self.merged is None:  # of ranks that share batches, each has a part of the edges
            report.digests = self._digests
        report.counts = system.job.counts.rows()
        system.job.counts.clear()
        report.peak_alloc_bytes = self.peak_bytes() + system.schedule.peak_bytes
        report.ok = not report.reason
        return report

    def _check_types(self, sizes: Sequence[Sizes]) -> str:
        """Check that batches and rows were complete when their epoch ended."""
        row_types, block_types = self._system.recorder.take_types()
        if wrong := [kind for kind in row_types if kind is not Tensor]:
            return f"feature rows must be a torch.Tensor, not {wrong[0].__name__}"
        if wrong := [kind for kind in block_types if kind not in PLAIN_TYPES]:
            kind = wrong[0].__name__
            return f"a batch must contain plain tensors, blocks and integers, not {kind}"
        if not all(map(is_plain, sizes)):
            return "the sizes of a batch must contain plain tensors and integers"
        return ""

    def _law_fault(self, law: str) -> str:
        """Check that the sampler states the law that it was checked by at the gate."""
        gate_law = self._system.gate_law
        if gate_law in ("", law):
            return ""
        return f"the sampler's law is '{law}' where it was '{gate_law}' at the gate"

    @cached_property
    def _verifier(self) -> Verifier:
        system = self._system
        return verifier(system.job, system.recipe.sampler, system.stages.sampler)

    def _check_copies(self, executed: Sequence[tuple[int, Sizes]], window: int) -> str:
        """Check the copied batches of the last epoch, and keep the digests of their edges."""
        self._digests = {}
        fault = ""
        for position, copy in self._system.recorder.take_copies():
            if position >= len(executed):
                break
            self._verifier.check(copy)
            fault = fault or self._verifier.fault
            if not fault and (wrong := sizes_fault(executed[position][1], copy)):
                fault = f"batch {position + 1}: {wrong}"
            for digest in self._verifier.take_digests():
                self._digests[position if window == 1 else copy.number] = digest.hex()
        return fault and f"in a timed epoch: {fault}"

    def _audit_training(self, report: EpochReport, seeds: list[Tensor], reason: str) -> None:
        """Fill in loss, parameter norms and the first fault; ``reason`` is that of the batches."""
        system, trainer = self._system, self._system.trainer
        if trainer is not None:
            losses = trainer.take_losses()
            report.param_moved, report.param_norm = trainer.take_movement(), trainer.norm()
            report.loss = mean_loss(losses, seeds, system.job.graph.labels)
            due = system.schedule.rank_audit.trained_batches(len(seeds))
            if not reason and len(losses) != due:
                reason = f"the model was trained on {len(losses)} batches of {due}"
            if not reason and (report.loss or 0.0) > MIN_LOSS and not any(report.param_moved):
                reason = "the epoch changed no parameter of the model: nothing was trained"
        report.reason = reason

    def _merge_ranks(self, report: EpochReport, seeds: list[Tensor]) -> EpochReport:
        """Replace the counts of this process by those of all ranks, where there are several."""
        merged = self.merged = self._system.schedule.rank_audit.merge(report.epoch, report.reason)
        if merged is None:
            return report
        loss = report.loss
        if merged.losses is not None:
            loss = mean_loss(merged.losses, seeds, self._system.job.graph.labels)
        return replace(
            report,
            batches=merged.batches,
            seeds=merged.seeds,
            sampled_edges=merged.edges,
            unique_nodes=merged.nodes,
            reason=merged.reason,
            loss=loss,
        )

    def peak_bytes(self) -> int:
        """Peak memory of this process: of the GPU's allocator, on a CPU resident, in bytes."""
        if self._system.job.device.type == "cuda":
            return self._system.stages.peak_bytes
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def _train_nodes(self) -> Tensor:
        """Return the training nodes in ascending order."""
        if self._sorted_train_nodes is None:
            nodes = self._system.job.graph.train_idx  # already sorted in stored graphs
            is_sorted = bool((nodes[1:] > nodes[:-1]).all())
            self._sorted_train_nodes = nodes if is_sorted else nodes.sort().values
        return self._sorted_train_nodes
