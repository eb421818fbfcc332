"""One cell of an experiment: everything that decides what a worker runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
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


# Metadata of a field that was added after the first ids: ids leave it out at its default. Every new
# field of a cell or of a stage carries it, so that ids of earlier results stay.
ADDED: Mapping[str, bool] = {"added": True}
IMPLEMENTATION = "implementation"  # key of a stage's number in a recipe; 1 is left out

# Spellings that ids hash. They never change: where a name in the code changes, change the key.
SPELLED: Mapping[str, str] = {
    "system": "system", "dataset": "dataset", "model": "model", "until": "until",
    "device": "device", "batch_size": "batch_size", "fanouts": "fanouts", "hidden": "hidden",
    "learning_rate": "learning_rate", "seed": "seed", "threads": "threads",
    "max_batches": "max_batches", "recipe": "recipe", "composed": "composed",
    "replica": "replica", "env": "env", "evaluate": "evaluate", "gpus": "gpus",
    "jitter": "jitter",
}  # fmt: skip
# The same for names and values that differ from what ids hash: ``KIND`` of a stage, ``KIND=NAME``,
# ``KIND.FIELD`` and ``KIND.FIELD=VALUE`` (a stage inside a stage counts as its kind), and
# ``FIELD=VALUE`` of a cell. ``{"order=default": "as-drawn"}`` renames a stage and keeps its ids.
RENAMED: Mapping[str, str] = {}


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
    env: str = field(default="", metadata=ADDED)
    evaluate: str = field(default="", metadata=ADDED)
    gpus: int = field(default=1, metadata=ADDED)
    jitter: int = field(default=0, metadata=ADDED)

    @cached_property  # every look at a sample asks for it
    def id(self) -> str:
        """Content hash of the work, 12 hex digits: not of the experiment that asks for it.

        What a composed system does is in its recipe, so that equal recipes are one cell under
        whatever name.
        """
        return hashlib.sha256(self.hashed_text.encode()).hexdigest()[:12]

    @property
    def hashed_text(self) -> str:
        """The JSON text whose hash is the id, in the spellings of ``SPELLED`` and ``RENAMED``."""
        found: dict[str, Any] = {}
        for known in fields(self):
            value = getattr(self, known.name)
            if known.name == "experiment" or (known.name == "system" and self.composed):
                continue
            if ADDED.items() <= known.metadata.items() and value == known.default:
                continue
            if known.name == "recipe":
                found[SPELLED[known.name]] = {
                    _spelled(kind, kind): _frozen(kind, one) for kind, one in value.items()
                }
            else:
                found[SPELLED[known.name]] = _frozen(known.name, value)
        return json.dumps(found, sort_keys=True, default=list)

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


def _spelled(path: str, name: str) -> str:
    """A name as ids spell it, by its path."""
    return RENAMED.get(path, name)


def _frozen(path: str, value: Any) -> Any:
    """The value of a field or stage as ids spell it; ``path`` is ``KIND`` or ``KIND.FIELD``."""
    if isinstance(value, str):
        return _spelled(f"{path}={value}", value)
    if not isinstance(value, dict) or "name" not in value:
        return value
    kind = path.partition(".")[0]
    found: dict[str, Any] = {"name": _frozen(kind, value["name"])}
    for key, inner in value.items():
        if key != "name":
            found[_spelled(f"{kind}.{key}", key)] = _frozen(f"{kind}.{key}", inner)
    return found


def implementations(recipe: Mapping[str, Any]) -> dict[str, int]:
    """Implementation numbers other than 1, by the path of the stage: ``{"features.table": 2}``."""
    found: dict[str, int] = {}
    for path, value in recipe.items():
        if isinstance(value, Mapping):
            inner = {k: v for k, v in value.items() if k != "name"}
            if IMPLEMENTATION in inner:
                found[path] = inner.pop(IMPLEMENTATION)
            found |= {f"{path}.{k}": v for k, v in implementations(inner).items()}
    return found


def settings(stage: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a stage in a recipe, without its name and its implementation number."""
    return {k: v for k, v in stage.items() if k not in ("name", IMPLEMENTATION)}


def flat(recipe: dict[str, Any]) -> dict[str, Any]:
    """A resolved recipe by paths: ``{"sampler": "fused-map", "sampler.pick": "floyd", ...}``.

    A field that is a stage is listed as a stage is: ``"features.table": "cache"``, then
    ``"features.table.ratio": 0.1``. Implementation numbers are no settings and are left out.
    """
    found: dict[str, Any] = {}
    for stage, value in recipe.items():
        if not isinstance(value, dict):
            found[stage] = value
            continue
        found[stage] = value["name"]
        found |= {f"{stage}.{k}": v for k, v in flat(settings(value)).items()}
    return found
