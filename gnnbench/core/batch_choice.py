"""A random choice of batches that two processes make alike."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class BatchChoice:
    """Chooses ``count`` batches of an epoch on average, by a secret ``key``; none without a key."""

    key: str = ""
    count: float = 0.0

    def has(self, position: int, batches: int) -> bool:
        """Whether it chooses the batch at a position of an epoch of ``batches``."""
        if not self.key:
            return False
        word = hashlib.blake2b(b"%d" % position, key=self.key.encode(), digest_size=8).digest()
        return int.from_bytes(word, "little") * batches < self.count * 2**64


NO_BATCHES = BatchChoice()
