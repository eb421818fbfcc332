"""What workers report about a cell, once per run. Workers import this module on Python 3.10."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from gnnbench.schema.cell_internals import CurveRow, KernelRow, StageRow
from gnnbench.schema.roofline import RooflineRow

CountRow = list["str | float"]  # (stage, measure, where, value)


class GraphFacts(TypedDict, total=False):
    """Sizes of a graph, as rows of ``cells.csv`` have them."""

    nodes: int
    edges: int
    train_nodes: int
    feature_dim: int
    features: str


class SetupAnswer(TypedDict):
    """Seconds of the set-up without ``import_s``, what was counted, versions of packages."""

    seconds: float
    import_s: float
    counts: list[CountRow]
    versions: dict[str, str]


class GateDetails(TypedDict, total=False):
    """What the gate checked, and how far results were from the reference.

    ``batches_an_update`` is 0 if it differs between updates. ``precision``: that of matrix products
    unless it is float32. ``certificate``: file of the sampler's certificate; ``uncertified``: the
    property that it fails, which makes the work ``different``.
    """

    batches: int
    seeds: int
    precision: str
    order_window: int
    batches_an_update: int
    edges_by_call: list[int]
    forward_error: float
    backward_error: float
    weight_gradients: int
    step_error: float
    certificate: str
    uncertified: str


class CheckAnswer(TypedDict):
    """A ``CheckReport`` of the correctness gate, and how long the gate took."""

    ok: bool
    reason: str
    pick: str
    frontier: str
    law: str
    digest: str
    edges_per_seed: float
    nodes_per_seed: float
    details: GateDetails
    verified: bool
    dtype: str
    deterministic: bool | None
    counts: list[CountRow]
    seconds: float


class FirstBatchAnswer(TypedDict):
    """Digest of the edges of the gate's first batch; what is wrong with it, or ""."""

    digest: str
    reason: str


class CellReport(TypedDict, total=False):
    """Reports about a cell so far. ``open_s`` and ``import_s`` are those of ``OpenAnswer``."""

    facts: GraphFacts
    open_s: float
    import_s: float
    setup: SetupAnswer
    check: CheckAnswer
    glance: FirstBatchAnswer


@dataclass(frozen=True)
class ProfileFact:
    """A number of a profiling process; ``samples`` are what it is the mean of, if anything."""

    stage: str
    name: str
    value: float
    where: str = ""
    samples: Sequence[float] = ()


@dataclass(frozen=True)
class Profile:
    """Tables of a cell's profiling processes; ``error`` where one failed.

    Rows have no cell yet. ``counters`` have a kernel and its hardware counters.
    """

    stages: Sequence[StageRow] = ()
    kernels: Sequence[KernelRow] = ()
    curves: Sequence[CurveRow] = ()
    facts: Sequence[ProfileFact] = ()
    counters: Sequence[RooflineRow] = ()
    error: str = ""

    @classmethod
    def parse(cls, tables: Mapping[str, Any]) -> Profile:
        """The tables of a profile event."""
        return cls(
            [StageRow(**row) for row in tables.get("stages", ())],
            [KernelRow(**row) for row in tables.get("kernels", ())],
            [CurveRow(**row) for row in tables.get("curves", ())],
            [ProfileFact(**row) for row in tables.get("facts", ())],
            [RooflineRow(**row) for row in tables.get("counters", ())],
            tables.get("error", ""),
        )
