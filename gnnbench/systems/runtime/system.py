"""What a system offers to the harness."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, ClassVar, TypedDict

from gnnbench.core import names
from gnnbench.core.cell import Cell
from gnnbench.core.errors import UnsupportedError, UsageError, setting
from gnnbench.core.missing import Missing
from gnnbench.core.option import Option

if TYPE_CHECKING:  # keeps torch out of the listing of systems, and imports of a worker few
    from gnnbench.datasets.graph import Graph
    from gnnbench.measure.kernels import KernelRow
    from gnnbench.measure.timeline import Timeline
    from gnnbench.schema.reports import GateDetails


class FactRow(TypedDict):
    """A number that belongs to a cell, not to an epoch; with its samples if it is their mean."""

    stage: str
    name: str
    value: float
    where: str
    samples: Sequence[float]


class StageRow(TypedDict, total=False):
    """A row of ``stages.csv`` without the cell's id; medians per batch."""

    stage: str
    hop: int | None
    batches: int
    host_s: float
    device_s: float | None
    nodes: int
    edges: int
    block_bytes: int | None
    extra_bytes: int
    extra_ratio: float


class CurveRow(TypedDict):
    """A row of ``curves.csv`` without the cell's id; ``ratio`` is the cache's size."""

    policy: str
    ratio: float
    hit_ratio: float
    missed_bytes: float


class ProfileTables(TypedDict, total=False):
    """What ``System.profile`` may return, by table."""

    stages: list[StageRow]
    kernels: list[KernelRow]
    curves: list[CurveRow]
    facts: list[FactRow]


def _no_details() -> GateDetails:
    return {}


@dataclass
class CheckReport:
    """Outcome of the correctness gate, which runs before anything is timed.

    ``digest`` is the SHA-256 over the sampled (destination, position) multisets of the gate's
    batches, hop by hop, or "" for a foreign sampler. ``edges_per_seed`` and ``nodes_per_seed`` are
    means over the gate's batches; ``law`` names the inclusion law of the picks
    (``without-replacement`` ...). Comparisons derive their work class from these. ``verified``:
    gnnbench's own gate checked the work; False where a system answers for itself.
    ``dtype`` is that of features, weights and activations, "" where there are none.
    ``counts`` are rows of (stage, measure, where, value), of what else was counted and measured.
    ``deterministic``: whether a repeated training step gives the same bits; None: not checked.
    """

    ok: bool
    reason: str
    pick: str
    frontier: str
    law: str
    digest: str
    edges_per_seed: float
    nodes_per_seed: float
    details: GateDetails = field(default_factory=_no_details)
    verified: bool = False
    dtype: str = ""
    deterministic: bool | None = None
    counts: list[list[str | float]] = field(default_factory=list)

    def to_json(self) -> dict[str, object]:
        """Return plain values for the worker's answer."""
        return asdict(self)


@dataclass
class EpochReport:
    """Outcome of an audit of the last epoch. Counts are sums over its batches.

    ``counts`` are rows of (stage, measure, where, value). ``loss`` is the mean over the batches;
    None without compute and, for a recipe, where no seed has a label. ``param_norm`` is the
    Frobenius norm of all parameters after the epoch, ``param_moved`` how far the epoch moved those
    of each layer; None and empty where the system does not report them. ``peak_alloc_bytes`` is the
    peak of the device's allocator so far. ``digests`` are those of the edges of batches that were
    checked, by number in the epoch; ``digest`` is that of all. ``ok`` and ``reason``: whether every
    timed batch passed.
    """

    epoch: int
    batches: int
    seeds: int
    sampled_edges: int
    unique_nodes: int
    loss: float | None
    counts: list[list[str | float]] = field(default_factory=list)
    peak_alloc_bytes: int = 0
    ok: bool = True
    reason: str = ""
    digest: str = ""
    digests: dict[int, str] = field(default_factory=dict)
    param_norm: float | None = None
    param_moved: list[float] = field(default_factory=list)

    def to_json(self) -> dict[str, object]:
        """Return plain values for the worker's answer."""
        return asdict(self)


class System(ABC):
    """A system with a custom epoch loop, on one graph.

    Most systems are recipes (``gnnbench.systems.runtime.recipe``) and need none of this. A system
    of this kind runs as well, but the suite cannot check its work: its rows say ``unverified``.

    A worker process constructs the object, calls ``setup`` and ``check``, then ``run_epoch``
    followed by ``audit`` any number of times (the same epoch number may come twice), ``recheck`` in
    between, and ``close``. The harness reads the clock around ``run_epoch``, once all devices and
    threads are idle. Errors raised: ``UsageError`` for an unknown setting, ``UnsupportedError`` for
    one that the system cannot do, ``MissingError`` for a backend that is not installed.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    devices: ClassVar[tuple[str, ...]] = ("cpu",)
    stand_in: ClassVar[str] = ""  # system to run instead when this one is missing and was not named
    options: ClassVar[dict[str, Option]] = {}
    # What setup took and what it allocated: rows of (stage, measure, where, value).
    setup_counts: Sequence[list[str | float]] = ()
    needs_graph: ClassVar[bool] = True  # False: the worker opens no dataset and passes None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not hasattr(cls, "name"):
            cls.name = cls.__name__

    def __init__(self, cell: Cell, graph: Graph) -> None:
        self.cell = cell
        self.graph = graph

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """Return what the system lacks to run on ``device`` of this machine; must be cheap."""
        return None

    @classmethod
    def resolved(cls, settings: Mapping[str, object]) -> dict[str, object]:
        """Return all options with their defaults. Raises ``UsageError`` for an unknown one."""
        for option, value in settings.items():
            with setting(option):
                if option not in cls.options:
                    known = names.suggestion(option, cls.options)
                    raise UsageError(f"system '{cls.name}' has no setting '{option}'; {known}")
                cls.options[option].check(cls.name, value)
        return {k: settings.get(k, o.default) for k, o in cls.options.items()}

    @abstractmethod
    def setup(self) -> None:
        """Build the sampler, the feature store, the model and the optimizer."""

    @abstractmethod
    def check(self) -> CheckReport:
        """Run the correctness gate; wrong results are reported, not raised."""

    @abstractmethod
    def run_epoch(self, epoch: int, timeline: Timeline) -> None:
        """Run one epoch, with a span of ``timeline`` for every phase of a batch.

        The epoch's time comes from another timeline, which the system does not see. A phase of
        ``cell.until`` without a span is a fault, and so is a span of any other phase. Work outside
        all spans makes the measurement unreliable where a phase's time is the primary metric.
        """

    @abstractmethod
    def audit(self, epoch: int) -> EpochReport:
        """Count and check what the last ``run_epoch`` did; not timed."""

    def glance(self) -> tuple[str, str]:
        """Check the gate's first seeds again, in every process of a cell that passed its gate.

        Returns the digest of their edges, which must equal that of the first process ("" for a
        sampler with its own random numbers), and what is wrong, or "".
        """
        return "", ""

    def recheck(self, epoch: int, brief: bool = False) -> str:
        """Check after timing what the gate checked, on the seeds of ``epoch``, which has not run.

        ``brief``: one batch is enough. Returns what is wrong, or "".
        """
        return ""

    def verify(self, epoch: int, timeline: Timeline) -> EpochReport:
        """Run an epoch as ``run_epoch`` does, and check all of its batches; it is not measured.

        The stages cannot distinguish it from a timed epoch. A custom epoch loop shows no batches:
        the epoch runs, so that the model has seen it, and is audited.
        """
        self.run_epoch(epoch, timeline)
        return self.audit(epoch)

    def probe(self, epochs: Sequence[int]) -> tuple[dict[str, list[float]], str]:
        """Run the phases of ``epochs`` one by one, after timing.

        Returns seconds of each phase by batch, and what is wrong with a batch, or "". Nothing for a
        custom epoch loop, whose phases cannot be run separately.
        """
        return {}, ""

    def evaluate(self) -> dict[str, float]:
        """Evaluate the model on validation and test nodes; never timed.

        Returns ``val_accuracy`` and ``test_accuracy`` in [0, 1], over ``val_nodes`` and
        ``test_nodes``. Raises ``UnsupportedError`` for a custom epoch loop.
        """
        raise UnsupportedError(f"system '{self.cell.system}' shows no model to be evaluated")

    def profile(self, epoch: int) -> ProfileTables:
        """Profile an epoch that has not run, apart from timing.

        Called once for cells that only sample, or that load through a cache. Columns are those of
        ``gnnbench.schema``, without the cell's id.
        """
        return {}

    def stuck(self, error: BaseException) -> None:  # noqa: B027
        """Report, from any thread, that the work in progress cannot end, because of ``error``.

        The system calls it. A worker replaces it by a function that ends the process.
        """

    def close(self) -> None:  # noqa: B027
        """Free what ``setup`` allocated."""
