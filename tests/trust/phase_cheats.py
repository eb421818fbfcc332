"""Planted cheats that do all of their work, and tell it as another phase's or as none's."""

from dataclasses import replace

from gnnbench.pipelines.serial import Serial, SerialSchedule
from gnnbench.sampling.native import NativeStage, native
from gnnbench.systems.baseline import BASELINE


class Schedule(Serial):
    name = "honest"
    schedule = SerialSchedule

    def build(self, job):
        return self.schedule()


class SamplesInMemoryIoEpoch(SerialSchedule):
    """Draws the batch when its rows are loaded."""

    def epoch(self, epoch, batches, stages, timeline, until):
        for number, seeds in enumerate(batches):
            with timeline.span("sample", number):
                pass
            with timeline.span("memory_io", number):
                batch = stages.sampler.sample(seeds, epoch, number)
                rows = stages.store.load(batch)
            if stages.trainer is not None:
                with timeline.span("compute", number):
                    stages.trainer.step(batch, rows)
            stages.keep(batch, rows)


class LoadsWhileSamplingEpoch(SerialSchedule):
    """Loads the rows in the sampling phase: little is left where memory IO is judged."""

    def epoch(self, epoch, batches, stages, timeline, until):
        for number, seeds in enumerate(batches):
            with timeline.span("sample", number):
                batch = stages.sampler.sample(seeds, epoch, number)
                rows = stages.store.load(batch)
            with timeline.span("memory_io", number):
                pass
            stages.keep(batch, rows)


class SamplesBeforeEpoch(SerialSchedule):
    """Draws all batches before its phase begins."""

    def epoch(self, epoch, batches, stages, timeline, until):
        drawn = [stages.sampler.sample(seeds, epoch, nth) for nth, seeds in enumerate(batches)]
        with timeline.span("sample"):
            for batch in drawn:
                stages.keep(batch, None)


class SamplesInMemoryIo(Schedule):
    name = "samples-in-memory-io"
    schedule = SamplesInMemoryIoEpoch


class LoadsWhileSampling(Schedule):
    name = "loads-while-sampling"
    schedule = LoadsWhileSamplingEpoch


class SamplesBefore(Schedule):
    name = "samples-before"
    schedule = SamplesBeforeEpoch


class Foretold(NativeStage):
    """A sampler that is announced the batches of an epoch, and draws those that are requested."""

    def expect(self, epoch, batches):
        self.expected = {id(seeds): (seeds, nth) for nth, seeds in enumerate(batches)}


class DrawsInExpect(NativeStage):
    """Draws the epoch's batches when it hears of them: before any span, in no phase."""

    def __init__(self, spec, job):
        super().__init__(spec, job)
        self.drawn = {}

    def expect(self, epoch, batches):
        self.drawn = {
            id(seeds): (seeds, NativeStage.sample(self, seeds, epoch, nth))
            for nth, seeds in enumerate(batches)
        }

    def sample(self, seeds, epoch, number):
        if id(seeds) in self.drawn:
            return self.drawn.pop(id(seeds))[1]
        return super().sample(seeds, epoch, number)


class SaysItDrawsAhead(DrawsInExpect):
    """The same, and says that it is PyG's, whose processes draw ahead."""

    ahead = True

    def __init__(self, spec, job):
        super().__init__(spec, job)
        self.name = "pyg"


def sampler(stage, name):
    """A sampler's spec of this name whose stage is ``stage``."""

    class Spec(type(native("hop-by-hop"))):
        def build(self, job):
            same = {option: getattr(self, option) for option in self.options()}
            return stage(native("hop-by-hop", **same), job)

    Spec.name = name
    return Spec


ForetoldSampler = sampler(Foretold, "foretold")
DrawsInExpectSampler = sampler(DrawsInExpect, "draws-in-expect")
SaysItDrawsAheadSampler = sampler(SaysItDrawsAhead, "says-it-draws-ahead")
FORETOLD = replace(BASELINE, sampler=ForetoldSampler())
DRAWS_IN_EXPECT = replace(BASELINE, sampler=DrawsInExpectSampler())
SAYS_IT_DRAWS_AHEAD = replace(BASELINE, sampler=SaysItDrawsAheadSampler())
HONEST = replace(BASELINE, schedule=Schedule())
SAMPLES_IN_MEMORY_IO = replace(BASELINE, schedule=SamplesInMemoryIo())
LOADS_WHILE_SAMPLING = replace(BASELINE, schedule=LoadsWhileSampling())
SAMPLES_BEFORE = replace(BASELINE, schedule=SamplesBefore())
