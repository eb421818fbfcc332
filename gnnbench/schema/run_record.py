"""What ``run.json`` must look like where it is read: the types of its keys."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gnnbench.core.errors import UsageError

Table = dict[str, Any]


class _Open(BaseModel):
    """A table of which only the keys that are read are checked."""

    model_config = ConfigDict(extra="allow", strict=True)


class _Gpu(_Open):
    name: str
    memory_bytes: float


class _Machine(_Open):
    cores_usable: int | None = None
    cpu: str | None = None
    memory_bytes: float | None = None
    gpus: list[_Gpu] | None = None


class _Revision(_Open):
    git_revision: str | None = None
    git_dirty: bool | None = None
    source_digest: str | None = None


class _Busy(_Open):
    seconds: float = Field(default=0.0, ge=0)
    cpu_s: dict[str, float] = {}
    foreign_cpu_s: float = 0.0
    foreign_s: float = Field(default=0.0, ge=0)


class _Measure(_Open):
    max_batches: int = 0


class _Experiment(_Open):
    name: str = ""
    title: str = ""
    figures: list[str] = []
    compare: list[list[str]] = []
    measure: _Measure = _Measure()


class _Point(_Open):
    values: Table
    cells: list[str]


class Record(_Open):
    """The keys of ``run.json`` that are read; any of them may be absent."""

    experiment: _Experiment = _Experiment()
    machine: _Machine = _Machine()
    machine_id: str | None = None
    revision: _Revision = _Revision()
    versions: dict[str, str | None] = {}
    environments: Table = {}
    sweeps: dict[str, list[_Point]] | None = None
    busy: _Busy | None = None
    notes: list[str] | None = None
    command: str | None = None
    profile: str | None = None
    started: str = ""
    finished: bool | None = None
    work: list[Table] = []
    distdgl_partitions: Table = {}


def check(found: Table, path: object) -> None:
    """Raise ``UsageError``, which names the key, for a record with a value of the wrong type."""
    try:
        Record.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"'{path}' is damaged: '{where}' is {str(first.get('input'))[:60]!r}"
            f" ({first['msg'].lower()}); give the folder of another run"
        ) from None
