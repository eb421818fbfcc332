"""Exchange of small messages between ranks during setup (all-gather)."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from gnnbench.core import process_activity
from gnnbench.core.heartbeat import Pulse

HOST = "127.0.0.1"
LOOK_S = 0.02  # polling interval


@dataclass
class Peers:
    """Ranks of one host, met at a store of torch's before they are built.

    They may take any time for their work. ``still`` is called while one waits, and raises where
    another has ended; ``pulse`` shows that it waits.
    """

    rank: int
    ranks: int
    store: Any
    still: Callable[[], None] = lambda: None
    pulse: Pulse = field(default_factory=Pulse.alone)

    @classmethod
    def first(cls, ranks: int, still: Callable[[], None], pulse: Pulse | None = None) -> Peers:
        """Rank 0, with the store at a port of the loopback interface that the system chooses."""
        # Torch would listen on every interface.
        with socket.create_server((HOST, 0)) as server:
            port, descriptor = server.getsockname()[1], server.detach()
        store = _store(ranks, port, is_master=True, master_listen_fd=descriptor)
        return cls(0, ranks, store, still, pulse or Pulse.alone())

    @classmethod
    def another(cls, rank: int, ranks: int, port: int, pulse: Pulse | None = None) -> Peers:
        """Another rank; its process ends with rank 0's."""
        store = _store(ranks, port, is_master=False)
        return cls(rank, ranks, store, pulse=pulse or Pulse.alone())

    @property
    def port(self) -> int:
        """Where the store is."""
        return int(self.store.port)

    def exchange(self, key: str, own: bytes) -> list[bytes]:
        """Publish ``own`` under the unique ``key``; returns the messages of all ranks, by rank."""
        names = [f"{key}/{rank}" for rank in range(self.ranks)]
        self.store.set(names[self.rank], own)
        with self.pulse.waiting():
            while not self.store.check(names):
                self.still()
                time.sleep(LOOK_S)
        return [self.store.get(name) for name in names]

    def close(self) -> None:
        """Leave the store; rank 0's port is closed once its group of processes is left, too."""
        self.store = None


def _store(ranks: int, port: int, **how: Any) -> Any:
    """A read waits ``SILENCE_S`` at most, because no rank works between requests."""
    timeout = timedelta(seconds=process_activity.SILENCE_S)
    return dist.TCPStore(HOST, port, ranks, wait_for_workers=False, timeout=timeout, **how)
