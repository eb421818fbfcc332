"""Base classes of a recipe's sampler (spec) and of the running sampler (stage)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core.errors import UnsupportedError
from gnnbench.core.option import Option, listed
from gnnbench.core.stage import Spec, option

if TYPE_CHECKING:
    from typing import Self

    import torch
    from torch import Tensor

    from gnnbench.core.job import Job
    from gnnbench.core.minibatch import Batch, Hop
    from gnnbench.validation.law import Law

DEFAULT = "default"


@dataclass(frozen=True)
class SamplerSpec(Spec):
    """The sampler of a recipe.

    ``devices`` are the devices of cells it supports. ``picks_on`` and ``frontiers`` list the
    default first.
    """

    kind: ClassVar[str] = "sampler"
    devices: ClassVar[tuple[str, ...]] = ("cpu",)
    frontiers: ClassVar[tuple[str, ...]] = ("cumulative",)
    mini_batches: ClassVar[bool] = True  # its batches are gnnbench's ``MiniBatch``
    repeats: ClassVar[bool] = False  # drawing an epoch twice gives equal batches
    loads: ClassVar[bool] = False  # its batches fetch features, also those without hops
    pick: str = option(
        DEFAULT,
        "the pick function; default: the sampler's own on the device",
        words="default or a pick of the sampler's",
    )
    frontier: str = option(
        DEFAULT,
        "nodes that a hop expands; default: the sampler's own",
        words="default, cumulative or new",
    )

    @abstractmethod
    def picks_on(self, device: str) -> tuple[str, ...]:
        """The pick functions for a cell's device, the default first."""

    def resolved(self, device: str) -> Self:
        """Return a copy with every default resolved. Raises ``UnsupportedError``."""
        return replace(
            super().resolved(device),
            pick=self._chosen("pick", self.picks_on(device)),
            frontier=self._chosen("frontier", self.frontiers),
        )

    def settings(self) -> dict[str, Option]:
        """The stage's options, limited to the picks and frontiers of this sampler."""
        options, picks = super().settings(), dict.fromkeys([DEFAULT])
        for device in self.devices:
            with suppress(UnsupportedError):
                picks |= dict.fromkeys(self.picks_on(device))
        legal = {"pick": picks, "frontier": (DEFAULT, *self.frontiers)}
        return options | {k: replace(options[k], words=listed(v)) for k, v in legal.items()}

    def _chosen(self, field: str, known: Sequence[str]) -> str:
        """Resolve an option to one of ``known``; the first is the default."""
        value: str = getattr(self, field)
        if value == DEFAULT:
            return known[0]
        if value not in known:
            raise UnsupportedError(
                f"sampler '{self.name}' has no {field} '{value}'; it has: {', '.join(known)}"
            )
        return value

    def lean(self) -> Self:
        """Return a spec with equal draws and no topology in GPU memory, if one exists; ``self``
        is resolved."""
        return self

    @abstractmethod
    def build(self, job: Job) -> SamplerStage:
        """Build the stage of a cell; ``self`` is resolved."""

    def stage_of(self, job: Job) -> SamplerStage:
        """Build the stage of a cell; batches without hops need no sampler."""
        return Seeds(self, job) if job.cell.gathers and not self.loads else self.build(job)


class SamplerStage(ABC):
    """Draws the batches of an epoch and provides their checks to the gate.

    ``native``: its kernels can be traced. ``exact``: it draws the edges of the reference, with an
    equal ``digest``. ``ahead``: other processes draw batches ahead, and ``sample`` waits for them.
    """

    pick: str
    frontier: str
    native: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    ahead: ClassVar[bool] = False

    def __init__(self, spec: SamplerSpec, job: Job) -> None:
        self.job = job
        self.name, self.pick, self.frontier = spec.name, spec.pick, spec.frontier

    def expect(self, epoch: int, batches: Sequence[Tensor]) -> None:  # noqa: B027
        """Receive the seeds of an epoch's batches before its first batch.

        They are the tensor objects that ``sample`` gets later, in order. Work done here would be
        outside every timed span, so none is allowed.
        """

    @abstractmethod
    def sample(self, seeds: Tensor, epoch: int, number: int) -> Batch:
        """Draw one batch, as timed; ``number`` is its position in the epoch."""

    @property
    def submits_async(self) -> bool:
        """Whether ``begin`` returns without waiting, so the next batch can begin before ``end``."""
        return False

    def begin(self, seeds: Tensor, epoch: int, number: int) -> object:
        """Submit a batch as ``sample`` draws it; returns the ticket for ``end``.

        A synchronous sampler draws the batch here.
        """
        return self.sample(seeds, epoch, number)

    def end(self, ticket: object) -> Batch:
        """Return the batch of a ticket; call it in the order of ``begin``.

        All work was enqueued by ``begin``, or is done on return.
        """
        from gnnbench.core.minibatch import Batch

        if not isinstance(ticket, Batch):
            raise TypeError(f"the ticket of a batch is a {type(ticket).__name__}, not a Batch")
        return ticket

    def checked(self, seeds: Tensor, number: int) -> Batch:
        """Draw a batch of epoch 0 for the gate, with all that ``Batch.hops`` needs."""
        return self.sample(seeds, 0, number)

    @cached_property
    def law(self) -> Law:
        """Inclusion law of the picks; by default, without replacement."""
        from gnnbench.validation.law import Law

        return Law.of(self.pick, self.job.graph.indptr)

    def check(self, seeds: Tensor) -> None:  # noqa: B027
        """Run sampler-specific checks; raises ``gnnbench.validation.gate.Fault``."""

    def digest(self, batches: list[list[Hop]]) -> str:
        """Digest of the gate's edges; empty unless the sampler is exact."""
        return ""

    @property
    def sampled_on(self) -> torch.device:
        """The device that samples."""
        return self.job.device

    def graph_bytes(self) -> int:
        """Device bytes of the topology in torch's allocator."""
        return 0

    def gate_is_over(self) -> None:  # noqa: B027
        """Free what only the gate needed."""

    def close(self) -> None:  # noqa: B027
        """Free all resources."""


class Seeds(SamplerStage):
    """Batches without hops: their seeds on the compute device; the graph is not loaded."""

    exact = True  # seeds do not depend on the rank

    def sample(self, seeds: Tensor, epoch: int, number: int) -> Batch:
        """Return a batch of the seeds alone."""
        from gnnbench.core.minibatch import MiniBatch

        return MiniBatch(seeds.to(self.job.device), [], 0, frontier=self.frontier, number=number)

    @cached_property
    def law(self) -> Law:
        """A law without degrees: without hops they are unused, and the graph may be large."""
        import torch

        from gnnbench.validation.law import WITHOUT, Law

        return Law(WITHOUT, torch.empty(0, dtype=torch.int64))
