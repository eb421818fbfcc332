"""Planted cheats, each beside an honest twin; small, without torch, on no graph."""

import hashlib
import threading
import time

from gnnbench.systems.base import CheckReport, EpochSample, System

EPOCH_S = 0.1


def work(seconds):
    """Keep one core busy."""
    end = time.perf_counter() + seconds
    data = b"x" * 4096
    while time.perf_counter() < end:
        data = hashlib.sha256(data).digest() * 128


class Honest(System):
    name = "honest"
    summary = "does its work, and says how long it took"
    devices = ("cpu",)
    options = {"turbo": "does half the work in half the time", "label": "nothing"}  # noqa: RUF012
    needs_graph = False
    batches = 4

    def setup(self):
        self.weight = 1.0

    def check(self):
        return CheckReport(True, "", "p", "cumulative", "l", "digest", 100.0, 50.0)

    def train(self, epoch):
        """All batches of an epoch: the phases' times."""
        seconds = EPOCH_S / 2 if self.cell.options.get("turbo") else EPOCH_S
        work(seconds)
        self.weight *= 0.9
        return {"sample": seconds / 2, "memory_io": seconds / 4, "compute": seconds / 4}

    def run_epoch(self, epoch):
        start = time.perf_counter()
        phases = self.train(epoch)
        wall = time.perf_counter() - start
        self.clock_stopped()
        return self.sample(epoch, wall, phases)

    def sample(self, epoch, wall, phases, edges=4000):
        return EpochSample(
            epoch, wall, phases, self.batches, 40, edges, 2000, {"host_copy": 4096}, 0,
            self.weight, 0,
        )  # fmt: skip


class HonestThread(Honest):
    """Works on a thread, and waits for it."""

    def train(self, epoch):
        thread = threading.Thread(target=super().train, args=(epoch,))
        thread.start()
        thread.join()
        return {"sample": EPOCH_S}


class HonestRecount(Honest):
    """Counts again after its clock has stopped."""

    def run_epoch(self, epoch):
        sample = super().run_epoch(epoch)
        work(EPOCH_S)
        return sample


class NoSync(Honest):
    """Leaves its work to a thread and stops its clock without waiting: a kernel launch."""

    def train(self, epoch):
        threading.Thread(target=super().train, args=(epoch,)).start()
        return {"sample": 0.0}


class HalfOnTheSide(Honest):
    """Half of the work goes on beside, also beyond the end of the epoch."""

    def train(self, epoch):
        threading.Thread(target=work, args=(2 * EPOCH_S,)).start()
        return super().train(epoch)


class ForeverOnTheSide(Honest):
    """A thread that never rests prepares the next epochs while the other worker is measured."""

    def setup(self):
        super().setup()
        threading.Thread(target=work, args=(3600.0,), daemon=True).start()


class PhasesSummed(Honest):
    """Its wall time is the sum of the phases it knows of."""

    def run_epoch(self, epoch):
        phases = self.train(epoch)
        work(EPOCH_S)  # copies, converting, waiting: in no phase
        return self.sample(epoch, sum(phases.values()), phases)


class FirstDropped(Honest):
    """Runs a first epoch that it does not count, every time."""

    def run_epoch(self, epoch):
        self.train(epoch)
        return super().run_epoch(epoch)


class WorkMovedToWarmUp(Honest):
    """Its first epoch does what the later ones live on."""

    ready = False

    def train(self, epoch):
        if not self.ready:
            work(1.5)
        self.ready = True
        return super().train(epoch)


class CachedAnswer(Honest):
    """Answers every epoch with what it found in the first."""

    found = None

    def run_epoch(self, epoch):
        if self.found is None:
            self.found = super().run_epoch(epoch)
        work(self.found.wall_s / 2)
        return self.sample(epoch, self.found.wall_s / 2, self.found.phases_s)

    def train(self, epoch):
        return {} if self.found else super().train(epoch)


class AnswersAnotherEpoch(Honest):
    """Prefetched: the answer is of the epoch before."""

    def run_epoch(self, epoch):
        sample = super().run_epoch(epoch)
        sample.epoch = max(epoch - 1, 0)
        return sample


class NotANumber(Honest):
    def setup(self):
        self.weight = float("nan")


class FewerEdges(Honest):
    """Draws what it should at the gate, fewer edges when timed, and does not notice."""

    def sample(self, epoch, wall, phases, edges=4000):
        return super().sample(epoch, wall, phases, edges=3900)


class SlightlyOther(FewerEdges):
    """Another sampler of the same law: its counts vary by little."""

    def check(self):
        report = super().check()
        report.digest = ""
        return report


class ManyFewerEdges(SlightlyOther):
    def sample(self, epoch, wall, phases, edges=4000):
        return Honest.sample(self, epoch, wall, phases, edges=3000)
