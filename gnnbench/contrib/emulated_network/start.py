"""One command on each machine of a network; where one fails all are ended."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from gnnbench.contrib.emulated_network.network import INTERFACE, Network, counters, end_all
from gnnbench.core import process_activity
from gnnbench.core.errors import CellsFailedError
from gnnbench.core.process_activity import Stillness
from gnnbench.measure.machine import oom_kills

PORT = 29500
POLL_S = 0.05
LOOK_S = 5.0  # between looks at whether anybody does anything
# A machine has shared memory of its own: programs that use it by fixed names would meet else.
_OWN_MEMORY = 'mount -t tmpfs tmpfs /dev/shm && exec "$@"'


def environment(network: Network, rank: int) -> dict[str, str]:
    """What ``torch.distributed`` finds out about its group with one process a machine."""
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(network.machines),
        "LOCAL_RANK": "0",
        "MASTER_ADDR": network.addresses[0],
        "MASTER_PORT": str(PORT),
        "GLOO_SOCKET_IFNAME": INTERFACE,
    }


def filled(words: Sequence[str], network: Network, rank: int) -> list[str]:
    """A command with ``{machines}``, ``{rank}``, ``{first}`` and ``{address}`` put in."""
    known = {
        "{machines}": str(network.machines),
        "{rank}": str(rank),
        "{first}": network.addresses[0],
        "{address}": network.addresses[rank],
    }
    processes = []
    for word in words:
        for mark, value in known.items():
            word = word.replace(mark, value)
        processes.append(word)
    return processes


class LifeFailedError(CellsFailedError):
    """The processes on the machines did not end well; ``status`` is as a cell's."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


def run(
    network: Network,
    commands: Sequence[Sequence[str]],
    logs: Sequence[Path | None],
    *,
    extra: Mapping[str, str] | None = None,
    limit: float | None = None,
    watched: bool = False,
) -> None:
    """Run ``commands[i]`` on machine i until all have ended well.

    Args:
        network: which is there.
        commands: one a machine.
        logs: files of what each says; None: this process's own output.
        extra: variables of the environment, besides those of :func:`environment`.
        limit: seconds that all may take together.
        watched: whether they must get on: a process that is stopped for ``SILENCE_S`` hangs, and
            so do all where in that time no process works and no link carries anything.

    Raises:
        LifeFailedError: one ended with an error, they hang, or the time is up; all are ended then.
    """
    before = oom_kills()
    with ExitStack() as stack:
        running: dict[int, subprocess.Popen[bytes]] = {}
        stack.callback(lambda: [process.wait() for process in running.values()])
        stack.callback(end_all, network.namespaces)
        for rank, words in enumerate(commands):
            log = logs[rank]
            out = stack.enter_context(log.open("wb")) if log else None
            inside = ("ip", "netns", "exec", network.namespaces[rank])
            running[rank] = subprocess.Popen(
                [*inside, "sh", "-c", _OWN_MEMORY, "sh", *words],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT if out else None,
                env={**os.environ, **environment(network, rank), **(extra or {})},
                start_new_session=True,
            )
        until = None if limit is None else time.monotonic() + limit
        vigil = _Vigil(network, [process.pid for process in running.values()])
        looked = time.monotonic()
        while running:
            for rank, process in list(running.items()):
                if process.poll() is None:
                    continue
                del running[rank]
                if process.returncode:
                    status = "oom_host" if oom_kills() > before else "crash"
                    raise LifeFailedError(status, _failed(rank, process.returncode, logs[rank]))
            if until and time.monotonic() > until:
                late = ", ".join(str(rank + 1) for rank in running)
                raise LifeFailedError(
                    "timeout", f"machine {late} did not end within {limit:g} s; all were ended"
                )
            if watched and time.monotonic() - looked > LOOK_S:
                looked = time.monotonic()
                if why := vigil.look():
                    raise LifeFailedError("crash", f"{why}: it hangs; all were ended")
            time.sleep(POLL_S)


class _Vigil:
    """Looks whether the processes on the machines of a network get on."""

    def __init__(self, network: Network, first: Sequence[int]) -> None:
        self._network, self._first = network, first
        self._known: dict[int, tuple[int, Stillness]] = {}  # by process: machine, signs
        self._carried: list[tuple[int, int]] = []
        self._moved = time.monotonic()

    def look(self) -> str:
        """Who hangs, or ""."""
        silence, now = process_activity.SILENCE_S, time.monotonic()
        states: dict[int, tuple[int, Stillness]] = {}
        for machine, pid in enumerate(self._first):
            for each in _family(pid):
                states[each] = self._known.get(each) or (machine, Stillness(each))
        self._known = states
        still = []
        for machine, one in states.values():
            idle, stopped = one.look()
            if stopped > silence:
                return f"a process of machine {machine + 1} was stopped for {silence:g} s"
            still.append(idle)
        if min(still, default=0.0) < LOOK_S:
            self._moved = now
            return ""
        # A slow link keeps everybody waiting, and carries bytes.
        carried = [counters(namespace) for namespace in self._network.namespaces]
        if carried != self._carried:
            self._carried, self._moved = carried, now
        if now - self._moved > silence:
            return f"on no machine anything was done for {silence:g} s"
        return ""


def _family(pid: int) -> list[int]:
    """A process and all below it."""
    try:
        return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    except psutil.Error:
        return []


def _failed(rank: int, code: int, log: Path | None) -> str:
    how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit status {code}"
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() if log else []
    last = f" ({lines[-1]})" if lines else ""
    return f"machine {rank + 1} ended {how}{last}; all others were ended"


def alone(words: Sequence[str]) -> str:
    """What a program says that runs by itself, on no machine. Raises ``CellsFailedError``."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise CellsFailedError(
            f"'{' '.join(words)}' ended with exit status {done.returncode}"
            f" ({lines[-1] if lines else 'nothing said'})"
        )
    return done.stdout


@contextmanager
def ending_by_signal() -> Iterator[None]:
    """SIGTERM and SIGHUP end the block as ctrl-C does, so that what it made is removed."""

    def end(number: int, _: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt(signal.Signals(number).name)

    before = {s: signal.signal(s, end) for s in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)
