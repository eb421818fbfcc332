"""Attacks on a GPU: lower precision, work on other streams, clocks and checks of CUDA."""

import threading
from dataclasses import dataclass

import torch
from adversarial.bases import Stage, aggregate, is_timed, recipe, sampler

from gnnbench.features.gpu import DeviceGather
from gnnbench.features.spec import Gpu
from gnnbench.kernels.aggregate import aggregate as native
from gnnbench.measure import timeline

PASSED = []  # has an element once the gate has passed


class OnGpu(Stage):
    """The baseline's sampler on a GPU; notes when the gate has passed."""

    def once_over(self):
        PASSED.append(True)
        self.bend()

    def bend(self):
        """Change what is timed."""


class Tf32(OnGpu):
    """Multiplies with the precision of TF32."""

    def bend(self):
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.set_float32_matmul_precision("high")


class Autocast(OnGpu):
    """Runs the layers in float16."""

    def bend(self):
        torch.autocast("cuda", torch.float16).__enter__()


class NoWait(OnGpu):
    """Makes the harness's waits for the device return at once."""

    def bend(self):
        torch.cuda.synchronize = lambda device=None: None
        timeline.CudaClock.settle = lambda clock: None


class ShortEvents(OnGpu):
    """Has CUDA events report a tenth of the time."""

    def bend(self):
        right = torch.cuda.Event.elapsed_time
        torch.cuda.Event.elapsed_time = lambda event, other: right(event, other) / 10


class Store(DeviceGather):
    """The table on the device; ``timed`` has the rows of timed batches."""

    def load(self, batch):
        return self.timed(batch) if is_timed(batch) else super().load(batch)


class OtherStream(Store):
    """Gathers on another stream, for which nobody waits."""

    side = None

    def timed(self, batch):
        self.side = self.side or torch.cuda.Stream()
        with torch.cuda.stream(self.side):
            return DeviceGather.load(self, batch)


class LateLaunch(Store):
    """Has a thread launch the gather when the host has gone on."""

    def timed(self, batch):
        rows = torch.empty((batch.input_nodes.numel(), self._row_bytes // 4), device="cuda")

        def late():
            rows.copy_(DeviceGather.load(self, batch))

        threading.Timer(0.02, late).start()
        return rows


class StaleRows(Store):
    """Leaves what an earlier batch left in the memory."""

    def timed(self, batch):
        return torch.empty((batch.input_nodes.numel(), self._row_bytes // 4), device="cuda")


class HalfRows(Store):
    """Gathers from a copy of the table in float16."""

    half = None

    def timed(self, batch):
        if self.half is None:
            self.half = self.job.graph.features.half().cuda()
        return self.half[batch.input_nodes.long()].float()


def in_float16(block, x, mode, edge_weight=None):
    """Aggregate rows of half the size."""
    return native(block, x.half().float() if PASSED else x, mode, edge_weight)


def of(stage):
    """The spec of a store that has the table on the device."""

    def build(self, job):
        return stage(job)

    namespace = {"name": f"gpu-{stage.__name__.lower()}", "build": build}
    return dataclass(frozen=True)(type(f"{stage.__name__}Spec", (Gpu,), namespace))()


def on_gpu(stage):
    """The spec of a stage on a GPU."""
    return sampler(stage, devices=("cuda",))


TF32 = recipe(sampler=on_gpu(Tf32))
AUTOCAST = recipe(sampler=on_gpu(Autocast))
NO_WAIT = recipe(sampler=on_gpu(NoWait))
SHORT_EVENTS = recipe(sampler=on_gpu(ShortEvents))
OTHER_STREAM = recipe(features=of(OtherStream))
LATE_LAUNCH = recipe(features=of(LateLaunch))
STALE_ROWS = recipe(features=of(StaleRows))
HALF_ROWS = recipe(features=of(HalfRows))
FLOAT16 = recipe(sampler=on_gpu(OnGpu), aggregate=aggregate(in_float16))
