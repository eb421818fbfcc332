"""What the programs of one life are to do, as a file that all of them read."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import TypeAdapter


@dataclass(frozen=True)
class Plan:
    """One life: processes that start, run epochs and end.

    ``epochs`` are pairs of a system (of ``rank.SYSTEMS``, or ``distdgl``) and the epoch's number,
    in the order in which they run. ``max_steps``: only the first steps of each; 0 all.
    ``warm_steps``: the same of epoch 0, which is for warming up. ``folder``: where DistDGL's
    partition lies; ``method`` ``dgl``: it is everybody's.
    """

    dataset: str
    method: str
    fanouts: list[int]
    batch_size: int
    hidden: int
    learning_rate: float
    seed: int
    epochs: list[tuple[str, int]]
    max_steps: int = 0
    warm_steps: int = 0
    folder: str = ""
    addresses: list[str] = field(default_factory=list)

    def steps(self, number: int) -> int:
        """The most steps of an epoch; 0 any."""
        return self.max_steps if number else self.warm_steps

    def write(self, path: Path) -> None:
        """As JSON."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Plan:
        """What :meth:`write` wrote."""
        return TypeAdapter(cls).validate_json(path.read_bytes())
