"""Template process: imports what workers need, then forks workers on request.

``python -m gnnbench.harness.template '<json>'``. It imports no plug-in, opens no dataset and no
GPU, and runs no kernel, so a forked worker is what a new process is after its imports. A worker
becomes a child of the harness, not of this process, and has a session of its own.

A request is a ``ForkRequest`` on a socket, with the worker's standard streams as descriptors. The
answer is a ``ForkAnswer``.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import signal
import socket
import sys
from pathlib import Path
from pkgutil import resolve_name
from typing import TypedDict

from gnnbench.core.bootstrap import die_with_parent
from gnnbench.harness.startup import FrameworkClock, Inherited, age_s, hold_garbage
from gnnbench.harness.worker import run_worker
from gnnbench.harness.worker_environment import MARK

MOST_BYTES = 1 << 16  # of a request
DESCRIPTORS = Path("/proc/self/fd")
NO_MARK = "0" * 16  # of a template: workers overwrite it, so it has the length of a mark
# What workers of recipes need: modules to import and functions to call, whose results are cached.
# What is missing fails in the worker, by name.
MODULES = (
    "torch",
    "gnnbench.core.registry:installed",
    "gnnbench.harness.failures",
    "gnnbench.measure.timeline",
    "gnnbench.models.native",
    "gnnbench.pipelines.training_step",
    "gnnbench.systems.runtime.find",
    "gnnbench.systems.runtime.runner",
)


class TemplateArguments(TypedDict):
    """Arguments of the process: pid of the harness, descriptor of the socket, and ``preload``:
    ``MODULE`` to import or ``MODULE:FUNCTION`` to call.
    """

    parent: int
    socket: int
    preload: list[str]


class ForkRequest(TypedDict):
    """A worker's mark, and the limit of its address space (GiB, 0: none)."""

    mark: str
    memory_limit_gib: float


class ForkAnswer(TypedDict):
    """The worker's pid; ``gpu``: this process has opened a GPU, so it forks none (pid 0)."""

    pid: int
    gpu: bool


def main() -> None:
    """Import the modules, then serve until the harness closes the socket."""
    arguments: TemplateArguments = json.loads(sys.argv[1])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    die_with_parent(arguments["parent"])
    channel = socket.socket(fileno=arguments["socket"])
    hold_garbage()
    clock = FrameworkClock()
    for name in (*MODULES, *arguments["preload"]):
        with contextlib.suppress(ImportError):
            preloaded = resolve_name(name)
            if callable(preloaded):
                preloaded()
    gc.collect()
    gc.freeze()  # so that workers do not copy pages of these objects as they collect garbage
    inherited = Inherited(age_s() - clock.seconds, clock.seconds)
    while True:
        message, streams, _, _ = socket.recv_fds(channel, MOST_BYTES, 3)
        if not message:
            return
        request: ForkRequest = json.loads(message)
        gpu = has_opened_gpu()
        pid = 0 if gpu else _fork_worker(request, streams, channel, arguments["parent"], inherited)
        for stream in streams:
            os.close(stream)
        channel.send(json.dumps(ForkAnswer(pid=pid, gpu=gpu)).encode())


def has_opened_gpu() -> bool:
    """Whether this process has a CUDA context; a forked process could not use a GPU then."""
    for descriptor in DESCRIPTORS.iterdir():
        with contextlib.suppress(OSError):  # that of the folder itself
            if str(descriptor.readlink()).startswith("/dev/nvidia"):
                return True
    return False


def _fork_worker(
    request: ForkRequest,
    streams: list[int],
    channel: socket.socket,
    harness: int,
    inherited: Inherited,
) -> int:
    """Fork a worker and return its pid.

    A process in between ends at once, so that the harness adopts the worker.
    """
    reader, writer = os.pipe()
    between = os.fork()
    if between == 0:
        parent = os.getpid()
        worker = os.fork()
        if worker != 0:
            os.write(writer, str(worker).encode())
            os._exit(0)
        for stream, descriptor in zip(streams, (0, 1, 2), strict=True):
            os.dup2(stream, descriptor)
        channel.close()
        os.closerange(3, max(reader, writer, *streams) + 1)
        os.setsid()
        _set_mark(request["mark"])
        _wait_for_adoption(parent, harness)
        run_worker({"parent": harness, "memory_limit_gib": request["memory_limit_gib"]}, inherited)
    os.close(writer)
    os.waitpid(between, 0)
    with os.fdopen(reader, "rb") as pipe:
        return int(pipe.read())


def _set_mark(mark: str) -> None:
    """Set the worker's mark, also where ``/proc/PID/environ`` reads it."""
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_void_p
    address = libc.getenv(MARK.encode())
    if address is not None:
        ctypes.memmove(address, mark.encode(), len(NO_MARK))
    os.environ[MARK] = mark


def _wait_for_adoption(between: int, harness: int) -> None:
    """Wait until the process in between has ended; end if another process adopts this one."""
    while (parent := os.getppid()) == between:
        os.sched_yield()
    if parent != harness:  # it has ended, or does not adopt orphans
        os.write(2, f"adopted by process {parent} and not by {harness}, the harness\n".encode())
        os._exit(1)


if __name__ == "__main__":
    main()
