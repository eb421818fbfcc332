"""A small model of GPU systems: the same matrix products, where and when they should not be.

Not to wait for the device is no cheat any more: the harness does.
"""

import threading
import time

from gnnbench.core.cell import phases
from gnnbench.systems.runtime.system import CheckReport, EpochReport, System

SIZE = 4096
PRODUCTS = 60


class Honest(System):
    """Leaves its work on the current stream."""

    name = "gpu-honest"
    summary = "matrix products on the current stream"
    devices = ("cuda",)
    needs_graph = False

    def setup(self):
        import torch

        self.torch = torch
        self.side = torch.cuda.Stream()
        self.a = torch.randn(SIZE, SIZE, device="cuda")
        self.out = torch.empty_like(self.a)
        self.launch(1)
        torch.cuda.synchronize()

    def check(self):
        return CheckReport(True, "", "p", "cumulative", "l", "digest", 100.0, 50.0)

    def launch(self, products):
        for _ in range(products):
            self.torch.mm(self.a, self.a, out=self.out)

    def run_epoch(self, epoch, timeline):
        own = phases(self.cell.until)
        for phase in own:
            with timeline.span(phase):
                self.launch(PRODUCTS // len(own))

    def audit(self, epoch):
        loss = 1.0 / (epoch + 1) if self.cell.trains else None
        return EpochReport(epoch, 4, 40, 4000, 2000, loss)


class SideStream(Honest):
    """Works on a side stream that its spans do not wait for."""

    def launch(self, products):
        self.a.add_(0)  # a kernel for the span to hold
        self.side.wait_stream(self.torch.cuda.current_stream())
        with self.torch.cuda.stream(self.side):
            super().launch(products)


class HonestSideStream(SideStream):
    """Works on a side stream, and the current one waits for it."""

    def launch(self, products):
        super().launch(products)
        self.torch.cuda.current_stream().wait_stream(self.side)


class LateLaunch(Honest):
    """A thread launches the work when the epoch has ended."""

    def run_epoch(self, epoch, timeline):
        def late():
            end = time.monotonic() + 0.1
            while time.monotonic() < end:
                pass
            self.launch(PRODUCTS)
            self.torch.cuda.synchronize()

        for phase in phases(self.cell.until):
            with timeline.span(phase):
                self.torch.mm(self.a, self.a, out=self.out)
        threading.Thread(target=late).start()
