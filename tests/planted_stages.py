"""A store with planted faults, one for each epoch of a producer's process."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch

from gnnbench.core.errors import UsageError
from gnnbench.core.stage import option
from gnnbench.features.base import FeatureStore
from gnnbench.features.host import HostGather
from gnnbench.features.spec import StoreSpec
from gnnbench.features.uva import ZeroCopyGather

MARK = "GNNBENCH_TEST_MARK"  # a file that is created after HASTY_BATCHES
HASTY_BATCHES = 6
FAULTY_BATCH = 3


class OwnError(Exception):
    """An exception that cannot be created from its text."""

    def __init__(self, one, other):
        super().__init__(f"{one} and {other}")


@dataclass(frozen=True)
class Planted(StoreSpec):
    """Correct rows, and one of ``PlantedStore``'s faults in each epoch of a producer."""

    name: ClassVar[str] = "planted"
    faults: str = option("", "one for each epoch, separated by blanks")

    def build(self, job):
        in_producer = "gnnbench.distributed.consumer" not in sys.modules
        return PlantedStore(job, self.faults.split() if in_producer else [])


class PlantedStore(FeatureStore):
    """Gathers rows, with faults."""

    def __init__(self, job, faults):
        super().__init__(job)
        self._fallback = (HostGather if job.device.type == "cpu" else ZeroCopyGather)(job)
        self._faults, self._fault = faults, "none"

    def forget(self):
        self._loaded = 0
        if self._faults:
            self._fault = self._faults.pop(0)
        if self._fault == "hasty":
            hurry()

    def load(self, batch):
        self._loaded += 1
        if self._fault == "late":
            delay(self.job.device, 0.01)
        elif self._fault == "slow" and random.random() < 0.1:
            delay(self.job.device, random.random() * 0.02)
        elif self._fault == "hasty" and self._loaded == HASTY_BATCHES:
            Path(os.environ[MARK]).touch()
        elif self._loaded == FAULTY_BATCH:
            if self._fault == "usage":
                raise UsageError("the table stands on its head; turn it")
            if self._fault == "memory":
                raise MemoryError("cannot allocate memory: planted")
            if self._fault == "own":
                raise OwnError("this", "that")
            if self._fault == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
        return self._fallback.load(batch)

    def close(self):
        self._fallback.close()


def delay(device, seconds):
    """Delay the host, or the next work of a GPU while the host continues."""
    if device.type == "cpu":
        time.sleep(seconds)
    else:
        torch.cuda._sleep(int(seconds * 1e9))  # cycles


def hurry():
    """From now on, buffers are overwritten even while they are read."""
    from gnnbench.pipelines.batch_buffer import ProducerBuffer

    ProducerBuffer.free = property(lambda self: True, lambda self, value: None)
    ProducerBuffer.await_reader = lambda self: None
