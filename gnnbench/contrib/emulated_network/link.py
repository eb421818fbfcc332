"""How fast a link is: a copy of bytes from one machine to another over one TCP connection."""

from __future__ import annotations

import json
import socket
import sys
import tempfile
import time
from pathlib import Path

from gnnbench.contrib.emulated_network import start
from gnnbench.contrib.emulated_network.network import Network

PORT = 29400
_PIECE = 1 << 20
_WAIT = 20.0  # seconds for the other side to be there


def measured(network: Network, seconds: float = 1.0, sender: int = 0, receiver: int = 1) -> float:
    """Gbit/s of a copy of about ``seconds`` from one machine (from 0) to another, payload alone.

    Half as much goes ahead and is not timed: buckets are full at first and connections are slow.
    Raises ``CellsFailedError`` where the copy fails.
    """
    count = max(4, int(network.rate * 1e9 / 8 * seconds / _PIECE))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rate.json"
        idle = ["true"]
        commands = [idle] * network.machines
        commands[sender] = _words("send", network.addresses[receiver], str(count))
        commands[receiver] = _words("receive", str(count), str(out))
        logs: list[Path | None] = [Path(folder) / f"{i}.log" for i in range(network.machines)]
        start.run(network, commands, logs, limit=60 + 20 * seconds)
        rate: float = json.loads(out.read_text())
    return rate


def _words(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "gnnbench.contrib.emulated_network.link", *arguments]


def receive(count: int, out: Path) -> None:
    """Take ``count // 2`` MiB that are not timed, then ``count`` that are; write Gbit/s."""
    with socket.create_server(("", PORT)) as server:
        server.settimeout(_WAIT)
        connection, _ = server.accept()
    buffer = bytearray(_PIECE)
    with connection:
        _take(connection, buffer, count // 2 * _PIECE)
        begun = time.perf_counter()
        _take(connection, buffer, count * _PIECE)
        taken = time.perf_counter() - begun
    out.write_text(json.dumps(count * _PIECE * 8 / taken / 1e9))


def _take(connection: socket.socket, buffer: bytearray, size: int) -> None:
    view = memoryview(buffer)
    while size:
        got = connection.recv_into(view[: min(len(buffer), size)])
        if not got:
            raise ConnectionError("the sender ended early")
        size -= got


def send(address: str, count: int) -> None:
    """Send what :func:`receive` takes, once it is there."""
    until = time.monotonic() + _WAIT
    while True:
        try:
            connection = socket.create_connection((address, PORT), timeout=_WAIT)
            break
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
    piece = bytes(_PIECE)
    with connection:
        for _ in range(count // 2 + count):
            connection.sendall(piece)


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "send":
        send(rest[0], int(rest[1]))
    else:
        receive(int(rest[0]), Path(rest[1]))
