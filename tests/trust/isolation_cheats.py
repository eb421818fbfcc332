"""Planted cheats that work, or change how others work, outside the worker's own turn."""

import os
import threading
import time

import psutil
from cheats import LONG_S, Honest, Longer, work  # noqa: F401


def daemon(life_s=120.0):
    """Leave a process to whoever reaps: in a session of its own, its parent gone."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            end = time.monotonic() + life_s
            while time.monotonic() < end:  # too little to be seen as use of the CPU
                work(0.001)
                time.sleep(0.2)
        os._exit(0)


class DaemonAtSetup(Honest):
    """A daemon prepares the worker's epochs."""

    def setup(self):
        super().setup()
        daemon()


class DaemonInAnEpoch(Honest):
    """The same, started when all is measured already."""

    epochs = 0

    def run_epoch(self, epoch, timeline):
        self.epochs += 1
        if self.epochs == 3:
            daemon()
        super().run_epoch(epoch, timeline)


class BareDaemon(Honest):
    """A daemon that has thrown its environment away."""

    def setup(self):
        super().setup()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                null = os.open(os.devnull, os.O_RDWR)
                for stream in range(3):
                    os.dup2(null, stream)
                os.execve("/bin/sleep", ["sleep", "120"], {})
            os._exit(0)


class HonestChild(Honest):
    """Has a helper process that ends with it, as loaders of other frameworks have."""

    def setup(self):
        super().setup()
        self.child = psutil.Popen(["sleep", "120"])


class Reniced(Honest):
    """Has a thread of another priority."""

    def run_epoch(self, epoch, timeline):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 3)
        super().run_epoch(epoch, timeline)


class Pinned(Honest):
    """Runs on another core than the rest."""

    def run_epoch(self, epoch, timeline):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        super().run_epoch(epoch, timeline)


class PinsTheOther(Honest):
    """Leaves the other worker a single core."""

    def run_epoch(self, epoch, timeline):
        super().run_epoch(epoch, timeline)
        for other in psutil.Process(os.getppid()).children():
            if other.pid != os.getpid() and "gnnbench.harness.worker" in other.cmdline():
                os.sched_setaffinity(other.pid, {min(os.sched_getaffinity(0))})


class StopsTheOther(Honest):
    """Stops the other worker for a moment: too short to be seen by its state."""

    def audit(self, epoch, edges=4000):
        for other in psutil.Process(os.getppid()).children():
            if other.pid != os.getpid() and "gnnbench.harness.worker" in other.cmdline():
                other.suspend()
                time.sleep(0.005)
                other.resume()
        return super().audit(epoch, edges)


class WorksAfterItsAnswer(Honest):
    """Works on when it has answered, until the other's epoch begins."""

    def audit(self, epoch, edges=4000):
        threading.Thread(target=self.late).start()
        return super().audit(epoch, edges)

    def late(self):
        time.sleep(0.002)
        work(LONG_S)
