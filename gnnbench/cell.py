"""One cell of an experiment: everything that decides what a worker runs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

NO_MODEL = "none"  # model of a cell that samples and does nothing else


@dataclass(frozen=True)
class Cell:
    """A single (system, dataset, model, parameters) combination.

    ``fanouts`` go from the seeds outwards. ``pick`` and ``frontier`` are ``"default"`` or a name;
    ``device`` is ``"cpu"`` or ``"cuda"``. ``options`` are the system's own settings.
    ``max_batches`` limits an epoch to its first batches (0: the whole epoch); a row says so.
    """

    experiment: str
    system: str
    dataset: str
    model: str
    device: str = "cpu"
    pick: str = "default"
    frontier: str = "default"
    batch_size: int = 1024
    fanouts: tuple[int, ...] = (15, 10, 5)
    hidden: int = 64
    learning_rate: float = 0.003
    seed: int = 0
    threads: int = 0
    max_batches: int = 0
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Stable content hash, 12 hex digits."""
        text = json.dumps(asdict(self), sort_keys=True, default=list)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Cell:
        """Inverse of ``asdict``."""
        return cls(**{**values, "fanouts": tuple(values["fanouts"])})
