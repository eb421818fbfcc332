"""Messages between the harness and a worker process: JSON objects, one a line.

A command has ``op`` and its arguments. Its answer is ``{"ok": true, "result": ...}``, or
``{"ok": false, "status": ..., "reason": ...}`` (``gnnbench.harness.failures.Failure``). The types
below are those of ``result``. Workers import this module on Python 3.10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypedDict, TypeVar

if TYPE_CHECKING:
    from gnnbench.datasets.store.seal import Stamp
    from gnnbench.measure.kernels import KernelRow
    from gnnbench.roofline.counters import CounterRecord
    from gnnbench.schema.reports import (
        CheckAnswer,
        CountRow,
        FirstBatchAnswer,
        GraphFacts,
        SetupAnswer,
    )
    from gnnbench.schema.roofline import RooflineRecord
    from gnnbench.systems.runtime.system import CurveRow, FactRow, StageRow

A = TypeVar("A")

STOPPED = b"stopped\n"  # sent before the answer of ``epoch``, when the epoch's work has ended
EPOCH_NUMBERS = 2**30  # timed epochs have random numbers below this


class Command(str, Generic[A]):
    """Name of a command; ``A`` is the type of its answer."""

    __slots__ = ()


class GraphLocation(TypedDict, total=False):
    """Where a worker maps a graph that the run has prepared.

    ``made``: arrays that have no file. ``shared``: addresses of arrays in shared memory.
    """

    folder: str
    verified: Stamp
    made: list[str]
    shared: dict[str, str]


class PreparationFacts(TypedDict, total=False):
    """Costs of preparing a dataset: seconds, and the process's peaks of memory (bytes)."""

    seconds: float
    peak_rss_bytes: int
    peak_gpu_bytes: int


class PrepareAnswer(TypedDict, total=False):
    """``graph`` and ``facts``, or ``error`` and ``exit_code`` of a ``GnnbenchError``."""

    graph: GraphLocation
    facts: PreparationFacts
    error: str
    exit_code: int


class ArrayFacts(TypedDict):
    """An array in shared memory: its size, the part in huge pages, seconds to fill it."""

    bytes: int
    huge_bytes: int
    seconds: float


class CopyToMemoryAnswer(TypedDict):
    """Addresses and facts of arrays in shared memory, by array."""

    shared: dict[str, str]
    facts: dict[str, ArrayFacts]


class OpenAnswer(TypedDict):
    """Facts of the graph; seconds from the process's start, without ``import_s`` of frameworks."""

    facts: GraphFacts
    open_s: float
    import_s: float


class EpochAnswer(TypedDict):
    """An epoch's times in seconds (``gnnbench.measure.timeline.Sweep``).

    ``outer_s`` lasts until the devices and threads were idle.
    """

    wall: float
    busy: dict[str, float]
    alone: dict[str, float]
    overlap: float
    idle: float
    outer_s: float


class TimedEpoch(EpochAnswer):
    """An epoch with the harness's own measurements (s).

    ``parent_s``: from the command to the report of the end, on the harness's clock; ``work_cpu_s``:
    CPU time of the worker and its descendants meanwhile. Run-queue delays meanwhile:
    ``runner_wait_s`` of the harness, ``worker_wait_s`` of the worker's main thread,
    ``threads_wait_s`` of all its threads until the answer.
    """

    parent_s: float
    work_cpu_s: float
    runner_wait_s: float
    worker_wait_s: float
    threads_wait_s: float


class EvaluateAnswer(TypedDict):
    """Accuracies of a model, numbers of nodes, and how long the evaluation took (s)."""

    val_nodes: int
    val_accuracy: float
    test_nodes: int
    test_accuracy: float
    evaluate_s: float


class EpochReportAnswer(TypedDict):
    """An ``EpochReport``."""

    epoch: int
    batches: int
    seeds: int
    sampled_edges: int
    unique_nodes: int
    loss: float | None
    counts: list[CountRow]
    peak_alloc_bytes: int
    ok: bool
    reason: str
    digest: str
    digests: dict[str, str]
    param_norm: float | None
    param_moved: list[float]


class AuditAnswer(EpochReportAnswer):
    """An audit's report, and the process's peak of resident memory (bytes)."""

    peak_rss_bytes: int


class CountsAnswer(TypedDict):
    """Rows of counts."""

    counts: list[CountRow]


class RooflineAnswer(TypedDict):
    """Records of kernels and of measured peaks; what is wrong with a result, or ""."""

    records: list[RooflineRecord]
    reason: str


class ProbeAnswer(TypedDict):
    """Seconds of each phase run by itself, batch by batch; what is wrong with a batch, or ""."""

    alone: dict[str, list[float]]
    reason: str


class RecheckAnswer(TypedDict):
    """What the gate's checks report after timing, or ""."""

    reason: str


class ProfileAnswer(TypedDict, total=False):
    """Tables of processes that profile and are not timed; ``error`` where one failed."""

    stages: list[StageRow]
    kernels: list[KernelRow]
    curves: list[CurveRow]
    facts: list[FactRow]
    counters: list[CounterRecord]
    error: str


class EnvironmentFacts(TypedDict):
    """Versions in an environment, and why its native library is unusable ("": it is usable)."""

    versions: dict[str, str | None]
    native: str


@dataclass(frozen=True)
class DescribeAnswer:
    """Facts of an environment (``EnvironmentFacts``), and the names of its systems."""

    versions: dict[str, str | None]
    native: str
    systems: list[str]


class PlanAnswer(TypedDict, total=False):
    """Answer of another process to a query of the plan, or the message of a ``GnnbenchError``.

    ``key`` is that of a ``SettingError``, else "".
    """

    answer: object
    error: str
    exit_code: int
    key: str


class NoAnswer(TypedDict):
    """An answer without content."""


ASK: Command[PlanAnswer] = Command("ask")
PREPARE: Command[PrepareAnswer] = Command("prepare")
COPY_TO_MEMORY: Command[CopyToMemoryAnswer] = Command("hold")
OPEN: Command[OpenAnswer] = Command("open")
SETUP: Command[SetupAnswer] = Command("setup")
CHECK: Command[CheckAnswer] = Command("check")
CHECK_FIRST_BATCH: Command[FirstBatchAnswer] = Command("glance")
FORESEE: Command[NoAnswer] = Command("foresee")
EPOCH: Command[EpochAnswer] = Command("epoch")
AUDIT: Command[AuditAnswer] = Command("audit")
EVALUATE: Command[EvaluateAnswer] = Command("evaluate")
COPIES: Command[CountsAnswer] = Command("copies")
ROOFLINE: Command[RooflineAnswer] = Command("roofline")
VERIFY: Command[EpochReportAnswer] = Command("verify")
PROBE: Command[ProbeAnswer] = Command("probe")
RECHECK: Command[RecheckAnswer] = Command("recheck")
PROFILE: Command[ProfileAnswer] = Command("profile")
MEMORY: Command[ProfileAnswer] = Command("memory")
KERNELS: Command[ProfileAnswer] = Command("kernels")
TRACE: Command[ProfileAnswer] = Command("trace")
COUNTERS: Command[ProfileAnswer] = Command("counters")
CLOSE: Command[NoAnswer] = Command("close")
