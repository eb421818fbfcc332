"""A cell of an experiment: all settings that decide what a worker runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from functools import cached_property
from typing import TypedDict

from gnnbench.core.precision import FLOAT32


class Until(IntEnum):
    """The last phase of an epoch; each includes the phases before it."""

    SAMPLE = 0
    MEMORY_IO = 1
    COMPUTE = 2

    @property
    def word(self) -> str:
        """Spelling in definitions and tables: ``sample``, ``memory_io``, ``compute``."""
        return self.name.lower()

    @classmethod
    def of(cls, word: str) -> Until:
        """From its spelling. Raises ``KeyError`` for an unknown one."""
        return cls[word.upper()]


PHASES = tuple(u.word for u in Until)  # in order


def phases(until: str) -> tuple[str, ...]:
    """The phases up to and including ``until``, in order."""
    return PHASES[: Until.of(until) + 1]


# Metadata of fields added after the first ids: ids omit them at their default, so that earlier ids
# stay valid. Every new field of a cell or stage carries it.
ADDED: Mapping[str, bool] = {"added": True}
IMPLEMENTATION = "implementation"  # key of a stage's number in a recipe; 1 is omitted

# Spellings that ids hash. Values never change; where a name in the code changes, change the key.
SPELLED: Mapping[str, str] = {
    "system": "system", "dataset": "dataset", "model": "model", "until": "until",
    "device": "device", "batch_size": "batch_size", "fanouts": "fanouts", "hidden": "hidden",
    "learning_rate": "learning_rate", "seed": "seed", "threads": "threads",
    "max_batches": "max_batches", "recipe": "recipe", "composed": "composed",
    "replica": "replica", "env": "env", "evaluate": "evaluate", "gpus": "gpus",
    "jitter": "jitter", "dropout": "dropout", "precision": "precision",
}  # fmt: skip
# Names and values whose spelling differs from the hashed one: ``KIND`` of a stage, ``KIND=NAME``,
# ``KIND.FIELD`` and ``KIND.FIELD=VALUE`` (a stage inside a stage counts as its kind), and
# ``FIELD=VALUE`` of a cell. ``{"order=default": "as-drawn"}`` renames a stage and keeps its ids.
RENAMED: Mapping[str, str] = {}


class CellValues(TypedDict):
    """The fields of a :class:`Cell`, as a JSON object."""

    experiment: str
    system: str
    dataset: str
    model: str
    until: str
    device: str
    batch_size: int
    fanouts: tuple[int, ...]
    hidden: int
    learning_rate: float
    seed: int
    threads: int
    max_batches: int
    recipe: dict[str, object]
    composed: bool
    replica: int
    env: str
    evaluate: str
    gpus: int
    jitter: int
    dropout: float
    precision: str


@dataclass(frozen=True)
class Cell:
    """A single (system, dataset, model, parameters) combination.

    ``fanouts``      from the seeds outwards; -1 is all neighbours. Empty: an epoch gathers the rows
                     of its seeds.
    ``until``        last phase: ``sample``, ``memory_io`` or ``compute``. Without compute ``model``
                     is ``""``, and ``hidden`` and ``learning_rate`` are 0.
    ``device``       ``cpu`` or ``cuda``
    ``recipe``       the resolved recipe as plain values, by stage
                     (``{"sampler": {"name": "fused-map", ...}, ...}``), without stages of phases
                     after ``until``. For a system with a custom epoch loop (``composed`` is false):
                     its options.
    ``max_batches``  batches after which an epoch stops; 0 runs the whole epoch
    ``replica``      distinguishes equal cells that are compared with each other
    ``env``          Python environment of the worker; ``""`` is the environment of the run
    ``gpus``         GPUs of a process; ranks of a schedule are separate processes
    ``evaluate``     neighbours for the evaluation after each epoch: ``sampled`` (by the fanouts) or
                     ``all``; ``""`` skips it
    ``dropout``      share of the hidden values that a training step sets to 0
    ``jitter``       seed of a rounding error added to the initial weights; 0 adds none
    ``precision``    of the model's matrix products: ``float32``, ``tf32`` or ``bfloat16``
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
    recipe: dict[str, object] = field(default_factory=dict)
    composed: bool = True
    replica: int = 0
    env: str = field(default="", metadata=ADDED)
    evaluate: str = field(default="", metadata=ADDED)
    gpus: int = field(default=1, metadata=ADDED)
    jitter: int = field(default=0, metadata=ADDED)
    dropout: float = field(default=0.0, metadata=ADDED)
    precision: str = field(default=FLOAT32, metadata=ADDED)

    @cached_property  # computed once, because each sample reads it
    def id(self) -> str:
        """Content hash of the work, 12 hex digits; the experiment's name is not part of it.

        Systems with equal recipes have the same id, whatever their names.
        """
        return hashlib.sha256(self.hashed_text.encode()).hexdigest()[:12]

    @property
    def hashed_text(self) -> str:
        """The JSON text whose hash is the id, in the spellings of ``SPELLED`` and ``RENAMED``."""
        hashed: dict[str, object] = {}
        for known in fields(self):
            value = getattr(self, known.name)
            if known.name == "experiment" or (known.name == "system" and self.composed):
                continue
            if value == known.default and ADDED.items() <= known.metadata.items():
                continue
            if known.name == "recipe":
                hashed[SPELLED[known.name]] = {
                    _spelled(kind, kind): _frozen(kind, one) for kind, one in value.items()
                }
            else:
                hashed[SPELLED[known.name]] = _frozen(known.name, value)
        return json.dumps(hashed, sort_keys=True, default=list)

    def stage(self, kind: str) -> Mapping[str, object] | None:
        """Name and options of a stage; None where the recipe has no such stage."""
        stage = self.recipe.get(kind)
        return stage if isinstance(stage, Mapping) else None

    def stage_name(self, kind: str) -> str:
        """Name of a stage; "" where the recipe has no such stage."""
        return self.setting(kind, "name")

    def setting(self, kind: str, name: str) -> str:
        """Text of a stage's option; "" where the recipe lacks the stage or the option."""
        stage = self.stage(kind)
        return "" if stage is None else str(stage.get(name, ""))

    @property
    def who(self) -> str:
        """The system's name, and its environment unless it is the run's."""
        return f"{self.system} env={self.env}" if self.env else self.system

    @property
    def goes_until(self) -> Until:
        """``until`` as an ordered value."""
        return Until.of(self.until)

    @property
    def gathers(self) -> bool:
        """Whether an epoch only gathers the rows of its seeds."""
        return not self.fanouts

    @property
    def trains(self) -> bool:
        """Whether an epoch includes compute."""
        return self.goes_until is Until.COMPUTE

    @classmethod
    def from_json(cls, values: CellValues) -> Cell:
        """Inverse of ``asdict``, whose fanouts JSON turns into a list."""
        return replace(cls(**values), fanouts=tuple(values["fanouts"]))


def _spelled(path: str, name: str) -> str:
    """A name as ids spell it, by its path."""
    return RENAMED.get(path, name)


def _frozen(path: str, value: object) -> object:
    """The value of a field or stage as ids spell it; ``path`` is ``KIND`` or ``KIND.FIELD``."""
    if not RENAMED:  # as spelled now; thousands of cells are hashed
        return value
    if isinstance(value, str):
        return _spelled(f"{path}={value}", value)
    if not isinstance(value, dict) or "name" not in value:
        return value
    kind = path.partition(".")[0]
    stage: dict[str, object] = {"name": _frozen(kind, value["name"])}
    for key, inner in value.items():
        if key != "name":
            stage[_spelled(f"{kind}.{key}", key)] = _frozen(f"{kind}.{key}", inner)
    return stage


def implementations(recipe: Mapping[str, object]) -> dict[str, int]:
    """Implementation numbers other than 1, by the path of the stage: ``{"features.table": 2}``."""
    numbers: dict[str, int] = {}
    for path, value in recipe.items():
        if isinstance(value, Mapping):
            inner = {k: v for k, v in value.items() if k != "name"}
            if IMPLEMENTATION in inner:
                numbers[path] = inner.pop(IMPLEMENTATION)
            numbers |= {f"{path}.{k}": v for k, v in implementations(inner).items()}
    return numbers


def settings(stage: Mapping[str, object]) -> dict[str, object]:
    """The fields of a stage in a recipe, without its name and its implementation number."""
    return {k: v for k, v in stage.items() if k not in ("name", IMPLEMENTATION)}


def flat(recipe: Mapping[str, object]) -> dict[str, object]:
    """A resolved recipe by paths: ``{"sampler": "fused-map", "sampler.pick": "floyd", ...}``.

    A nested stage is listed like a stage: ``"features.table": "cache"``, then
    ``"features.table.ratio": 0.1``. Implementation numbers are omitted.
    """
    by_path: dict[str, object] = {}
    for stage, value in recipe.items():
        if not isinstance(value, dict):
            by_path[stage] = value
            continue
        by_path[stage] = value["name"]
        by_path |= {f"{stage}.{k}": v for k, v in flat(settings(value)).items()}
    return by_path
