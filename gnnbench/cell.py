"""One cell of an experiment: everything that decides what a worker runs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any


class Until(IntEnum):
    """How far an epoch goes; each includes what comes before it."""

    SAMPLE = 0
    MEMORY_IO = 1
    COMPUTE = 2

    @property
    def word(self) -> str:
        """As it is typed and written: ``sample``, ``memory_io``, ``compute``."""
        return self.name.lower()

    @classmethod
    def of(cls, word: str) -> Until:
        """From its word."""
        return cls[word.upper()]


PHASES = tuple(u.word for u in Until)  # an epoch that goes until X runs the phases up to X


def phases(until: str) -> tuple[str, ...]:
    """The phases of an epoch that goes ``until``, in order."""
    return PHASES[: Until.of(until) + 1]


@dataclass(frozen=True)
class Cell:
    """A single (system, dataset, model, parameters) combination.

    ``fanouts`` go from the seeds outwards, -1 is all neighbours; without any a batch is its seeds,
    and an epoch gathers their rows. ``until`` is how far an epoch goes: ``sample``, ``memory_io``
    or ``compute``; without compute ``model`` is ``""`` and ``hidden`` and ``learning_rate`` are 0.
    ``device`` is ``cpu`` or ``cuda``. ``recipe`` is the system's resolved recipe as plain values,
    stage by stage (``{"sampler": {"name": "fused-map", ...}, ...}``), without the stages that
    ``until`` leaves out; of a system with an epoch loop of its own (``composed`` is false) its
    options. ``max_batches`` limits an epoch to its first batches (0: the whole epoch); a row says
    so. ``replica`` tells equal cells apart that are to be measured against one another. ``env``
    names the Python environment that the worker runs in, "" the run's own. ``gpus``: of a process;
    several are ranks of a schedule, and the grid refuses them. ``evaluate``: after each epoch the
    model is evaluated over ``sampled`` neighbours (by the fanouts) or ``all``, "" not at all.
    ``jitter``: a seed by which the first weights differ by float32 rounding, 0 for none.
    """

    experiment: str
    system: str
    dataset: str
    model: str
    until: str = Until.COMPUTE.word
    device: str = "cpu"
    batch_size: int = 1024
    fanouts: tuple[int, ...] = (15, 10, 5)
    hidden: int = 64
    learning_rate: float = 0.003
    seed: int = 0
    threads: int = 0
    max_batches: int = 0
    recipe: dict[str, Any] = field(default_factory=dict)
    composed: bool = True
    replica: int = 0
    env: str = ""
    evaluate: str = ""
    gpus: int = 1
    jitter: int = 0

    @cached_property  # every look at a sample asks for it
    def id(self) -> str:
        """Content hash of the work, 12 hex digits: not of the experiment that asks for it.

        What a composed system does is in its recipe, so that equal recipes are one cell under
        whatever name.
        """
        values = asdict(self)
        del values["experiment"]
        # Ids are those of runs that knew none of these.
        later = {"env": "", "evaluate": "", "gpus": 1, "jitter": 0}
        for name, unsaid in later.items():
            if values[name] == unsaid:
                del values[name]
        if self.composed:
            del values["system"]
        text = json.dumps(values, sort_keys=True, default=list)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def who(self) -> str:
        """The system, and its environment where that is another."""
        return f"{self.system} env={self.env}" if self.env else self.system

    @property
    def goes_until(self) -> Until:
        """``until`` as a value that compares."""
        return Until.of(self.until)

    @property
    def gathers(self) -> bool:
        """Whether an epoch gathers the rows of its seeds, and nothing else."""
        return not self.fanouts

    @property
    def trains(self) -> bool:
        """Whether an epoch computes."""
        return self.goes_until is Until.COMPUTE

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Cell:
        """Inverse of ``asdict``."""
        return cls(**{**values, "fanouts": tuple(values["fanouts"])})


def flat(recipe: dict[str, Any]) -> dict[str, Any]:
    """A resolved recipe by paths: ``{"sampler": "fused-map", "sampler.pick": "floyd", ...}``.

    A field that is a stage is told as a stage is: ``"features.table": "cache"``, then
    ``"features.table.ratio": 0.1``.
    """
    found: dict[str, Any] = {}
    for stage, value in recipe.items():
        if not isinstance(value, dict):
            found[stage] = value
            continue
        fields = flat({k: v for k, v in value.items() if k != "name"})
        found[stage] = value["name"]
        found |= {f"{stage}.{k}": v for k, v in fields.items()}
    return found
