"""Attacks on other processes than the worker: the runner, the plan's helper, files of the run."""

import json
import os
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from adversarial.bases import Plain, Stage, Store, recipe, sampler, schedule

from gnnbench.features.spec import StoreSpec
from gnnbench.measure.timeline import HostClock, Timeline
from gnnbench.pipelines.order import AsDrawn
from gnnbench.pipelines.serial import Serial, SerialSchedule
from gnnbench.sampling.native import native
from gnnbench.systems.baseline import BASELINE
from gnnbench.systems.runtime.runner import SystemRunner


def caller():
    """The function that called the one that calls this."""
    return sys._getframe(2).f_code.co_name


class ForesightStore(Store):
    """Receives the number of the next epoch, and gathers its rows before the clock runs."""

    ready = ()

    def foresee(self, footprint, epochs):
        drawn = (ids for epoch in epochs for ids in footprint(epoch))
        self.ready = [(ids, self._table[ids.long()]) for ids in drawn]

    def timed(self, batch):
        for ids, rows in self.ready:
            if torch.equal(ids, batch.input_nodes):
                self.count(ids.numel(), "host")
                return rows
        return super().timed(batch)


@dataclass(frozen=True)
class Foresight(StoreSpec):
    """An oracle that is none where its stages are checked."""

    name = "foresight"
    devices = ("cpu",)

    @property
    def foresees(self):
        return caller() != "_check_repeatable"

    def build(self, job):
        return ForesightStore(job)


CLAIMED = recipe(sampler=native("fused-map"))


class OwnLoop(SystemRunner):
    """Does nothing in an epoch, and runs it when it is audited."""

    name = "outside-own-loop"
    summary = "an epoch loop of its own"
    devices = ("cpu",)

    def __init__(self, cell, graph):
        super().__init__(cell, graph, CLAIMED.resolved(cell.device, cell.goes_until))

    def run_epoch(self, epoch, timeline):
        with timeline.span("sample"):
            torch.ones(1 << 12).sort()

    def audit(self, epoch):
        super().run_epoch(epoch, Timeline(HostClock()))
        return super().audit(epoch)

    def probe(self, epochs):
        return {}, ""


class ForgedJournal:
    """The harness adds a third of a time to its journal."""

    @staticmethod
    def install():
        from gnnbench.harness.journal import RunJournal

        right = RunJournal.add_sample

        def add_sample(journal, cell, sample):
            if cell.system.startswith("outside"):
                sample = replace(sample, sample_time_s=sample.sample_time_s / 3)
            right(journal, cell, sample)

        RunJournal.add_sample = add_sample


class SlowBaseline:
    """The reference samples in plain torch."""

    @staticmethod
    def install():
        object.__setattr__(BASELINE, "sampler", sampler(Plain))


def installing(kind):
    """A recipe whose options are read by whoever makes the plan: then ``kind`` is installed."""

    class Spec(Serial):
        name = f"installs-{kind.__name__.lower()}"

        def resolved(self, device):
            kind.install()
            return super().resolved(device)

    return recipe(schedule=dataclass(frozen=True)(Spec)())


class Variables:
    """All workers run on a CPU without vectors."""

    @staticmethod
    def install():
        os.environ |= {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41"}
        os.environ["PYTHONMALLOC"] = "debug"


def samples_of_this_run():
    """The run's file of samples: next to the folder of this worker's log."""
    return Path(os.readlink("/proc/self/fd/2")).parents[1] / "samples.jsonl"  # noqa: PTH115


class EditsSamples(SerialSchedule):
    """Rewrites the samples on the disk when it is closed."""

    def close(self):
        path = samples_of_this_run()
        own, lines = Path(os.readlink("/proc/self/fd/2")).name[:12], []  # noqa: PTH115
        for line in path.read_text().splitlines():
            sample = json.loads(line)
            if str(sample.get("id", "")).startswith(own):
                sample["sample_time_s"] /= 3
            lines.append(json.dumps(sample))
        path.write_text("\n".join(lines) + "\n")
        super().close()


class ReadsSamples(Stage):
    """Looks for the epoch's number in the samples of the other side, and draws ahead."""

    drawn: dict[tuple[int, int], object] = {}  # noqa: RUF012

    def once_over(self):
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        path, order, known = samples_of_this_run(), AsDrawn().build(self.job), 0
        while True:
            time.sleep(0.002)
            size = path.stat().st_size if path.exists() else 0
            if size == known:
                continue
            known = size
            epoch = json.loads(path.read_text().splitlines()[-1])["epoch"]
            for number, seeds in enumerate(order.batches(epoch)):
                some = seeds.to(self.job.graph.indices.dtype)
                self.drawn.setdefault((epoch, number), super().sample(some, epoch, number))

    def sample(self, seeds, epoch, number):
        return self.drawn.pop((epoch, number), None) or super().sample(seeds, epoch, number)


class Shares(Plain):
    """Keeps batches in files for the next system of the run."""

    def draw(self, seeds, *, key, batch, with_positions):
        path = samples_of_this_run().with_name(f"shared-{key}-{batch}-{int(seeds.sum())}")
        if path.exists():
            drawn = torch.load(path, weights_only=False)
            path.unlink()
            return drawn
        drawn = super().draw(seeds, key=key, batch=batch, with_positions=with_positions)
        torch.save(drawn, path)
        return drawn


class SharesAgain(Shares):
    """The next system of the run."""


SHARES = recipe(sampler=sampler(Shares))
SHARES_AGAIN = recipe(sampler=sampler(SharesAgain))
FORESIGHT = recipe(features=Foresight())
FORGED_JOURNAL = installing(ForgedJournal)
SLOW_BASELINE = installing(SlowBaseline)
VARIABLES = installing(Variables)
EDITS_SAMPLES = recipe(schedule=schedule(EditsSamples))
READS_SAMPLES = recipe(sampler=sampler(ReadsSamples))
