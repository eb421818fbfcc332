"""What a system offers to the runner."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from gnnbench.cell import Cell
from gnnbench.errors import UsageError

if TYPE_CHECKING:  # keeps torch out of the listing of systems
    from gnnbench.data.graph import Graph


@dataclass(frozen=True)
class Missing:
    """Why a system cannot run here, and the exact way to get what is missing."""

    reason: str
    fix: str


@dataclass
class CheckReport:
    """Outcome of the correctness gate, taken before anything is timed.

    ``digest`` is the SHA-256 over the sampled (destination, position) multisets of the gate's
    batches, hop by hop, or "" for a foreign sampler. ``edges_per_seed`` and ``nodes_per_seed`` are
    means over the gate's batches; ``law`` names the inclusion law of the picks
    (``without-replacement`` ...). Comparisons derive their work class from these.
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

    def to_json(self) -> dict[str, Any]:
        """Plain values for the worker's answer."""
        return asdict(self)


@dataclass
class EpochSample:
    """One measured epoch. Times in seconds, memory in bytes, counts summed over the batches.

    ``wall_s`` is measured around the whole epoch, never a sum of phases. ``phases_s`` holds
    ``sample``, ``memory_io`` and ``compute``. Without a model (``none``) it holds ``sample`` alone,
    the wall time of the sampler's calls; ``loss`` is None then, and on a GPU ``device_s`` is the
    time between events around these calls. ``ok`` and ``reason`` tell whether the edge count of
    every timed batch was right, recounted after the clock stopped.
    """

    epoch: int
    wall_s: float
    phases_s: dict[str, float]
    batches: int
    seeds: int
    sampled_edges: int
    unique_nodes: int
    feature_bytes: dict[str, int]
    h2d_bytes: int
    loss: float | None
    peak_alloc_bytes: int
    ok: bool = True
    reason: str = ""
    device_s: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values for the worker's answer."""
        return asdict(self)


class System(ABC):
    """A published system, wired together from stages, on one graph.

    Life of an object inside a worker process: constructed, ``setup``, ``check``, then ``run_epoch``
    any number of times (the same epoch number may come twice), ``recheck`` in between, ``close``.
    The harness holds its own clock against ``wall_s``: a system that recounts within ``run_epoch``
    calls ``clock_stopped`` first. Errors raised:
    ``UsageError`` for a setting that the system does not know, ``UnsupportedError`` for one that it
    cannot do, ``MissingError`` for a backend that is not there.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    devices: ClassVar[tuple[str, ...]]
    stand_in: ClassVar[str] = ""  # system to run instead when this one is missing and was not named
    options: ClassVar[dict[str, str]] = {}  # option name -> one line of help
    option_values: ClassVar[dict[str, tuple[Any, ...]]] = {}  # option name -> what it may be
    needs_graph: ClassVar[bool] = True  # False: the worker opens no dataset and passes None

    def __init__(self, cell: Cell, graph: Graph) -> None:
        self.cell = cell
        self.graph = graph
        self.on_clock_stopped: Callable[[], None] | None = None

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """None where the system can run on this machine's ``device``; must be cheap."""
        return None

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Raise ``UsageError`` for an option that is not there or a value that it cannot take."""
        for option, value in options.items():
            if option not in cls.options:
                known = ", ".join(cls.options) or "none"
                raise UsageError(f"system '{cls.name}' has no option '{option}'; it has: {known}")
            allowed = cls.option_values.get(option, (value,))
            if not any(type(value) is type(a) and value == a for a in allowed):
                choice = ", ".join(json.dumps(a).strip('"') for a in allowed)
                raise UsageError(
                    f"option '{option}' of system '{cls.name}' cannot be '{value}';"
                    f" it is one of: {choice}"
                )

    @abstractmethod
    def setup(self) -> None:
        """Build the sampler, the feature store, the model and the optimizer."""

    @abstractmethod
    def check(self) -> CheckReport:
        """Run the correctness gate; never raises for wrong results, it reports them."""

    @abstractmethod
    def run_epoch(self, epoch: int) -> EpochSample:
        """Train one epoch and measure it."""

    def recheck(self, epoch: int) -> str:
        """Check again what the gate checked, after timing, on the seeds of ``epoch``.

        Returns what is wrong, or "". ``epoch`` has not been run.
        """
        return ""

    def profile(self, epoch: int) -> dict[str, list[dict[str, Any]]]:
        """A look inside an epoch's samples, apart from the timing; ``epoch`` has not been run.

        Returns rows of ``stages`` and of ``kernels`` (columns as in ``gnnbench.results.schema``,
        without the cell's id), or nothing. Asked of cells without a model once they are measured.
        """
        return {}

    def clock_stopped(self) -> None:
        """To be called in ``run_epoch`` when its clock has stopped and before anything else.

        What follows (counting again) is then no part of the epoch for the harness's clock either.
        """
        if self.on_clock_stopped is not None:
            self.on_clock_stopped()

    def close(self) -> None:  # noqa: B027
        """Give back what ``setup`` took."""
