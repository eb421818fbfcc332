"""What a sampler is to a recipe (its spec) and to an epoch (the stage)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

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
    """A sampler as a recipe names it.

    ``devices`` are those of the cells that it can serve; ``picks_on`` and ``frontiers`` have the
    default first.
    """

    kind: ClassVar[str] = "sampler"
    devices: ClassVar[tuple[str, ...]] = ("cpu",)
    frontiers: ClassVar[tuple[str, ...]] = ("cumulative",)
    mini_batches: ClassVar[bool] = True  # its batches are gnnbench's own, ``MiniBatch``
    repeats: ClassVar[bool] = False  # an epoch drawn twice has the same batches
    loads: ClassVar[bool] = False  # its batches fetch features: it draws those without hops, too
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
        """The pick functions on a cell's device, the default first."""

    def resolved(self, device: str) -> Self:
        """The same with every default put in. Raises ``UnsupportedError``."""
        return replace(
            super().resolved(device),
            pick=self._chosen("pick", self.picks_on(device)),
            frontier=self._chosen("frontier", self.frontiers),
        )

    def settings(self) -> dict[str, Option]:
        """The same as of any stage, with the picks and frontiers that this sampler has."""
        found, picks = super().settings(), dict.fromkeys([DEFAULT])
        for device in self.devices:
            with suppress(UnsupportedError):
                picks |= dict.fromkeys(self.picks_on(device))
        own = {"pick": picks, "frontier": (DEFAULT, *self.frontiers)}
        return found | {k: replace(found[k], words=listed(v)) for k, v in own.items()}

    def _chosen(self, what: str, known: Sequence[str]) -> str:
        asked: str = getattr(self, what)
        if asked == DEFAULT:
            return known[0]
        if asked not in known:
            raise UnsupportedError(
                f"sampler '{self.name}' has no {what} '{asked}'; it has: {', '.join(known)}"
            )
        return asked

    def lean(self) -> Self:
        """The same draws by a stage that keeps no topology in a GPU's memory, where there is one;
        ``self`` is resolved."""
        return self

    @abstractmethod
    def build(self, job: Job) -> SamplerStage:
        """The stage of a cell; ``self`` is resolved."""

    def stage_of(self, job: Job) -> SamplerStage:
        """The same; where a batch has no hops there is nothing to sample."""
        return Seeds(self, job) if job.cell.gathers and not self.loads else self.build(job)


class SamplerStage(ABC):
    """Draws the batches of an epoch, and answers for them at the gate.

    ``pick`` and ``frontier`` are names; ``native`` says that its stages can be traced, ``exact``
    that it draws the reference's edges and its ``digest`` is theirs, ``ahead`` that other processes
    draw while the epoch goes on: ``sample`` waits for what is under way.
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
        """Hear what an epoch is going to ask for, before its first batch.

        The very tensors that ``sample`` is given, in order. No work is to be done here: it would be
        in no span.
        """

    @abstractmethod
    def sample(self, seeds: Tensor, epoch: int, number: int) -> Batch:
        """Draw one batch, as timed; ``number`` is its place in the epoch."""

    @property
    def asks(self) -> bool:
        """Whether ``begin`` enqueues a batch and waits for nothing, so that it pays to begin the
        next one before ``end``."""
        return False

    def begin(self, seeds: Tensor, epoch: int, number: int) -> Any:
        """Ask for a batch as ``sample`` draws it; the ticket for ``end``. One that waits draws."""
        return self.sample(seeds, epoch, number)

    def end(self, ticket: Any) -> Batch:
        """The batch of a ticket, in the order of ``begin``.

        Its work was enqueued there, or is done on return: what is enqueued between the two does not
        come before it.
        """
        batch: Batch = ticket
        return batch

    def checked(self, seeds: Tensor, number: int) -> Batch:
        """Draw a batch of epoch 0 for the gate, with whatever its neutral form needs."""
        return self.sample(seeds, 0, number)

    @cached_property
    def law(self) -> Law:
        """Inclusion law of the picks; all that do not say otherwise draw without replacement."""
        from gnnbench.validation.law import Law

        return Law.of(self.pick, self.job.graph.indptr)

    def check(self, seeds: Tensor) -> None:  # noqa: B027
        """Raise ``gnnbench.validation.gate.Fault`` when a check of the sampler's own fails."""

    def digest(self, batches: list[list[Hop]]) -> str:
        """Digest of the gate's edges; a foreign sampler draws other numbers and has none."""
        return ""

    @property
    def sampled_on(self) -> torch.device:
        """The device whose kernels draw."""
        return self.job.device

    def graph_bytes(self) -> int:
        """Bytes of the topology that torch's allocator holds on the device."""
        return 0

    def gate_is_over(self) -> None:  # noqa: B027
        """Give back what only the gate needed."""

    def close(self) -> None:  # noqa: B027
        """Give back what was taken."""


class Seeds(SamplerStage):
    """Batches of no hops: their seeds, on the compute device, and no graph in any memory."""

    exact = True  # whichever rank has a seed

    def sample(self, seeds: Tensor, epoch: int, number: int) -> Batch:
        """The seeds as they are given."""
        from gnnbench.core.minibatch import MiniBatch

        return MiniBatch(seeds.to(self.job.device), [], 0, frontier=self.frontier, number=number)

    @cached_property
    def law(self) -> Law:
        """Without hops nobody asks for a node's degree, and a table may have millions."""
        import torch

        from gnnbench.validation.law import WITHOUT, Law

        return Law(WITHOUT, torch.empty(0, dtype=torch.int64))
