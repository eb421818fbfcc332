"""Systems that need neither torch nor a graph, each with one way to behave."""

import os
import signal
import time
from pathlib import Path

from gnnbench.systems.base import CheckReport, EpochSample, Missing, System

from gnnbench.errors import MissingError, UnsupportedError


class Fake(System):
    name = "fake"
    summary = "does nothing, correctly"
    devices = ("cpu",)
    options = {"speed": "seconds of an epoch", "flag": "a file to wait for"}  # noqa: RUF012
    needs_graph = False
    digest = "d1"
    edges = 100.0
    frontier = "cumulative"

    def setup(self):
        self.seconds = float(self.cell.options.get("speed", 0.002))

    def check(self):
        return CheckReport(
            True, "", "floyd", self.frontier, "without-replacement", self.digest, self.edges, 50.0
        )

    def run_epoch(self, epoch):
        start = time.perf_counter()
        time.sleep(self.seconds)
        wall = time.perf_counter() - start
        phases = {"sample": wall * 0.5, "memory_io": wall * 0.2, "compute": wall * 0.2}
        return EpochSample(
            epoch, wall, phases, 4, 40, int(self.edges * 40), 2000, {"host_copy": 4096}, 0,
            1.0 / (epoch + 1), 0,
        )  # fmt: skip


class Slow(Fake):
    """Equivalent work, three times the time."""

    digest = ""
    edges = 100.5

    def setup(self):
        self.seconds = 3 * float(self.cell.options.get("speed", 0.002))


class Other(Fake):
    """Different work."""

    digest = ""
    frontier = "new"
    edges = 140.0


class Incorrect(Fake):
    def check(self):
        report = super().check()
        report.ok, report.reason = False, "batch 2, hop 1: 3 edges where 4 are right"
        return report


class LateIncorrect(Fake):
    """Right at the gate, wrong while it is timed."""

    def run_epoch(self, epoch):
        sample = super().run_epoch(epoch)
        if epoch >= 2:
            sample.ok, sample.reason = False, "timed batch 1 lost edges"
        return sample


class Crash(Fake):
    def run_epoch(self, epoch):
        os.kill(os.getpid(), signal.SIGSEGV)


class Raises(Fake):
    def run_epoch(self, epoch):
        raise ValueError("a bug\nwith two lines")


class Hang(Fake):
    def run_epoch(self, epoch):
        time.sleep(600)


class Greedy(Fake):
    def setup(self):
        raise MemoryError


class GreedyTorch(Fake):
    def setup(self):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 99999 bytes")


class GreedyReal(Fake):
    """Allocates until its address space is used up."""

    def setup(self):
        self.blocks = [bytearray(1 << 26) for _ in range(1 << 14)]


class GreedyGpu(Fake):
    def setup(self):
        class OutOfMemoryError(RuntimeError):
            pass

        raise OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")


class Absent(Fake):
    stand_in = "slow"

    @classmethod
    def missing(cls, device):
        return Missing("the absent package is not installed", "pip install absent")


class LateAbsent(Fake):
    def setup(self):
        raise MissingError("its library does not load; run 'make install'")


class Unable(Fake):
    def setup(self):
        raise UnsupportedError("cannot do this model; take another")


class Spin(Fake):
    """Burns CPU while it should be idle."""

    def setup(self):
        super().setup()
        import threading

        def burn():
            while True:
                pass

        threading.Thread(target=burn, daemon=True).start()


class Chatty(Fake):
    """Prints to standard output, where the answers go."""

    def setup(self):
        super().setup()
        print("chatter on stdout", flush=True)
        os.system("echo more chatter")


class Waits(Fake):
    """Says that it runs, then takes its time."""

    def run_epoch(self, epoch):
        sample = super().run_epoch(epoch)
        self.clock_stopped()
        if epoch >= 2:
            Path(self.cell.options["flag"]).write_text(str(os.getpid()))
            time.sleep(0.3)
        return sample


class Graphed(Fake):
    """Opens its dataset and reports what it was given."""

    needs_graph = True

    def setup(self):
        super().setup()
        import torch

        assert torch.get_num_threads() == self.cell.threads == int(os.environ["OMP_NUM_THREADS"])
        self.edges = float(self.graph.num_edges)

    def run_epoch(self, epoch):
        sample = super().run_epoch(epoch)
        sample.batches = -(-self.graph.train_idx.numel() // self.cell.batch_size)
        if self.cell.max_batches:
            sample.batches = min(sample.batches, self.cell.max_batches)
        sample.seeds = min(self.graph.train_idx.numel(), sample.batches * self.cell.batch_size)
        return sample


class Fragile(Fake):
    """Crashes until the file that its option names is there."""

    def run_epoch(self, epoch):
        if not Path(self.cell.options["flag"]).exists():
            raise ValueError("not yet")
        return super().run_epoch(epoch)


class GreedyGpuDriver(Fake):
    """What the driver says when a kernel's own allocation fails."""

    def setup(self):
        raise RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be ...")


class Sampling(Fake):
    """Samples only, and lets be looked into; with the option ``flag`` the look fails."""

    def run_epoch(self, epoch):
        sample = super().run_epoch(epoch)
        sample.phases_s, sample.loss = {"sample": sample.wall_s * 0.9}, None
        return sample

    def profile(self, epoch):
        assert epoch > 1_000_000
        if "flag" in self.cell.options:
            raise ValueError("blind")
        stages = [{"stage": "batch", "hop": None, "batches": 20, "host_s": 1e-3, "edges": 400}]
        return {"stages": stages, "kernels": []}


class SamplingTwice(Sampling):
    """The same work in twice the time."""

    def setup(self):
        super().setup()
        self.seconds *= 2


class Gpu(Fake):
    """Runs on a GPU, it says."""

    devices = ("cpu", "cuda")
