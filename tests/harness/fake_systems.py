"""Systems that need neither torch nor a graph, each with one kind of behaviour."""

import os
import signal
import time
from pathlib import Path

from gnnbench.core.cell import phases
from gnnbench.core.errors import MissingError, UnsupportedError
from gnnbench.core.missing import Missing
from gnnbench.core.option import Option
from gnnbench.systems.runtime.system import CheckReport, EpochReport, System


class Fake(System):
    name = "fake"
    summary = "does nothing, correctly"
    devices = ("cpu",)
    options = {  # noqa: RUF012
        "speed": Option("speed", 0.002, "seconds of an epoch"),
        "flag": Option("flag", "", "a file to wait for"),
    }
    needs_graph = False
    digest = "d1"
    edges = 100.0
    frontier = "cumulative"

    def setup(self):
        self.seconds = float(self.cell.recipe["speed"])

    def check(self):
        return CheckReport(
            True, "", "floyd", self.frontier, "without-replacement", self.digest, self.edges, 50.0
        )

    def run_epoch(self, epoch, timeline):
        for phase in phases(self.cell.until):
            with timeline.span(phase):
                time.sleep(self.seconds * (0.5 if phase == "sample" else 0.2))
        time.sleep(self.seconds * 0.1)

    def audit(self, epoch):
        loss = 1.0 / (epoch + 1) if self.cell.trains else None
        counts = [["features", "feature_bytes", "host", 4096]]
        return EpochReport(epoch, 4, 40, int(self.edges * 40), 2000, loss, counts)


class Slow(Fake):
    """Equivalent work, three times the time."""

    digest = ""
    edges = 100.5

    def setup(self):
        self.seconds = 3 * float(self.cell.recipe["speed"])


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
    """Passes the gate and fails in timed epochs."""

    epochs = 0

    def audit(self, epoch):
        report = super().audit(epoch)
        self.epochs += 1
        if self.epochs > 2:
            report.ok, report.reason = False, "timed batch 1 lost edges"
        return report


class Crash(Fake):
    def run_epoch(self, epoch, timeline):
        os.kill(os.getpid(), signal.SIGSEGV)


class Raises(Fake):
    def run_epoch(self, epoch, timeline):
        raise ValueError("a bug\nwith two lines")


class Hang(Fake):
    def run_epoch(self, epoch, timeline):
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
    """Uses CPU while it should be idle, without blocking the thread that handles commands."""

    def setup(self):
        super().setup()
        import hashlib
        import threading

        data = bytes(1 << 20)  # hashing releases the interpreter's lock

        def burn():
            while True:  # half of a core: more than any bound, and less than all of the machine
                begin = time.thread_time()
                hashlib.sha256(data)
                time.sleep(time.thread_time() - begin)

        threading.Thread(target=burn, daemon=True).start()


class Chatty(Fake):
    """Prints to standard output, which carries the worker protocol."""

    def setup(self):
        super().setup()
        print("chatter on stdout", flush=True)
        os.system("echo more chatter")


class Waits(Fake):
    """Writes its process id to a file during a timed epoch, then sleeps."""

    epochs = 0

    def audit(self, epoch):
        self.epochs += 1
        if self.epochs > 2:
            Path(self.cell.recipe["flag"]).write_text(str(os.getpid()))
            time.sleep(0.3)
        return super().audit(epoch)


class Graphed(Fake):
    """Opens its dataset and reports its size."""

    needs_graph = True

    def setup(self):
        super().setup()
        import torch

        assert torch.get_num_threads() == self.cell.threads == int(os.environ["OMP_NUM_THREADS"])
        self.edges = float(self.graph.num_edges)

    def audit(self, epoch):
        report = super().audit(epoch)
        report.batches = -(-self.graph.train_idx.numel() // self.cell.batch_size)
        if self.cell.max_batches:
            report.batches = min(report.batches, self.cell.max_batches)
        report.seeds = min(self.graph.train_idx.numel(), report.batches * self.cell.batch_size)
        return report


class Fragile(Fake):
    """Crashes until the file named by its option exists."""

    def run_epoch(self, epoch, timeline):
        if not Path(self.cell.recipe["flag"]).exists():
            raise ValueError("not yet")
        super().run_epoch(epoch, timeline)


class GreedyGpuDriver(Fake):
    """Raises the driver's message for a failed allocation in a kernel."""

    def setup(self):
        raise RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be ...")


class Sampling(Fake):
    """Samples only and supports profiling, which fails if the option ``flag`` is set."""

    def audit(self, epoch):
        report = super().audit(epoch)
        report.loss = None
        return report

    def profile(self, epoch):
        assert epoch > 1_000_000
        if self.cell.recipe["flag"]:
            raise ValueError("blind")
        stages = [{"stage": "batch", "hop": None, "batches": 20, "host_s": 1e-3, "edges": 400}]
        return {"stages": stages, "kernels": []}


class SamplingTwice(Sampling):
    """The same work in twice the time."""

    def setup(self):
        super().setup()
        self.seconds *= 2


class Gpu(Fake):
    """Declares that it runs on a GPU."""

    devices = ("cpu", "cuda")
