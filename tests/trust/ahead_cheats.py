"""Planted stores whose rows are overwritten while their batch still waits for its turn."""

from dataclasses import replace

from adversarial.bases import Store, recipe, store

from gnnbench.features.host import HostGather
from gnnbench.pipelines.prefetch import Prefetch


class OneShort(HostGather):
    """Has a buffer less than the schedule holds."""

    def __init__(self, job):
        super().__init__(job)
        self._ring._buffers.pop()


class OneBuffer(Store):
    """Writes all timed batches to one buffer."""

    def timed(self, batch):
        rows = super().timed(batch)
        self._ring._turn = 0
        return rows


HONEST = recipe(schedule=Prefetch(depth=2))
ONE_SHORT = replace(HONEST, features=store(OneShort))
ONE_BUFFER = replace(HONEST, features=store(OneBuffer))
