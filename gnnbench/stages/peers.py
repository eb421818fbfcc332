"""What ranks that are being built tell each other: each says a word, and hears everybody's."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch.distributed as dist

HOST = "127.0.0.1"
LOOK_S = 0.02  # between looks for others' words
ANSWER_S = 30.0  # that the store, which is no rank's work, may take for an answer


@dataclass
class Peers:
    """Ranks of one host, met at a store of torch's before they are built.

    They may take any time for their work. ``still`` is called while one waits, and raises where
    another has ended.
    """

    rank: int
    ranks: int
    store: Any
    still: Callable[[], None] = lambda: None

    @classmethod
    def first(cls, ranks: int, still: Callable[[], None]) -> Peers:
        """Rank 0, with the store at a port that the system chooses (``port``)."""
        store = dist.TCPStore(
            HOST, 0, ranks, is_master=True, wait_for_workers=False,
            timeout=timedelta(seconds=ANSWER_S),
        )  # fmt: skip
        return cls(0, ranks, store, still)

    @classmethod
    def another(cls, rank: int, ranks: int, port: int) -> Peers:
        """Another rank; its process ends with rank 0's."""
        store = dist.TCPStore(
            HOST, port, ranks, is_master=False, wait_for_workers=False,
            timeout=timedelta(seconds=ANSWER_S),
        )  # fmt: skip
        return cls(rank, ranks, store)

    @property
    def port(self) -> int:
        """Where the store is."""
        return int(self.store.port)

    def exchange(self, what: str, own: bytes) -> list[bytes]:
        """Say ``own`` of ``what``, a name used once; returns what each rank said, by rank."""
        names = [f"{what}/{rank}" for rank in range(self.ranks)]
        self.store.set(names[self.rank], own)
        while not self.store.check(names):
            self.still()
            time.sleep(LOOK_S)
        return [self.store.get(name) for name in names]
