"""What a system offers to the runner."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from gnnbench.core import names
from gnnbench.core.cell import Cell
from gnnbench.core.errors import UnsupportedError, UsageError, setting
from gnnbench.core.missing import Missing
from gnnbench.core.option import Option

if TYPE_CHECKING:  # keeps torch out of the listing of systems
    from gnnbench.datasets.graph import Graph
    from gnnbench.measure.timeline import Timeline


@dataclass
class CheckReport:
    """Outcome of the correctness gate, taken before anything is timed.

    ``digest`` is the SHA-256 over the sampled (destination, position) multisets of the gate's
    batches, hop by hop, or "" for a foreign sampler. ``edges_per_seed`` and ``nodes_per_seed`` are
    means over the gate's batches; ``law`` names the inclusion law of the picks
    (``without-replacement`` ...). Comparisons derive their work class from these. ``verified`` says
    that the suite's own gate looked at the work: not so where a system answers for itself.
    ``dtype`` is that of features, weights and activations, "" where there are none.
    ``counts`` are rows of (stage, measure, where, value), of what else was counted and measured.
    ``deterministic``: whether a training step gives the same bits again; None: nobody looked.
    """

    ok: bool
    reason: str
    pick: str
    frontier: str
    law: str
    digest: str
    edges_per_seed: float
    nodes_per_seed: float
    details: dict[str, Any] = field(default_factory=dict)
    verified: bool = False
    dtype: str = ""
    deterministic: bool | None = None
    counts: list[list[Any]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Plain values for the worker's answer."""
        return asdict(self)


@dataclass
class EpochReport:
    """What an audit found of the epoch that was run last. Counts are sums over its batches.

    ``counts`` are rows of (stage, measure, where, value); ``loss`` is the mean over the batches, or
    None without compute and, of a recipe, where no seed has a label; ``param_norm`` is the
    Frobenius norm of all parameters after the epoch and ``param_moved`` how far the epoch moved
    those of each layer, None and empty where nobody tells;
    ``peak_alloc_bytes`` is the peak of the device's allocator so far. ``ok`` and ``reason`` tell
    whether every timed batch was right, looked at again.
    """

    epoch: int
    batches: int
    seeds: int
    sampled_edges: int
    unique_nodes: int
    loss: float | None
    counts: list[list[Any]] = field(default_factory=list)
    peak_alloc_bytes: int = 0
    ok: bool = True
    reason: str = ""
    digest: str = ""
    param_norm: float | None = None
    param_moved: list[float] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Plain values for the worker's answer."""
        return asdict(self)


class System(ABC):
    """A system with an epoch loop of its own, on one graph.

    Most systems are recipes (``gnnbench.systems.runtime.recipe``) and need none of this. What this
    offers runs as well, but the suite cannot vouch for its work: its rows say ``unverified``.

    Life of an object inside a worker process: constructed, ``setup``, ``check``, then ``run_epoch``
    followed by ``audit`` any number of times (the same epoch number may come twice), ``recheck`` in
    between, ``close``. The clock is the harness's: it runs around ``run_epoch`` until all devices
    and threads are quiet. Errors raised: ``UsageError`` for a setting that the system does not
    know, ``UnsupportedError`` for one that it cannot do, ``MissingError`` for a backend that is not
    there.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    devices: ClassVar[tuple[str, ...]] = ("cpu",)
    stand_in: ClassVar[str] = ""  # system to run instead when this one is missing and was not named
    options: ClassVar[dict[str, Option]] = {}
    # What setup took and what it holds: rows of (stage, measure, where, value).
    setup_counts: Sequence[list[Any]] = ()
    needs_graph: ClassVar[bool] = True  # False: the worker opens no dataset and passes None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not hasattr(cls, "name"):
            cls.name = cls.__name__

    def __init__(self, cell: Cell, graph: Graph) -> None:
        self.cell = cell
        self.graph = graph

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """None where the system can run on this machine's ``device``; must be cheap."""
        return None

    @classmethod
    def resolved(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The options with every default put in. Raises ``UsageError`` for what is not one."""
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
        """Run the correctness gate; never raises for wrong results, it reports them."""

    @abstractmethod
    def run_epoch(self, epoch: int, timeline: Timeline) -> None:
        """Run one epoch, a span of ``timeline`` for every phase of a batch.

        ``timeline`` is lent for spans alone; the epoch is read off another. A phase that
        ``cell.until`` asks for and that has no span, or a span of any other, is a fault; work in no
        span is a doubt where the time of a phase is judged.
        """

    @abstractmethod
    def audit(self, epoch: int) -> EpochReport:
        """Count and check what the last ``run_epoch`` did; no part of it is timed."""

    def glance(self) -> tuple[str, str]:
        """A look at the gate's first seeds, in every life of a cell that passed its gate.

        Returns the digest of their edges, which must be the first life's ("" of a sampler that
        draws other ones each time), and what is wrong, or "".
        """
        return "", ""

    def recheck(self, epoch: int, brief: bool = False) -> str:
        """Check again what the gate checked, after timing, on the seeds of ``epoch``.

        Returns what is wrong, or "". ``epoch`` has not been run. ``brief``: one batch is enough.
        """
        return ""

    def verify(self, epoch: int, timeline: Timeline) -> EpochReport:
        """Run an epoch as ``run_epoch`` does and look at all of its work; it is not measured.

        What runs the epoch cannot tell it from a timed one. Of an epoch loop of one's own nobody
        sees the batches: it is run, so that the model has seen it, and audited.
        """
        self.run_epoch(epoch, timeline)
        return self.audit(epoch)

    def probe(self, epochs: Sequence[int]) -> tuple[dict[str, list[float]], str]:
        """Seconds of each phase run by itself, batch by batch of ``epochs``, after timing.

        And what was wrong with the batches, or "". Of an epoch loop of one's own nobody else can
        run the phases: nothing.
        """
        return {}, ""

    def evaluate(self) -> dict[str, float]:
        """How well the model does on validation and test nodes as it stands; never timed.

        ``val_accuracy`` and ``test_accuracy`` in [0, 1] over ``val_nodes`` and ``test_nodes``. Of
        an epoch loop of one's own nobody sees the model.
        """
        raise UnsupportedError(f"system '{self.cell.system}' shows no model to be evaluated")

    def profile(self, epoch: int) -> dict[str, list[dict[str, Any]]]:
        """A look inside an epoch's samples, apart from the timing; ``epoch`` has not been run.

        Returns rows of ``stages`` and of ``kernels``, or of ``curves`` (columns as in
        ``gnnbench.schema``, without the cell's id), or nothing. Asked of cells that only
        sample or fetch through a cache, once measured.
        """
        return {}

    def stuck(self, error: BaseException) -> None:  # noqa: B027
        """For a system to call, on any thread, where the work in progress cannot end any more:
        ``error`` is why. A worker puts its own in place of this, which does nothing."""

    def close(self) -> None:  # noqa: B027
        """Give back what ``setup`` took."""
