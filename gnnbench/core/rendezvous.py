"""Exchange of small messages between ranks during setup (all-gather)."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import torch.distributed as dist

from gnnbench.core import process_activity
from gnnbench.core.heartbeat import Pulse

HOST = "127.0.0.1"
LOOK_S = 0.02  # polling interval


@dataclass
class Peers:
    """Ranks of one host that exchange messages through a torch store.

    A rank may take any time. While one waits it calls ``still``, which raises where another has
    ended; ``pulse`` reports that it waits.
    """

    rank: int
    ranks: int
    _store: dist.TCPStore | None
    still: Callable[[], None] = lambda: None
    pulse: Pulse = field(default_factory=Pulse.alone)

    @classmethod
    def first(cls, ranks: int, still: Callable[[], None], pulse: Pulse | None = None) -> Peers:
        """Rank 0, with the store at a port of the loopback interface that the system chooses."""
        # Torch would listen on every interface.
        with socket.create_server((HOST, 0)) as server:
            port, descriptor = server.getsockname()[1], server.detach()
        store = _connect(ranks, port, is_master=True, listen_descriptor=descriptor)
        return cls(0, ranks, store, still, pulse or Pulse.alone())

    @classmethod
    def another(cls, rank: int, ranks: int, port: int, pulse: Pulse | None = None) -> Peers:
        """Another rank; its process ends with rank 0's."""
        store = _connect(ranks, port, is_master=False)
        return cls(rank, ranks, store, pulse=pulse or Pulse.alone())

    @property
    def port(self) -> int:
        """Port of the store."""
        return int(self.store.port)

    def exchange(self, key: str, own: bytes) -> list[bytes]:
        """Publish ``own`` under the unique ``key``; returns the messages of all ranks, by rank."""
        names = [f"{key}/{rank}" for rank in range(self.ranks)]
        store = self.store
        store.set(names[self.rank], own)  # type: ignore[arg-type]  # torch declares str only
        with self.pulse.waiting():
            while not store.check(names):
                self.still()
                time.sleep(LOOK_S)
        return [store.get(name) for name in names]

    def close(self) -> None:
        """Leave the store; rank 0's port is closed once its group of processes is left, too."""
        self._store = None

    @property
    def store(self) -> dist.TCPStore:
        """The store. Raises ``RuntimeError`` after ``close``."""
        if self._store is None:
            raise RuntimeError("the rendezvous is closed")
        return self._store


def _connect(
    ranks: int, port: int, is_master: bool, listen_descriptor: int | None = None
) -> dist.TCPStore:
    """A read waits at most ``SILENCE_S``, because no rank works between requests."""
    timeout = timedelta(seconds=process_activity.SILENCE_S)
    return dist.TCPStore(
        HOST,
        port,
        ranks,
        is_master,
        timeout,
        wait_for_workers=False,
        master_listen_fd=listen_descriptor,
    )
