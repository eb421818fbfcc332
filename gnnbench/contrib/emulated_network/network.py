"""Machines as network namespaces, each with one link to a switch, shaped at both of its ends.

``NAME-1`` ... ``NAME-N`` are the machines, ``NAME-switch`` has the bridge; nothing else of the
host's network is touched, so that with its namespaces all of a network is gone.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from gnnbench.core.errors import MissingError, UsageError

NAME = "gnnbench"
INTERFACE = "eth0"  # of every machine
_SUBNET = "10.99.0"
_MOST = 250  # addresses of the subnet
_ENDING = 2.0  # seconds between asking a process to end and killing it
# A bucket must hold the largest piece that the kernel hands on at once (64 KiB), and what a timer's
# tick lets through.
_LEAST_BURST, _BURST_S = 128 * 1024, 0.001
_QUEUE_S = 0.05  # what may wait ahead of a link


@dataclass(frozen=True)
class Network:
    """``machines`` namespaces, links of ``rate`` Gbit/s each way, ``delay`` ms more each way."""

    machines: int
    rate: float
    delay: float = 0.0
    name: str = NAME

    def __post_init__(self) -> None:
        _check_name(self.name)
        if not 1 <= self.machines <= _MOST:
            raise UsageError(f"machines must be 1 to {_MOST}, not {self.machines}")
        if not 0.001 <= self.rate <= 1000:
            raise UsageError(f"rate must be 0.001 to 1000 Gbit/s, not {self.rate:g}")
        if not 0 <= self.delay <= 10_000:
            raise UsageError(f"delay must be 0 to 10000 ms, not {self.delay:g}")

    @property
    def namespaces(self) -> list[str]:
        """Those of the machines, the first one's first."""
        return [f"{self.name}-{i + 1}" for i in range(self.machines)]

    @property
    def addresses(self) -> list[str]:
        """IPv4 addresses of the machines."""
        return [f"{_SUBNET}.{i + 1}" for i in range(self.machines)]


def missing() -> str:
    """Why no network can be made here, and what to do; "" where it can."""
    if absent := [tool for tool in ("ip", "tc") if shutil.which(tool) is None]:
        return f"there is no command '{absent[0]}'; install iproute2"
    if os.geteuid() != 0:
        return "network namespaces are made by root alone; run the command as root"
    return ""


def need() -> None:
    """Raise ``MissingError`` where no network can be made here."""
    if why := missing():
        raise MissingError(why)


def make(network: Network) -> None:
    """Make it. Raises ``UsageError`` where one of its name is there, or the kernel refuses.

    Made whole or not at all, also where this process is killed meanwhile, or another one makes a
    network of that name.
    """
    with _taken(network.name) as taken:
        _make(network)
        taken.keep()


def remove(name: str = NAME) -> int:
    """End all processes in a network's namespaces and remove them; how many there were.

    What is half made is removed as well; nothing to remove is no error.
    """
    _check_name(name)
    need()
    existing = namespaces(name)
    end_all(existing)
    for namespace in existing:
        with suppress(UsageError):  # another process removes the same network
            _ip("netns", "del", namespace)
    return len(existing)


@contextmanager
def made(network: Network) -> Iterator[Network]:
    """A network for the time of a block; removed at its end, also where this process is killed."""
    with _taken(network.name):
        _make(network)
        yield network


def namespaces(name: str = NAME) -> list[str]:
    """The namespaces of a network that are there."""
    lines = _ip("netns", "list").splitlines()
    own = re.compile(rf"{re.escape(name)}-(\d+|switch)")
    return [line.split()[0] for line in lines if line and own.fullmatch(line.split()[0])]


def processes(namespace: str) -> list[int]:
    """Ids of the processes in a namespace; of one that is gone none."""
    try:
        return [int(line) for line in _ip("netns", "pids", namespace).split()]
    except UsageError:
        return []


def end_all(of: list[str]) -> None:
    """End all processes in namespaces: asked first, killed after two seconds."""
    for sign, patience in ((signal.SIGTERM, _ENDING), (signal.SIGKILL, 10.0)):
        until = time.monotonic() + patience
        for process in (p for namespace in of for p in processes(namespace)):
            with suppress(ProcessLookupError):
                os.kill(process, sign)
        while any(map(processes, of)) and time.monotonic() < until:
            time.sleep(0.05)


def status(name: str = NAME) -> list[dict[str, str]]:
    """A line for each machine that is there: address, shaping, processes, bytes both ways."""
    _check_name(name)
    need()
    lines = []
    for namespace in sorted(namespaces(name), key=_number):
        if not namespace.endswith("-switch"):
            sent, received = counters(namespace)
            lines.append(
                {
                    "machine": namespace,
                    "address": _address(namespace),
                    "link": _shaping(namespace),
                    "processes": str(len(processes(namespace))),
                    "sent B": str(sent),
                    "received B": str(received),
                }
            )
    return lines


def counters(namespace: str = "") -> tuple[int, int]:
    """Bytes that a machine's link has sent and received; of "" the machine of this process.

    As the kernel counts frames: headers are in it, one for up to 64 KiB that are handed on at once.
    """
    base = f"/sys/class/net/{INTERFACE}/statistics"
    words = ["cat", f"{base}/tx_bytes", f"{base}/rx_bytes"]
    counts = _run(["ip", "netns", "exec", namespace, *words] if namespace else words)
    sent, received = map(int, counts.split())
    return sent, received


def _make(network: Network) -> None:
    """All but the namespace of the switch, which is there."""
    switch = _switch(network.name)
    _ip("-n", switch, "link", "add", "bridge", "type", "bridge")
    _ip("-n", switch, "link", "set", "bridge", "up")
    for i, (machine, address) in enumerate(zip(network.namespaces, network.addresses, strict=True)):
        port = f"port{i + 1}"
        _ip("netns", "add", machine)
        # Made inside of the two namespaces: the host's own list of interfaces never has it.
        ends = ("name", INTERFACE, "type", "veth", "peer", "name", port, "netns", switch)
        _ip("-n", machine, "link", "add", *ends)
        _ip("-n", switch, "link", "set", port, "master", "bridge", "up")
        _ip("-n", machine, "addr", "add", f"{address}/24", "dev", INTERFACE)
        for interface in ("lo", INTERFACE):
            _ip("-n", machine, "link", "set", interface, "up")
        _shape(network, machine, INTERFACE)
        _shape(network, switch, port)


def _shape(network: Network, namespace: str, interface: str) -> None:
    """What an interface sends: a token bucket, behind it the delay where one is asked for."""
    bytes_a_second = network.rate * 1e9 / 8
    burst = max(_LEAST_BURST, int(bytes_a_second * _BURST_S))
    limit = max(4 * burst, int(bytes_a_second * (_QUEUE_S + network.delay / 1e3)))
    on = ("tc", "-n", namespace, "qdisc", "add", "dev", interface)
    shape = ("rate", f"{network.rate * 1000:g}mbit", "burst", str(burst), "limit", str(limit))
    _run([*on, "root", "handle", "1:", "tbf", *shape])
    if network.delay:
        wait = ("delay", f"{network.delay:g}ms", "limit", str(max(1000, limit // 1000)))
        try:
            _run([*on, "parent", "1:1", "handle", "10:", "netem", *wait])
        except UsageError as error:
            raise MissingError(
                "this kernel has no netem, which a delay takes; leave the delay out"
            ) from error


def _address(namespace: str) -> str:
    fields = _ip("-n", namespace, "-br", "-4", "addr", "show", "dev", INTERFACE).split()
    return fields[2].partition("/")[0] if len(fields) > 2 else ""


def _shaping(namespace: str) -> str:
    settings = _run(["tc", "-n", namespace, "qdisc", "show", "dev", INTERFACE])
    rate = re.search(r"\brate (\S+)", settings)
    delay = re.search(r"\bdelay (\S+)", settings)
    return ", ".join([rate[1] if rate else "not shaped", *([f"{delay[1]} later"] if delay else [])])


def _number(namespace: str) -> int:
    tail = namespace.rpartition("-")[2]
    return int(tail) if tail.isdigit() else 0


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,40}", name):
        raise UsageError(f"'{name}' is no name of a network; take letters, digits, '-' and '_'")


def _ip(*words: str) -> str:
    return _run(["ip", *words])


def _run(words: list[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        why = done.stderr.strip().splitlines() or ["no reason given"]
        raise UsageError(
            f"'{' '.join(words)}' failed: {why[-1]}; it takes a kernel with network namespaces,"
            " veth, bridge and tbf"
        )
    return done.stdout


def _switch(name: str) -> str:
    return f"{name}-switch"


class _Taken:
    """A name that is this process's alone, and the shell that holds it."""

    def __init__(self, name: str) -> None:
        self._name, self._kept = name, False
        removal = [
            sys.executable,
            "-m",
            "gnnbench.contrib.emulated_network",
            "remove",
            "--name",
            name,
        ]
        self._shell = subprocess.Popen(
            ["sh", "-c", _GUARD, "sh", _switch(name), *removal],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        assert self._shell.stdout is not None
        self.ours = self._shell.stdout.readline() == "taken\n"

    def keep(self) -> None:
        """Leave the network there."""
        self._kept = True

    def end(self) -> None:
        """Remove the network where it is not to be kept."""
        try:
            if self.ours and not self._kept:
                remove(self._name)
        finally:
            _, self.answer = self._shell.communicate("done\n" if self.ours else None)


# The shell itself makes the first namespace, which of several makers one can alone, and removes the
# network once nobody is left who could write to it: there is no moment in which a killed maker
# leaves anything, and none in which somebody else's network is removed.
_GUARD = """
trap "" INT TERM HUP PIPE
ip netns add "$1" || exit 1
shift
echo taken
read word
[ "$word" = done ] || exec "$@" >/dev/null 2>&1
"""


@contextmanager
def _taken(name: str) -> Iterator[_Taken]:
    """A name for the time of a block, and its network removed at the end, unless it is kept.

    Raises ``UsageError`` where there is a network of that name.
    """
    need()
    existing = namespaces(name)
    taken = None if existing else _Taken(name)
    if taken is None or not taken.ours:
        if taken is not None:
            taken.end()
            if not (existing := namespaces(name)):
                why = taken.answer.strip() or "no reason given"
                raise UsageError(
                    f"no namespace can be made ({why}); it takes a kernel with network namespaces"
                )
        raise UsageError(
            f"there is a network '{name}' of {len(existing)} namespaces already; remove it"
            f" ('python -m gnnbench.contrib.emulated_network remove --name {name}') or give"
            " another --name"
        )
    try:
        yield taken
    finally:
        taken.end()
