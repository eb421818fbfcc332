"""``run.json`` as it is written; ``gnnbench.schema.run_record`` has the model that reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from pydantic import JsonValue


class RevisionJson(TypedDict):
    """The code of a run (``gnnbench.measure.machine.revision``)."""

    git_revision: str | None
    git_dirty: bool | None
    source_digest: str


class PluginJson(TypedDict):
    """A third-party package, and a digest of its sources."""

    package: str
    source_digest: str


class SweepPointJson(TypedDict):
    """Values of the swept axes, and the ids of their cells."""

    values: Mapping[str, object]
    cells: list[str]


class WorkJson(TypedDict):
    """Edges or input nodes (``of``) of a batch of gnnbench and of DistDGL, means with intervals.

    ``difference``: DistDGL's less gnnbench's as a share of it, with Welch's 95 % interval.
    """

    machines: int
    of: str
    gnnbench: Mapping[str, object]
    distdgl: Mapping[str, object]
    difference: list[float]


class DglPartitionJson(TypedDict):
    """A partition by DGL's METIS: edges that it cuts, all edges, and the nodes of each part."""

    cut: int
    edges: int
    nodes: list[int]
    training_nodes: list[int]


class IdentityJson(TypedDict):
    """Code and machine of a run."""

    revision: RevisionJson
    versions: dict[str, str | None]
    machine: Mapping[str, object]
    machine_id: str
    worker_environment: dict[str, str]
    overridden_environment: dict[str, str]


class RunJson(TypedDict, total=False):
    """All keys of ``run.json``; those of another kind of run, or of an older one, are absent."""

    experiment: dict[str, JsonValue]
    definition_hash: str
    profile: str
    revision: RevisionJson
    versions: dict[str, str | None]
    machine: Mapping[str, object]
    machine_id: str
    worker_environment: dict[str, str]
    overridden_environment: dict[str, str]
    environments: Mapping[str, Mapping[str, object]]
    plugins: dict[str, PluginJson]
    load_before: dict[str, float]
    load_after: dict[str, float]
    sweeps: Mapping[str, Sequence[SweepPointJson]]
    calibration: Sequence[Mapping[str, object]]
    started: str
    ended: str
    finished: bool
    resumed: Sequence[Mapping[str, object]]
    notes: Sequence[str]
    busy: Mapping[str, object]
    prepared: Mapping[str, object]
    held: Mapping[str, object]
    command: str
    definition: Mapping[str, object]
    work: list[WorkJson]
    distdgl_partitions: dict[str, DglPartitionJson]
