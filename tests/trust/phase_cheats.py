"""Planted cheats that do all of their work, and tell it as another phase's or as none's."""

from adversarial.bases import recipe, sampler, schedule

from gnnbench.pipelines.serial import SerialSchedule
from gnnbench.sampling.native import NativeStage


class SamplesInMemoryIo(SerialSchedule):
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


class LoadsWhileSampling(SerialSchedule):
    """Loads the rows in the sampling phase: little is left where memory IO is judged."""

    def epoch(self, epoch, batches, stages, timeline, until):
        for number, seeds in enumerate(batches):
            with timeline.span("sample", number):
                batch = stages.sampler.sample(seeds, epoch, number)
                rows = stages.store.load(batch)
            with timeline.span("memory_io", number):
                pass
            stages.keep(batch, rows)


class SamplesBefore(SerialSchedule):
    """Draws all batches before its phase begins."""

    def epoch(self, epoch, batches, stages, timeline, until):
        drawn = [stages.sampler.sample(seeds, epoch, nth) for nth, seeds in enumerate(batches)]
        with timeline.span("sample"):
            for batch in drawn:
                stages.keep(batch, None)


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


FORETOLD = recipe(sampler=sampler(Foretold))
DRAWS_IN_EXPECT = recipe(sampler=sampler(DrawsInExpect))
SAYS_IT_DRAWS_AHEAD = recipe(sampler=sampler(SaysItDrawsAhead))
HONEST = recipe(schedule=schedule(SerialSchedule))
SAMPLES_IN_MEMORY_IO = recipe(schedule=schedule(SamplesInMemoryIo))
LOADS_WHILE_SAMPLING = recipe(schedule=schedule(LoadsWhileSampling))
SAMPLES_BEFORE = recipe(schedule=schedule(SamplesBefore))
