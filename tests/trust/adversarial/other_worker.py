"""Attacks on the other worker: it is stopped, slowed down, or made to wait in its own turn."""

import contextlib
import ctypes
import os
import threading
import time
from pathlib import Path

import psutil
from adversarial.bases import recipe, schedule

from gnnbench.pipelines.serial import SerialSchedule

LIBC = ctypes.CDLL(None, use_errno=True)
PTRACE_CONT, PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 7, 17, 0x4206, 0x4207
ALL_THREADS = 0x40000000  # __WALL


def other_workers():
    """Pids of the other workers: sessions of their own, with commands from a pipe."""
    for process in psutil.Process(os.getppid()).children():
        with contextlib.suppress(OSError):
            leads = os.getsid(process.pid) == process.pid != os.getpid()
            if leads and os.readlink(f"/proc/{process.pid}/fd/0").startswith("pipe:"):  # noqa: PTH115
                yield process.pid


def is_busy(pid):
    """Whether a process has used the CPU within some milliseconds."""
    before = Path(f"/proc/{pid}/schedstat").read_text().split()[0]
    time.sleep(0.002)
    return Path(f"/proc/{pid}/schedstat").read_text().split()[0] != before


class Attacking(SerialSchedule):
    """A thread attacks the other worker while that is busy and this one is not."""

    thread, own_turn = None, False

    def epoch(self, *work):
        self.own_turn = True
        super().epoch(*work)
        self.own_turn = False
        if self.thread is None:
            self.thread = threading.Thread(target=self.watch, daemon=True)
            self.thread.start()

    def watch(self):
        victim = next(other_workers(), 0)
        while victim:
            time.sleep(0.003)
            with contextlib.suppress(Exception):
                if not self.own_turn:
                    self.attack(victim)

    def attack(self, pid):
        raise NotImplementedError


class Stops(Attacking):
    """Stops the other worker by signals."""

    def attack(self, pid):
        psutil.Process(pid).suspend()
        time.sleep(0.004)
        psutil.Process(pid).resume()


class Traces(Attacking):
    """Stops the main thread of the other worker as a debugger does: its parent gets no report."""

    seized = 0

    def attack(self, pid):
        if not self.seized and LIBC.ptrace(PTRACE_SEIZE, pid, None, None) == 0:
            self.seized = pid
        if self.seized and is_busy(pid):
            LIBC.ptrace(PTRACE_INTERRUPT, pid, None, None)
            os.waitpid(pid, ALL_THREADS)
            time.sleep(0.03)
            LIBC.ptrace(PTRACE_CONT, pid, None, None)


class Freezes(Attacking):
    """Puts the other worker in a control group, and freezes that time and again."""

    @property
    def group(self):
        return Path(f"/sys/fs/cgroup/freezer/gnnbench-attack-{os.getpid()}")

    def attack(self, pid):
        if not self.group.is_dir():
            self.group.mkdir()
            (self.group / "cgroup.procs").write_text(str(pid))
        if is_busy(pid):
            (self.group / "freezer.state").write_text("FROZEN")
            time.sleep(0.03)
            (self.group / "freezer.state").write_text("THAWED")

    def close(self):
        self.own_turn = True  # no further attack
        time.sleep(0.03)
        with contextlib.suppress(OSError):
            for pid in (self.group / "cgroup.procs").read_text().split():
                (self.group.parent / "cgroup.procs").write_text(pid)
            self.group.rmdir()
        super().close()


class Renices(Attacking):
    """Lowers its priority."""

    def attack(self, pid):
        os.setpriority(os.PRIO_PROCESS, pid, 5)


class Idles(Attacking):
    """Puts it in the scheduling class of idle programs."""

    def attack(self, pid):
        os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))


class Hogs(Attacking):
    """Uses the memory bandwidth that the other worker needs."""

    def attack(self, pid):
        bytes(1 << 24)


class DropsPages(Attacking):
    """Makes the kernel drop the pages of the files that the other worker has mapped."""

    def attack(self, pid):
        time.sleep(0.05)
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            name = line.split()[-1]
            if name.endswith(".npy") and Path(name).is_file():
                descriptor = os.open(name, os.O_RDONLY)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(descriptor)


STOPS = recipe(schedule=schedule(Stops))
TRACES = recipe(schedule=schedule(Traces))
FREEZES = recipe(schedule=schedule(Freezes))
RENICES = recipe(schedule=schedule(Renices))
IDLES = recipe(schedule=schedule(Idles))
HOGS = recipe(schedule=schedule(Hogs))
DROPS_PAGES = recipe(schedule=schedule(DropsPages))
