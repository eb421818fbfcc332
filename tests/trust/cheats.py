"""Planted cheats, each with an honest twin; small, without torch, on no graph.

The clock is the harness's. So what older cheats did is no cheat any more and is not here: a wall
time summed from phases, a wall time reported too small, a first epoch that is run and not counted.
"""

import hashlib
import sys
import threading
import time

from gnnbench.core.cell import phases
from gnnbench.core.option import Option
from gnnbench.measure.timeline import HostClock, Timeline
from gnnbench.systems.runtime.system import CheckReport, EpochReport, System

SHORT_S = 0.005  # of a reference, which runs with each of the systems
EPOCH_S = 0.05
LONG_S = 0.1  # where a share of it is to stand out from waiting for a core


def work(seconds):
    """Keep one core busy."""
    end = time.monotonic() + seconds
    data = b"x" * 4096
    while time.monotonic() < end:
        data = hashlib.sha256(data).digest() * 128


class Honest(System):
    name = "honest"
    summary = "does its work in its phases"
    devices = ("cpu",)
    options = {  # noqa: RUF012
        "label": Option("label", 0, "nothing"),
        "ballast": Option("ballast", 0, "MiB of memory that is written and kept"),
    }
    needs_graph = False

    def setup(self):
        self.weight = 1.0
        self.ballast = b"x" * (self.cell.recipe["ballast"] << 20)

    def check(self):
        return CheckReport(True, "", "p", "cumulative", "l", "digest", 100.0, 50.0)

    length = EPOCH_S

    def run_epoch(self, epoch, timeline):
        own = phases(self.cell.until)
        for phase in own:
            with timeline.span(phase):
                self.phase(phase, self.length / len(own))
        self.weight *= 0.9

    def phase(self, phase, seconds):
        work(seconds)

    def audit(self, epoch, edges=4000):
        loss = self.weight if self.cell.trains else None
        return EpochReport(epoch, 4, 40, edges, 2000, loss)


class Short(Honest):
    length = SHORT_S


class Longer(Honest):
    length = LONG_S


class NoDigest(Honest):
    """Does equivalent work: all trainings of the reference in a run estimate its spread."""

    def check(self):
        report = super().check()
        report.digest = ""
        return report


class HonestThread(Honest):
    """Works on a thread, and waits for it."""

    def run_epoch(self, epoch, timeline):
        thread = threading.Thread(target=super().run_epoch, args=(epoch, timeline))
        thread.start()
        thread.join()


class HonestRecount(Honest):
    """Counts again when its epoch is over."""

    def audit(self, epoch, edges=4000):
        work(EPOCH_S)
        return super().audit(epoch, edges)


class NoSync(Honest):
    """Leaves its work to a thread and does not wait: a kernel launch."""

    def run_epoch(self, epoch, timeline):
        threading.Thread(target=work, args=(LONG_S,)).start()
        super().run_epoch(epoch, timeline)

    def phase(self, phase, seconds):
        pass


class HalfOnTheSide(Honest):
    """Half of the work goes on concurrently, also beyond the end of the epoch."""

    def run_epoch(self, epoch, timeline):
        threading.Thread(target=work, args=(EPOCH_S + 2 * LONG_S,)).start()
        super().run_epoch(epoch, timeline)


class ForeverOnTheSide(Honest):
    """A thread that never rests prepares the next epochs while the other worker is measured."""

    def setup(self):
        super().setup()
        threading.Thread(target=work, args=(3600.0,), daemon=True).start()


class WorkMovedToWarmUp(Honest):
    """Its first epoch does the work of the later ones."""

    ready = False

    def run_epoch(self, epoch, timeline):
        if not self.ready:
            work(1.2)
        self.ready = True
        super().run_epoch(epoch, timeline)


class WorkMovedToAudit(Honest):
    """Draws and trains when the audit requests its epoch."""

    def phase(self, phase, seconds):
        pass

    def audit(self, epoch, edges=4000):
        work(0.6)
        return super().audit(epoch, edges)


def own_timeline():
    """The harness's timeline of the epoch that calls ``run_epoch``, whose code stays as it is.

    An epoch that is not timed has another one, which is never read.
    """
    return sys._getframe(2).f_locals.get("own") or Timeline(HostClock())


def shorten(own, timeline, share):
    """Have an epoch and its spans take a share of the time until now."""
    now = time.perf_counter()
    own.begin = now - share * (now - getattr(own, "begin", now))
    timeline.marks = [
        (key, now - share * (now - begin), now - share * (now - end))
        for key, begin, end in timeline.marks
    ]


class SlowClock(Honest):
    """Makes time go slower where the harness reads it; only the runner's own time is right."""

    length = 2 * LONG_S

    def run_epoch(self, epoch, timeline):
        own = own_timeline()
        super().run_epoch(epoch, timeline)
        shorten(own, timeline, 0.01)


class ShortClock(Longer):
    """Makes time go a little slower."""

    def run_epoch(self, epoch, timeline):
        own = own_timeline()
        super().run_epoch(epoch, timeline)
        shorten(own, timeline, 0.7)


class StoppedEarly(Longer):
    """Has the harness's own timeline end its epochs before they do."""

    def run_epoch(self, epoch, timeline):
        own = own_timeline()
        right = own.stop

        def stop():
            right()
            own.end -= 0.2 * (own.end - own.begin)

        own.stop = stop
        super().run_epoch(epoch, timeline)


class ClockReset(NoDigest):
    """Begins and ends the epoch anew when its work is done: the harness reads neither."""

    def run_epoch(self, epoch, timeline):
        super().run_epoch(epoch, timeline)
        timeline.start()
        timeline.begin = timeline.end = time.perf_counter()
        super().run_epoch(epoch, timeline)
        timeline.stop()
        timeline.stop = timeline.sweep = lambda: None


class MissingSpan(Honest):
    """Does not say when it computes."""

    def run_epoch(self, epoch, timeline):
        with timeline.span("sample"), timeline.span("memory_io"):
            work(EPOCH_S)
        work(EPOCH_S)
        self.weight *= 0.9


class SpansElsewhere(Honest):
    """Its spans lie before the epoch."""

    def run_epoch(self, epoch, timeline):
        begin = time.perf_counter()
        super().run_epoch(epoch, timeline)
        length = time.perf_counter() - begin
        timeline.marks = [(key, b - 2 * length, e - 2 * length) for key, b, e in timeline.marks]


class OldTimeline(Honest):
    """Opens its spans on the timeline of its first epoch."""

    kept = None

    def run_epoch(self, epoch, timeline):
        self.kept = self.kept or timeline
        super().run_epoch(epoch, self.kept)


class OutsideSpans(Honest):
    """Works on in no phase."""

    def run_epoch(self, epoch, timeline):
        super().run_epoch(epoch, timeline)
        work(LONG_S)


class OwnSpanClock(Longer):
    """Its spans are timed by a clock of its own, on which little time passes."""

    def run_epoch(self, epoch, timeline):
        begin, right = time.perf_counter(), timeline.clock.mark
        timeline.clock.mark = lambda: begin + (right() - begin) / 100
        super().run_epoch(epoch, timeline)


class BookedElsewhere(Honest):
    """Samples in a phase that is not checked."""

    def run_epoch(self, epoch, timeline):
        super().run_epoch(epoch, timeline)
        with timeline.span("compute"):
            work(EPOCH_S)


class SaysVerified(Honest):
    """Vouches for itself."""

    def check(self):
        report = super().check()
        report.verified = True
        return report


class CachedAnswer(Honest):
    """Answers every epoch with what it found in the first."""

    first = None

    def phase(self, phase, seconds):
        work(seconds / 2 if self.first else seconds)

    def audit(self, epoch, edges=4000):
        self.first = self.first or super().audit(epoch, edges)
        self.first.epoch = epoch
        return self.first


class AnswersAnotherEpoch(Honest):
    """Prefetched: the answer is of the epoch before."""

    def audit(self, epoch, edges=4000):
        return super().audit(max(epoch - 1, 0), edges)


class NotANumber(NoDigest):
    def setup(self):
        self.weight = float("nan")


class FewerEdges(Honest):
    """Draws what it should at the gate, fewer edges when timed, and does not notice."""

    def audit(self, epoch, edges=3900):
        return super().audit(epoch, edges)


class SlightlyOther(FewerEdges, NoDigest):
    """Another sampler of the same law: its counts vary by little."""


class ManyFewerEdges(SlightlyOther):
    def audit(self, epoch, edges=3000):
        return super().audit(epoch, edges)
