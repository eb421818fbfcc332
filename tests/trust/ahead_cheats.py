"""Planted stores whose rows are overwritten while their batch still waits for its turn."""

from dataclasses import replace

from gnnbench.features.host import HostGather
from gnnbench.features.spec import StoreSpec
from gnnbench.pipelines.prefetch import Prefetch
from gnnbench.systems.baseline import BASELINE


class OneShort(HostGather):
    """Has a buffer less than the schedule holds."""

    def __init__(self, job):
        super().__init__(job)
        self._ring._buffers.pop()


class OneBuffer(HostGather):
    """Writes all timed batches to one buffer; those of the gate carry positions."""

    def load(self, batch):
        rows = super().load(batch)
        if batch.blocks[0].positions is None:
            self._ring._turn = 0
        return rows


class OneShortStore(StoreSpec):
    name = "one-short"
    devices = ("cpu",)
    store = OneShort

    def build(self, job):
        return self.store(job)


class OneBufferStore(OneShortStore):
    name = "one-buffer"
    store = OneBuffer


HONEST = replace(BASELINE, schedule=Prefetch(depth=2))
ONE_SHORT = replace(HONEST, features=OneShortStore())
ONE_BUFFER = replace(HONEST, features=OneBufferStore())
