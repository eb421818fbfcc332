"""A small model of GPU systems: the same matrix products, waited for or not."""

import time

from gnnbench.systems.base import CheckReport, EpochSample, System

SIZE = 4096
PRODUCTS = 200


class Honest(System):
    """Waits for the device before it stops its clock."""

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
        self.launch()
        torch.cuda.synchronize()

    def check(self):
        return CheckReport(True, "", "p", "cumulative", "l", "digest", 100.0, 50.0)

    def launch(self):
        for _ in range(PRODUCTS):
            self.torch.mm(self.a, self.a, out=self.out)

    def wait(self):
        self.torch.cuda.synchronize()

    def run_epoch(self, epoch):
        start = time.perf_counter()
        self.launch()
        self.wait()
        wall = time.perf_counter() - start
        self.clock_stopped()
        return EpochSample(
            epoch, wall, {"compute": wall}, 4, 40, 4000, 2000, {"host_copy": 4096}, 0,
            1.0 / (epoch + 1), 0,
        )  # fmt: skip


class NoSync(Honest):
    """Stops its clock when everything is launched."""

    def wait(self):
        pass


class SideStream(Honest):
    """Works on a side stream and waits for the current one only."""

    def launch(self):
        self.side.wait_stream(self.torch.cuda.current_stream())
        with self.torch.cuda.stream(self.side):
            super().launch()

    def wait(self):
        self.torch.cuda.current_stream().synchronize()


class HonestSideStream(SideStream):
    """Works on a side stream, and waits for it."""

    def wait(self):
        self.side.synchronize()
