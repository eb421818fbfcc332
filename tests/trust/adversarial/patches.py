"""Stages that change gnnbench or Python in the worker. They do so once the gate has passed."""

import fcntl
import os
import secrets
import stat
import sys
import time

import torch
from adversarial.bases import Stage, Store, recipe, sampler, store

from gnnbench.core.minibatch import Block, MiniBatch
from gnnbench.harness import worker
from gnnbench.harness.protocol import STOPPED
from gnnbench.measure import timeline
from gnnbench.pipelines.serial import SerialSchedule
from gnnbench.systems.runtime import epoch_auditor, phases, spot_checks
from gnnbench.systems.runtime.epoch_recorder import EpochRecorder
from gnnbench.systems.runtime.verification import Verifier
from gnnbench.validation import gate


class StaleRows(Store):
    """Leaves the rows of earlier batches where they are."""

    def timed(self, batch):
        self.count(batch.input_nodes.numel(), "host")
        return self._ring.rows(batch.input_nodes.numel())


class WithoutFeatureCheck(StaleRows):
    """Replaces the check of feature rows."""

    def timed(self, batch):
        gate.check_features = lambda *_: None
        return super().timed(batch)


class HonestCopies(StaleRows):
    """Gathers the rows of copied batches when they are copied."""

    def timed(self, batch):
        spot_checks.CheckedBatch.copy_of = classmethod(self.copy_of)
        epoch_auditor.check_last_rows = lambda *_: ""
        return super().timed(batch)

    right = spot_checks.CheckedBatch.copy_of.__func__

    def copy_of(self, cls, batch, rows, number):
        self.copy_rows(batch.input_nodes.long(), rows)
        return type(self).right(cls, batch, rows, number)


COPY_OF = vars(spot_checks.CheckedBatch)["copy_of"]


class HonestForAMoment(HonestCopies):
    """The same; each replacement lasts until the batch is copied, none until the epoch ends."""

    found = None

    def timed(self, batch):
        self.found = self.found or on_the_stack(EpochRecorder)
        spot_checks.CheckedBatch.copy_of = COPY_OF
        if batch.number + 2 >= self.found._epoch_batches:  # the probe leaves out a short last one
            return Store.timed(self, batch)
        spot_checks.CheckedBatch.copy_of = classmethod(self.copy_of)
        return StaleRows.timed(self, batch)

    def copy_of(self, cls, batch, rows, number):
        cls.copy_of = COPY_OF
        return super().copy_of(cls, batch, rows, number)


def wrong_edges(batch):
    """Each edge leads to another node."""
    first = batch.blocks[0]
    batch.blocks[0] = Block(first.indptr, first.indices.roll(1), first.src_nodes, first.num_dst)
    return batch


class Cheap(Stage):
    """Repeats the neighbours of an earlier batch, unless it must be honest."""

    known = None

    def sample(self, seeds, epoch, number):
        if not (self.over and epoch) or self.must_be_honest(number, seeds.numel()):
            batch = super().sample(seeds, epoch, number)
            self.known = {**(self.known or {}), seeds.numel(): batch} if self.over else self.known
            return batch
        before = (self.known or {}).get(seeds.numel())
        if before is None:
            return self.sample_first(seeds, epoch, number)
        return self.forged(before, seeds, number)

    def sample_first(self, seeds, epoch, number):
        self.known = {**(self.known or {}), seeds.numel(): super().sample(seeds, epoch, number)}
        return self.known[seeds.numel()]

    def forged(self, before, seeds, number):
        inner = before.blocks[-1]
        nodes = torch.cat([seeds.to(inner.src_nodes.dtype), inner.src_nodes[inner.num_dst :]])
        blocks = [*before.blocks[:-1], Block(inner.indptr, inner.indices, nodes, inner.num_dst)]
        return MiniBatch(seeds, blocks, before.sampled_edges, number=number)

    def must_be_honest(self, number, seeds):
        return False


def on_the_stack(kind):
    """An object of this class that a function on the call stack has, or that has a method there."""
    frame = sys._getframe()
    while frame is not None:
        for value in list(frame.f_locals.values()):
            for one in (value, getattr(getattr(value, "keep", value), "__self__", None)):
                if type(one) is kind:
                    return one
        frame = frame.f_back
    raise LookupError(kind)


class OnlyTheKey(Cheap):
    """Draws the batches that the key chooses, and has no other chosen."""

    found = None

    def must_be_honest(self, number, seeds):
        self.found = self.found or on_the_stack(EpochRecorder)
        secrets.randbits = lambda bits: (1 << bits) - 1
        choice, batches = self.found._choice, self.found._epoch_batches
        return choice.has(number, batches) or choice.draws(batches)


class KnowsTheRound(Store):
    """Is honest where an epoch copies many batches, and lucky where it copies few."""

    found = None

    def timed(self, batch):
        self.found = self.found or on_the_stack(EpochRecorder)
        copies = self.found._choice
        many = copies.count >= 2 or copies.has(batch.number, self.found._epoch_batches)
        stale = not many and batch.number + 1 < self.found._epoch_batches
        rows = self._ring.rows(batch.input_nodes.numel()) if stale else super().timed(batch)
        self.count(rows.shape[0] * stale, "host")
        return rows


class OnlyTheKeyRows(Store):
    """Gathers the rows that the key chooses, and has no others chosen."""

    found = None

    def timed(self, batch):
        self.found = self.found or on_the_stack(EpochRecorder)
        secrets.randbits = lambda bits: (1 << bits) - 1
        choice, batches = self.found._choice, self.found._epoch_batches
        chosen = choice.has(batch.number, batches) or choice.draws(batches)
        if chosen or batch.number + 1 == batches:
            return super().timed(batch)
        self.count(batch.input_nodes.numel(), "host")
        return self._ring.rows(batch.input_nodes.numel())


class NoVerifier(Stage):
    """Checks nothing of a copied batch."""

    def sample(self, seeds, epoch, number):
        batch = super().sample(seeds, epoch, number)
        if self.over and epoch:
            Verifier.check = lambda *_: None
            wrong_edges(batch)
        return batch


class NoRecord(Stage):
    """Copies no batch."""

    def sample(self, seeds, epoch, number):
        batch = super().sample(seeds, epoch, number)
        if self.over and epoch:
            EpochRecorder._is_chosen = lambda *_: False
            wrong_edges(batch)
        return batch


class DrawsInAudit(Stage):
    """Does nothing in an epoch, and runs it in the audit, when the clock has stopped."""

    later = ()

    def once_over(self):
        self.epoch, audit = SerialSchedule.epoch, epoch_auditor.EpochAuditor.audit
        SerialSchedule.epoch = self.nothing
        phases.probe = lambda *_, **__: {}

        def run_and_audit(auditor, epoch):
            if self.later:
                epoch_of, batches, stages, until = self.later
                line = timeline.Timeline(timeline.HostClock())
                self.epoch(None, epoch_of, batches, stages, line, until)
                self.later = ()
            return audit(auditor, epoch)

        epoch_auditor.EpochAuditor.audit = run_and_audit

    def nothing(self, epoch, batches, stages, line, until):
        self.later = epoch, batches, stages, until
        with line.span("sample"):
            time.sleep(0.0002)


class NoProbe(Stage):
    """Draws all batches before the first span, and has the probe not look at it."""

    def expect(self, epoch, batches):
        if not self.over:
            return
        phases.probe = lambda *_, **__: {}
        self.drawn = {
            id(seeds): (seeds, Stage.sample(self, seeds, epoch, nth))
            for nth, seeds in enumerate(batches)
        }

    drawn: dict[int, tuple] = {}  # noqa: RUF012

    def sample(self, seeds, epoch, number):
        known = self.drawn.pop(id(seeds), None)
        return known[1] if known else super().sample(seeds, epoch, number)


class WithinTolerance(Stage):
    """Sets the worker's clock back by as much as the harness tolerates."""

    def once_over(self):
        right, ends = timeline.Timeline.stop, timeline.OpenSpan.__exit__

        def stop(line):
            right(line)
            line.end -= min(0.003, 0.6 * (line.end - line.begin))

        def end(span, *arguments):
            ends(span, *arguments)
            key, begin, stopped = span._timeline.marks[-1]
            less = min(0.003, 0.6 * (stopped - begin))
            span._timeline.marks[-1] = key, begin, stopped - less

        timeline.Timeline.stop, timeline.OpenSpan.__exit__ = stop, end
        phases.probe = lambda *_, **__: {}


class ReportsEarly(Stage):
    """Reports the end itself, when its epoch begins, and sets the clock accordingly."""

    def once_over(self):
        self.answers = max(filter(is_pipe_to_write, range(3, 64)))
        phases.probe = lambda *_, **__: {}
        server = on_the_stack(worker.Server)
        self.commands = server._operations["epoch"].__self__
        server._operations["epoch"] = self.epoch

    def epoch(self, **arguments):
        os.write(self.answers, STOPPED)
        self.commands._report_end = lambda: None
        answer = self.commands.epoch(**arguments)
        short = 0.02
        for key in ("busy", "alone"):
            answer[key] = {phase: value * short for phase, value in answer[key].items()}
        wall = answer["wall"] * short
        return {**answer, "wall": wall, "outer_s": wall, "idle": 0.0, "overlap": 0.0}


def is_pipe_to_write(descriptor):
    """Whether a descriptor is the writing end of a pipe."""
    try:
        flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        return stat.S_ISFIFO(os.fstat(descriptor).st_mode) and flags & os.O_ACCMODE == os.O_WRONLY
    except OSError:
        return False


STALE_ROWS = recipe(features=store(StaleRows))
WITHOUT_FEATURE_CHECK = recipe(features=store(WithoutFeatureCheck))
HONEST_COPIES = recipe(features=store(HonestCopies))
HONEST_FOR_A_MOMENT = recipe(features=store(HonestForAMoment))
ONLY_THE_KEY = recipe(sampler=sampler(OnlyTheKey))
ONLY_THE_KEY_ROWS = recipe(features=store(OnlyTheKeyRows))
KNOWS_THE_ROUND = recipe(features=store(KnowsTheRound))
NO_VERIFIER = recipe(sampler=sampler(NoVerifier))
NO_RECORD = recipe(sampler=sampler(NoRecord))
DRAWS_IN_AUDIT = recipe(sampler=sampler(DrawsInAudit))
NO_PROBE = recipe(sampler=sampler(NoProbe))
WITHIN_TOLERANCE = recipe(sampler=sampler(WithinTolerance))
REPORTS_EARLY = recipe(sampler=sampler(ReportsEarly))
