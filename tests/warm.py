"""Starts the suite's processes warm: forks them from one that has imported torch and gnnbench.

The imports take seconds. Each process has its own session, pipes, environment variables, search
path and program. Its ``cmdline`` and ``environ`` in ``/proc`` are those of the forking process.
Tests of these, and of process start, start processes cold.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import gc
import importlib
import inspect
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from gnnbench.core import bootstrap, process_activity

Cold = subprocess.Popen
MOST = 1 << 18  # bytes of a request
HIGH = 512  # above the descriptors of a started process
SUBREAPER, IS_SUBREAPER = 36, 37  # of linux/prctl.h
PAUSE_HARD = 2  # of OpenMP's omp_pause_resource_t
STORE_THREAD = "pt_tcpstore_uv"
ADOPTED_S = 30.0
SILENCE = "GNNBENCH_TEST_SILENCE"  # replaces process_activity.SILENCE_S, which no plug-in may do
# Imported before the fork: most modules of a worker or a rank on the CPU. DDP imports dynamo.
IMPORTED = (
    "gnnbench.datasets.graph", "gnnbench.datasets.prepare",
    "gnnbench.distributed.partition.example", "gnnbench.distributed.partition.ranks",
    "gnnbench.distributed.partition.rendezvous", "gnnbench.distributed.partition.train",
    "gnnbench.distributed.producer_consumer", "gnnbench.features.host",
    "gnnbench.harness.worker_commands", "gnnbench.harness.worker_datasets",
    "gnnbench.measure.timeline", "gnnbench.models.native", "gnnbench.pipelines.training_step",
    "gnnbench.sampling.hop_by_hop", "gnnbench.systems.baseline", "gnnbench.systems.runtime.find",
    "gnnbench.systems.runtime.runner", "gnnbench.systems.runtime.worker_rank", "torch._dynamo",
)  # fmt: skip
# Of the process that forks: search path and imported modules. Of nested forks: modules before.
PATH: list[str] = []
MODULES: set[str] = set()
PARENTS: list[dict[str, Any]] = []
SEARCHED = os.environ.get("PYTHONPATH", "")  # of the suite itself; tests have their own


def ours(words: Sequence[Any]) -> bool:
    """Whether a command line starts gnnbench in this Python."""
    if len(words) < 4 or words[0] != sys.executable:
        return False
    if tuple(words[1:3]) == ("-P", "-m"):
        return str(words[3]).startswith("gnnbench.")
    return words[1] == "-c" and str(words[2]).startswith(bootstrap.bootstrap("")[:60])


class Warm(Cold):
    """``Popen`` that forks gnnbench's processes and starts all others normally."""

    _lock = threading.Lock()
    _line: socket.socket | None = None  # to the process that forks
    source: Cold | None = None  # that process

    def _execute_child(self, args: Any, *more: Any) -> None:
        if isinstance(args, (str, bytes)) or not self._ours(args):
            super()._execute_child(args, *more)
            return
        arguments = inspect.signature(super()._execute_child).bind(args, *more).arguments
        pipes = [arguments[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        ends = [n if pipe == -1 else pipe for n, pipe in enumerate(pipes)]
        kept = sorted(arguments["pass_fds"])
        request = {
            "parent": os.getpid(),
            "words": list(map(str, args)),
            "variables": dict(os.environ if arguments["env"] is None else arguments["env"]),
            "folder": str(arguments["cwd"] or Path.cwd()),
            "session": bool(
                arguments.get("start_new_session", arguments.get("unused_start_new_session"))
            ),
            "kept": kept,
        }
        self.pid = self._forked(request, [*ends, *kept])
        self._child_created = True
        names = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(arguments[name] for name in names))

    @staticmethod
    def _ours(words: Sequence[Any]) -> bool:
        return ours(words)

    @classmethod
    def _forked(cls, request: dict[str, Any], descriptors: list[int]) -> int:
        """Fork a process; returns its pid. It becomes a child of this one, as its parent ends."""
        with cls._lock:
            if cls._line is None:
                cls._line, cls.source = cls._first()
            libc, before = ctypes.CDLL(None), ctypes.c_int()
            libc.prctl(IS_SUBREAPER, ctypes.byref(before), 0, 0, 0)
            libc.prctl(SUBREAPER, 1, 0, 0, 0)
            try:
                socket.send_fds(cls._line, [json.dumps(request).encode()], descriptors)
                return int(cls._line.recv(64))
            finally:
                libc.prctl(SUBREAPER, before.value, 0, 0, 0)

    @staticmethod
    def _first() -> tuple[socket.socket, Cold]:
        """Start the process that forks; returns the socket to it and the process."""
        line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        variables = {**os.environ, "PYTHONPATH": SEARCHED}
        from gnnbench.harness.worker_environment import (
            WORKER_ENVIRONMENT as loaded,  # read when libraries are loaded
        )

        with theirs:
            source = Cold(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                env={**variables, **loaded}, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
            )  # fmt: skip
        return line, source


class Nested(Warm):
    """``Popen`` of a forked process: forks itself for a rank or a producer of its own.

    It does so from the main thread only, and where no native thread is left that kernels wait for.
    """

    @staticmethod
    def _ours(words: Sequence[Any]) -> bool:
        is_main = threading.current_thread() is threading.main_thread()
        return ours(words) and words[1] == "-c" and is_main and not native_threads()

    @classmethod
    def _forked(cls, request: dict[str, Any], descriptors: list[int]) -> int:
        if pid := os.fork():
            return pid
        try:
            gc.freeze()  # objects of the parent must not close descriptors of this process
            start_over()
            become(request, descriptors, PATH)
            execute(request["words"][1:])
        finally:
            os._exit(1)


def native_threads() -> int:
    """End OpenMP's threads, which do not survive a fork; returns how many others kernels may use.

    Left out are Python's threads, that of a TCP store, which only the parent needs, and torch's
    pool, which torch makes anew after a fork.
    """
    import torch

    maps = Path("/proc/self/maps").read_text().split()
    for library in {word for word in maps if "libgomp" in word}:
        ctypes.CDLL(library).omp_pause_resource_all(PAUSE_HARD)
    names = [p.read_text().strip() for p in Path("/proc/self/task").glob("*/comm")]
    others = names.count(STORE_THREAD) + threading.active_count() + torch.get_num_threads() - 1
    return max(len(names) - others, 0)


def start_over() -> None:
    """Forget plug-ins and their modules: what was imported since the first fork from a folder of
    ``PYTHONPATH``. Packages stay, because importing them again would register operators twice.
    """
    PARENTS.append(dict(sys.modules))
    folders = tuple(filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    for name in set(sys.modules) - MODULES:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if file.startswith(folders) and not name.startswith("gnnbench."):
            del sys.modules[name]
    forget_plugins()
    atexit._clear()


def serve(line: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Fork at every request; returns in the new process alone, with the request."""
    while True:
        text, descriptors, _, _ = socket.recv_fds(line, MOST, 64)
        if not text:
            os._exit(0)
        request, (ours, theirs) = json.loads(text), os.pipe()
        if (between := os.fork()) == 0:
            if (pid := os.fork()) == 0:
                return request, descriptors
            os.write(theirs, str(pid).encode())
            os._exit(0)
        os.waitpid(between, 0)
        line.send(os.read(ours, 64))
        for descriptor in (ours, theirs, *descriptors):
            os.close(descriptor)


def become(request: dict[str, Any], descriptors: list[int], path: Sequence[str]) -> None:
    """Take the requested session, descriptors, folder, variables and search path."""
    end = time.monotonic() + ADOPTED_S
    while os.getppid() != request["parent"]:
        if time.monotonic() > end:
            os._exit(1)
        time.sleep(0.0005)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if request["session"]:
        os.setsid()
    moved = [fcntl.fcntl(d, fcntl.F_DUPFD, HIGH) for d in descriptors]
    os.closerange(0, HIGH)
    for descriptor, number in zip(moved, (0, 1, 2, *request["kept"]), strict=True):
        os.dup2(descriptor, number, inheritable=True)
    os.closerange(HIGH, max(moved) + 1)
    # The inherited streams are those of the forking process' files.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["variables"])
    more = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [*filter(None, more), *path]
    if SILENCE in os.environ:
        process_activity.SILENCE_S = float(os.environ[SILENCE])


def forget_plugins() -> None:
    """Clear cached plug-ins, which depend on the environment."""
    from gnnbench.core import registry

    registry.entries.cache_clear()
    registry.installed.cache_clear()


def import_packages() -> None:
    """Import torch and ``IMPORTED``."""
    import torch  # noqa: F401

    for name in IMPORTED:
        importlib.import_module(name)
    forget_plugins()
    gc.collect()
    gc.freeze()  # no collection of a forked process visits what is imported here


def run(words: Sequence[str]) -> None:
    """Run a command line of Python, arguments without the interpreter's name."""
    if words[0] == "-P":
        sys.argv[:] = ["-m", *words[3:]]
        runpy.run_module(words[2], run_name="__main__", alter_sys=True)
    elif words[2] == str(bootstrap.PACKAGE):  # already imported: no need to find it again
        sys.argv[:] = ["-c", *words[3:]]
        sys.path[:] = [entry for entry in sys.path if entry]
        exec(words[1].removeprefix(bootstrap.bootstrap("").partition("from  import")[0]), {})
    else:
        sys.argv[:] = ["-c", *words[2:]]
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})


def end(code: object) -> NoReturn:
    """Exit with the code of a ``SystemExit``, without Python's teardown of all modules.

    It takes 0.5 s of CPU time: freeing objects copies the pages that hold them.
    """
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # a closed pipe or stream
            stream.flush()
    os._exit(0 if code is None else code & 0xFF if isinstance(code, int) else 1)


def main() -> None:
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C of a terminal is for the started processes
    PATH[:] = sys.path
    import_packages()
    MODULES.update(sys.modules)
    request, descriptors = serve(socket.socket(fileno=int(sys.argv[1])))
    become(request, descriptors, PATH)
    subprocess.Popen = Nested  # type: ignore[misc]
    execute(request["words"][1:])


def execute(words: Sequence[str]) -> NoReturn:
    """Run a command line and exit."""
    try:
        run(words)
    except SystemExit as exit:
        end(exit.code)
    except Exception:
        sys.excepthook(*sys.exc_info())
        end(1)
    end(None)


if __name__ == "__main__":
    main()
