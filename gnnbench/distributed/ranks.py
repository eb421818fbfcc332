"""What each rank of a group does in an epoch: its stretch of each batch, or its part's seeds."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from gnnbench.core.cell import Cell, Until
from gnnbench.core.job import Job
from gnnbench.core.rendezvous import Peers
from gnnbench.distributed.gradients import Overlapped
from gnnbench.distributed.merge import Audited, Share, unite
from gnnbench.distributed.process_group import Group
from gnnbench.measure.allocated import private_bytes
from gnnbench.measure.timeline import Span, Timeline
from gnnbench.pipelines.schedule import DDP, FLAT, Schedule, Stages

if TYPE_CHECKING:
    from gnnbench.core.minibatch import Batch
    from gnnbench.datasets.graph import Graph
    from gnnbench.distributed.partition.split import Split
    from gnnbench.distributed.partitioned import Parts
    from gnnbench.sampling.stage import SamplerSpec, SamplerStage


@dataclass(frozen=True)
class Start:
    """What a rank is built for. ``device`` is the number of a GPU, None on a CPU; ``peers_port`` is
    where ranks meet while they are built."""

    peers_port: int
    cell: Cell
    graph: Graph
    rank: int
    ranks: int
    threads: int
    device: int | None
    split: Split | None = None


@dataclass(frozen=True)
class Join:
    """All ranks are built: meet."""


@dataclass(frozen=True)
class Measure:
    """All are built: rank ``rank`` is to run an epoch by itself, and tell what it took."""

    rank: int


@dataclass(frozen=True)
class Measured:
    """Seconds that a batch took in each phase."""

    sample_s: float
    memory_io_s: float
    compute_s: float


@dataclass(frozen=True)
class Epoch:
    """Run an epoch; with ``looks`` every batch is looked at, and edges are told. ``shares``: rank
    0 gives its weights to the others first."""

    number: int
    looks: bool
    shares: bool


@dataclass(frozen=True)
class Compare:
    """Draw and load batches of these seeds by the part, and hold them against the whole graph's."""

    epoch: int
    batches: list[Tensor]


@dataclass(frozen=True)
class Audit:
    """Look at the last epoch, ``number``, again."""

    number: int


@dataclass(frozen=True)
class Ran:
    """An epoch is over, as one rank has it."""

    counts: list[list[Any]]
    spans: list[Span]
    peak_bytes: int


def stretch(batch: Tensor, rank: int, ranks: int) -> Tensor:
    """A rank's seeds of a batch: one of ``ranks`` contiguous stretches, the first ones longer by
    one where it does not come out even; empty where there are more ranks than seeds."""
    return batch.tensor_split(ranks)[rank]


def weights_of(model: nn.Module) -> str:
    """A digest of a model's parameters, bit for bit."""
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


def own_bytes(device: torch.device, stages: Stages) -> int:
    """Memory of this process alone: of a GPU the peak so far, of the host what it has now."""
    return stages.peak_bytes if device.type == "cuda" else private_bytes()


class Part(Schedule):
    """One rank's part of each epoch, batch by batch and phase by phase.

    ``group`` is there once all have met, ``held`` where the graph is split over ranks.
    """

    group: Group | None = None
    held: Parts | None = None
    shares = True  # rank 0's weights, at the begin of an epoch: where they are not those of all
    _looks = False

    def __init__(self, rank: int, ranks: int, gradients: str = FLAT) -> None:
        self.rank, self.ranks, self._gradients = rank, ranks, gradients
        self._shares: list[Share] = []
        self._trainer: Any = None
        self._sampler: Any = None

    def connect(self, sockets: Mapping[str, int]) -> None:
        """Take the sockets that the process was given beside its own: numbers by name."""

    def attach(self, stages: Stages) -> None:
        """Hear of the stages, before the ranks meet."""
        self._trainer = stages.trainer

    def meet(self, peers: Peers, job: Job, word: Join) -> None:
        """Meet the other ranks, which are built, too; all are there on return."""
        self.group = Group(self.rank, self.ranks, job.device, job.counts, peers.pulse)
        self.group.meet(peers.store)
        if self._gradients == DDP and self._trainer is not None:
            self.group.gradients = Overlapped(self.group, self._trainer.model)
        if self.held is not None:
            self.held.agree()

    def draws_by(self, asked: SamplerSpec, built: SamplerSpec) -> SamplerSpec:
        """What the rank's part draws by, once all have met: what it was built with. ``asked`` is
        the recipe's."""
        return built

    def look(self, looks: bool) -> None:
        """Whether the next epochs' edges are told with their shares."""
        self._looks = looks

    def drawn_apart(
        self, sampler: SamplerStage, batches: Sequence[Tensor]
    ) -> tuple[float, float] | None:
        """With random numbers of its own each rank draws other edges for a node that two have."""
        if sampler.exact or self.ranks == 1:
            return None
        fanouts, law = sampler.job.cell.fanouts, sampler.law
        shares: list[Share] = []
        for number, batch in enumerate(batches):
            for rank in range(self.ranks):
                if (seeds := stretch(batch, rank, self.ranks)).numel():
                    drawn = sampler.sample(seeds, 0, number)
                    shares.append(Share.of(drawn, False, exact=False).on_host(fanouts, law))
        whole = unite([Audited(shares, "", "")])
        return whole.edges / whole.seeds, whole.nodes / whole.seeds

    def parts(self, batches: Sequence[Tensor]) -> list[Tensor]:
        """The rank's seeds of the batches in which it has any."""
        own = (self.seeds(batch) for batch in batches)
        return [seeds for seeds in own if seeds.numel()]

    def seeds(self, batch: Tensor) -> Tensor:
        """The rank's seeds of a batch: its stretch, or those that its part of the graph owns."""
        if self.held is not None:
            return self.held.seeds(batch)
        return stretch(batch, self.rank, self.ranks)

    def epoch(
        self,
        epoch: int,
        batches: list[Tensor],
        stages: Stages,
        timeline: Timeline,
        until: Until,
    ) -> None:
        """Run the rank's stretch of every batch, from rank 0's weights on."""
        self._shares = []
        assert self.group is not None
        trainer: Any = stages.trainer
        self._trainer, self._sampler = trainer, stages.sampler
        if trainer is None:
            self._run(epoch, batches, stages, timeline, until)
            return
        if self.shares:
            self.group.share_state(trainer.state())
        trainer.group = self.group
        try:
            self._run(epoch, batches, stages, timeline, until)
        finally:
            trainer.group = None

    def _run(
        self,
        epoch: int,
        batches: list[Tensor],
        stages: Stages,
        timeline: Timeline,
        until: Until,
    ) -> None:
        lane = f"rank {self.rank}"
        held, trainer = self.held, self._trainer
        draws: Any = held or stages.sampler
        ahead = 1 if held is not None or until is Until.SAMPLE else stages.ahead
        last: Batch | None = None
        before = 0 if trainer is None else len(trainer.losses)
        for first in range(0, len(batches), ahead):
            group: list[tuple[int, Batch | None]] = []
            for number, whole in enumerate(batches[first : first + ahead], first):
                seeds = self.seeds(whole)
                batch = None
                # Where ranks ask each other one without seeds is asked, too.
                if seeds.numel() or (held is not None and held.asks):
                    with timeline.span("sample", number, lane):
                        batch = draws.sample(seeds, epoch, number)
                group.append((number, batch))
            if ahead > 1:
                with timeline.span("memory_io", first, lane):
                    group = self._arranged(group, first, stages, last)
            drawn = [batch for _, batch in group if batch is not None]
            last = drawn[-1] if drawn else last
            nth = 0
            for place, (number, batch) in enumerate(group, first):
                rows = None
                some = batch is not None and batch.seeds.numel() > 0
                if until > Until.SAMPLE and (some or (held is not None and held.fetches)):
                    with timeline.span("memory_io", place, lane):
                        rows = held.load(batch) if held is not None else stages.load(drawn, nth)
                if trainer is not None:
                    with timeline.span("compute", place, lane):
                        self._train(trainer, batches[number], batch if some else None, rows)
                if batch is None or not some:
                    continue
                nth += 1
                stages.keep(batch, rows)
                self._shares.append(Share.of(batch, self._looks, self._sampler.exact))
        assert self.group is not None
        if held is not None:
            held.tell(self.group.counts)
        if trainer is not None:
            trainer.losses[before:] = self.group.gradients.losses(trainer.losses[before:])

    def _train(self, trainer: Any, whole: Tensor, batch: Batch | None, rows: Tensor | None) -> None:
        """Train on the rank's part of the batch of seeds ``whole``; None: it has none."""
        assert self.group is not None
        self.group.gradients.begin(trainer.labels_at(whole))
        if batch is None:
            trainer.losses.append(trainer.step_of_nothing())
        else:
            trainer.step(batch, rows)

    def _arranged(
        self,
        group: list[tuple[int, Batch | None]],
        first: int,
        stages: Stages,
        last: Batch | None,
    ) -> list[tuple[int, Batch | None]]:
        """A group's batches in the order in which rank 0 runs them, by what it drew of them.

        The host waits for that order. Rank 0 has seeds of every batch.
        """
        if stages.order is None or stages.order.window == 1:
            return group
        assert self.group is not None
        order = torch.arange(first, first + len(group), device=self.group.device)
        if self.rank == 0:
            own = [batch for _, batch in group if batch is not None]
            told = [batch.number for batch in stages.arranged(own, last)]
            order.copy_(torch.tensor(told))
        with self.group.pulse.waiting():
            dist.broadcast(order, 0)
        return [group[number - first] for number in order.tolist()]

    def audited(self, reason: str, seen: Sequence[bytes] = ()) -> Any:
        """What was done since the last call; ``reason`` is what the audit found wrong, ``seen``
        the digests of the batches that were looked at."""
        shares, self._shares = self._shares, []
        sampler = self._sampler
        fanouts, law = sampler.job.cell.fanouts, None if sampler.exact else sampler.law
        weights = "" if self._trainer is None else weights_of(self._trainer.model)
        return Audited([share.on_host(fanouts, law) for share in shares], reason, weights)

    def close(self) -> None:
        """Leave the group."""
        if self.group is not None:
            self.group.close()
            self.group = None
