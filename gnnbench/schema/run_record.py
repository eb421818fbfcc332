"""``run.json``: where, when and from which definition a run was made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gnnbench.core.errors import UsageError


class OpenModel(BaseModel):
    """A JSON object of which only the keys that are read are checked; others are kept.

    ``in``, ``get`` and ``[...]`` see the keys that the file has.
    """

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    def __contains__(self, name: str) -> bool:
        """Whether the file has this key."""
        return name in self.model_fields_set

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a key, or ``default`` where the file has none."""
        return getattr(self, name) if name in self else default

    def __getitem__(self, name: str) -> Any:
        """The value of a key. Raises ``KeyError`` where the file has none."""
        if name not in self:
            raise KeyError(name)
        return getattr(self, name)


class GpuRecord(OpenModel):
    """A GPU of the machine."""

    name: str
    memory_bytes: int | float


class MachineRecord(OpenModel):
    """The machine of a run; a key is None where it is unknown."""

    cores_logical: int | None = None
    cores_usable: int | None = None
    cpu: str | None = None
    memory_bytes: int | float | None = None
    gpus: list[GpuRecord] | None = None


class RevisionRecord(OpenModel):
    """The code of a run."""

    git_revision: str | None = None
    git_dirty: bool | None = None
    source_digest: str | None = None


class BusyRecord(OpenModel):
    """Other programs that used cores during the measurements.

    ``foreign_s`` and ``foreign_cpu_s``: length of the disturbed rounds, and CPU time of others in
    them; ``seconds`` and ``cpu_s``: length of the observation, and CPU time by program.
    """

    seconds: float = Field(default=0.0, ge=0)
    cpu_s: dict[str, float] = {}
    foreign_cpu_s: float = 0.0
    foreign_s: float = Field(default=0.0, ge=0)


class MeasureRecord(OpenModel):
    """Section ``measure`` of the definition."""

    max_batches: int = 0


class ExperimentRecord(OpenModel):
    """The resolved definition of a run."""

    name: str = ""
    title: str = ""
    figures: list[str] = []
    compare: list[list[str]] = []
    measure: MeasureRecord = MeasureRecord()


class SweepPoint(OpenModel):
    """Values of the swept axes, and the ids of their cells."""

    values: dict[str, Any]
    cells: list[str]


class EnvironmentRecord(OpenModel):
    """A Python environment of ``--env``."""

    versions: dict[str, str | None] = {}


class BatchesRecord(OpenModel):
    """A mean over batches; ``n`` is their number."""

    n: int


class WorkRecord(OpenModel):
    """Whether DistDGL's batches are as large as gnnbench's; see ``WorkJson``."""

    machines: int
    of: str
    gnnbench: BatchesRecord
    distdgl: BatchesRecord
    difference: list[float]


class PartitionRecord(OpenModel):
    """A partition by DGL's METIS: edges that it cuts, and all edges."""

    cut: int
    edges: int


class RunRecord(OpenModel):
    """``run.json``. Any key may be absent: then its default is read."""

    experiment: ExperimentRecord = ExperimentRecord()
    definition_hash: str | None = None
    machine: MachineRecord = MachineRecord()
    machine_id: str | None = None
    revision: RevisionRecord = RevisionRecord()
    versions: dict[str, str | None] = {}
    environments: dict[str, EnvironmentRecord] = {}
    sweeps: dict[str, list[SweepPoint]] | None = None
    busy: BusyRecord | None = None
    notes: list[str] | None = None
    command: str | None = None
    profile: str | None = None
    started: str = ""
    finished: bool | None = None
    work: list[WorkRecord] = []
    distdgl_partitions: dict[str, PartitionRecord] = {}

    @property
    def definition(self) -> dict[str, Any]:
        """The resolved definition as ``run.json`` has it."""
        return self.experiment.model_dump(exclude_unset=True)

    @property
    def repeat_command(self) -> str:
        """The command that repeats the run."""
        if self.command:
            return self.command
        profile = f" --profile {self.profile}" if self.profile else ""
        return f"gnnbench run {self.experiment.name}{profile}"


def parse(content: Any, path: Path) -> RunRecord:
    """Validate a record. Raises ``UsageError``, which names the key, for a wrong type."""
    try:
        return RunRecord.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"'{path}' is damaged: '{where}' is {str(first.get('input'))[:60]!r}"
            f" ({first['msg'].lower()}); give the folder of another run"
        ) from None
