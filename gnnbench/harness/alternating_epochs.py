"""Timed epochs of a trial: one of each worker in turn, A B, B A."""

from __future__ import annotations

import math
import secrets
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypedDict

from gnnbench.core.batch_choice import BatchChoice, copied_batches
from gnnbench.core.cell import Cell
from gnnbench.harness import report_audit, thread_placement
from gnnbench.harness.background_load import BackgroundLoad, BusyPrograms
from gnnbench.harness.epoch_numbers import EpochNumbers, Oracles, random_epoch
from gnnbench.harness.probing import shared_by_ranks
from gnnbench.harness.process import WorkerProcess
from gnnbench.harness.protocol import (
    AUDIT,
    COPIES,
    EPOCH,
    EVALUATE,
    ROOFLINE,
    AuditAnswer,
    TimedEpoch,
)
from gnnbench.harness.reduce.gather_rates import served
from gnnbench.harness.trial_context import TrialContext
from gnnbench.harness.trial_workers import TrialWorkers
from gnnbench.measure.throttle import GpuWatch, throttling
from gnnbench.schema.samples import EpochSample, read_counts

if TYPE_CHECKING:
    from gnnbench.schema.reports import CountRow
    from gnnbench.schema.roofline import RooflineRecord

SETTLE_S = 0.02  # between epochs: OpenMP threads spin a few ms before they sleep


class EpochPosition(TypedDict):
    """Where an epoch is within a trial: ``order`` is 0 for the worker that runs first.

    ``checked``: batches that are copied on average, where it is a round for that.
    """

    life: int
    worker: int
    round: int
    order: int
    warmup: bool
    checked: float


class AlternatingEpochs:
    """Runs epochs of both workers in turn; while one runs, the other one is idle.

    Epochs are numbered at random, alike on both sides. A worker learns the number with the command,
    so that it cannot work ahead. The exceptions are gnnbench's own oracles (``features=cache`` with
    ``policy=optimal`` or ``optimal#K``), which learn it earlier (``epoch_numbers``). Both sides get
    the same random key, which chooses the batches that are copied aside within the epoch and
    checked after it.
    """

    def __init__(self, context: TrialContext, workers: TrialWorkers, gpu: GpuWatch) -> None:
        self._context, self._workers, self._gpu = context, workers, gpu
        self._placement = thread_placement.Placement.of_this_process()
        self.busy_programs = BusyPrograms()
        self._shortest_s = math.inf  # epoch of either side
        self._elements = 0.0  # edges and nodes of a batch, of the side that has more
        self._numbers, self._measured = EpochNumbers(), 0  # measured rounds so far
        self._oracles = Oracles(context, self._numbers)

    @property
    def are_short(self) -> bool:
        """Whether epochs are so short that less than one batch of each is checked."""
        return self._copies < 1

    @property
    def _copies(self) -> float:
        return copied_batches(self._context.pair.system, self._shortest_s, self._elements)

    def run_round(self, number: int, warmup: bool, copies: float | None = None) -> float:
        """Run one epoch of each worker and check it; returns the duration of the round (s).

        ``warmup``: it is not measured. ``copies`` batches are checked on average, by default as
        many as do not lengthen the epoch. Raises ``CellFailed``.
        """
        began = time.monotonic()
        epoch = random_epoch() if warmup else self._numbers.of_round(self._measured)
        choice = BatchChoice(secrets.token_hex(16), self._copies if copies is None else copies)
        samples: list[tuple[Cell, EpochSample]] = []
        digests: list[dict[str, str]] = []
        try:
            for order, (cell, worker) in enumerate(self._workers.in_order(number % 2 == 1)):
                position = EpochPosition(
                    life=self._context.number, worker=worker.pid, round=number, order=order,
                    warmup=warmup, checked=copies or 0.0,
                )  # fmt: skip
                digests.append(self._run_epoch(cell, worker, epoch, choice, position, samples))
        finally:  # not earlier: a file with the epoch's number would help the second side
            for cell, sample in samples:
                self._context.journal.add_sample(cell, sample)
        self._measured += not warmup
        if len(digests) == 2:
            one, other = digests
            fault = report_audit.digests_fault(one, other, self._context.work_class)
            self._context.fail_if(self._context.pair.system, fault and f"epoch {epoch}, {fault}")
        return time.monotonic() - began

    def _run_epoch(
        self,
        cell: Cell,
        worker: WorkerProcess,
        epoch: int,
        choice: BatchChoice,
        position: EpochPosition,
        samples: list[tuple[Cell, EpochSample]],
    ) -> dict[str, str]:
        """Run and audit an epoch, and append its sample; returns the digests of the batches of
        ``choice``.
        """
        context = self._context
        self._oracles.prepare(cell, worker, epoch, self._measured)
        timing, conditions = self._time_epoch(cell, worker, epoch, choice)
        conditions = replace(conditions, **position)
        began = time.monotonic()
        self._shortest_s = min(self._shortest_s, timing["wall"])
        report = context.attempt(cell, partial(worker.call, AUDIT, epoch=epoch))
        conditions.audit_s = time.monotonic() - began
        elements = (report["sampled_edges"] + report["unique_nodes"]) / max(report["batches"], 1)
        self._elements = max(self._elements, elements)
        report["counts"] = [*report["counts"], *self._copy_times(cell, worker, report)]
        if context.measure.roofline and not position["warmup"]:
            conditions.roofline = self._roofline(cell, worker, epoch)
        if cell.evaluate:
            accuracies = context.attempt(cell, partial(worker.call, EVALUATE))
            conditions = replace(conditions, **accuracies)
        sample = context.journal.sample(context.pair, cell, conditions, timing, report)
        samples.append((cell, sample))
        self._workers.check_left_behind(cell, worker)
        fault = "" if report["ok"] else report["reason"]
        if cell.composed and not shared_by_ranks(cell):
            fault = fault or report_audit.missing_copies_fault(choice, report)
        fault = fault or report_audit.phase_fault(cell, epoch, timing["busy"])
        facts = context.journal.reports[cell.id]["facts"]
        context.fail_if(cell, fault or report_audit.sample_fault(cell, facts, epoch, sample))
        return report["digests"]

    def _time_epoch(
        self, cell: Cell, worker: WorkerProcess, epoch: int, choice: BatchChoice
    ) -> tuple[TimedEpoch, EpochSample]:
        """Run the epoch; returns its times and the conditions under which they were measured."""
        idle = [other for _, other in self._workers if other is not worker]
        time.sleep(SETTLE_S)
        gpu_before = self._gpu.read() if cell.device == "cuda" else None
        placement_before = self._placement_doubt()
        load = BackgroundLoad(worker, idle)
        timing = self._context.attempt(
            cell, partial(worker.timed, EPOCH, epoch=epoch, key=choice.key, copies=choice.count)
        )
        conditions = EpochSample(
            **load.read(),
            isolation=placement_before or self._placement_doubt(),
            **worker.idle_cpu.take(),
            stopped_s=worker.take_stopped_s(),
            runner_wait_s=timing["runner_wait_s"],
            worker_wait_s=timing["worker_wait_s"],
            threads_wait_s=timing["threads_wait_s"],
            work_cpu_s=timing["work_cpu_s"],
        )
        self.busy_programs.note(conditions, self._context.free_cores(cell))
        if cell.device == "cuda":
            gpu_after = self._gpu.read()
            if gpu_after is not None:
                conditions.sm_clock_mhz = gpu_after["sm_clock_mhz"]
                conditions.power_w = gpu_after["power_w"]
                conditions.temperature_c = gpu_after["temperature_c"]
            conditions.throttle = throttling(gpu_before, gpu_after)
        return timing, conditions

    def _placement_doubt(self) -> str:
        return thread_placement.workers_doubt(self._workers.pids, self._placement)

    def _copy_times(self, cell: Cell, worker: WorkerProcess, report: AuditAnswer) -> list[CountRow]:
        """Measure how long plain copies of as many bytes take, after an epoch of gathers."""
        if not (cell.gathers and cell.composed):
            return []
        read = served(read_counts(report["counts"]))
        copy = partial(worker.call, COPIES, served=read, batches=report["batches"])
        return self._context.attempt(cell, copy)["counts"]

    def _roofline(self, cell: Cell, worker: WorkerProcess, epoch: int) -> list[RooflineRecord]:
        """Run kernels and measured peaks one by one, after an epoch that trains."""
        if not (cell.trains and cell.composed):
            return []
        answer = self._context.attempt(cell, partial(worker.call, ROOFLINE, epoch=epoch))
        if answer["reason"]:
            self._context.fail_if(cell, f"run by itself, {answer['reason']}")
        return answer["records"]
