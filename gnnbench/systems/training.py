"""What the systems that train on blocks share: the epoch, the gate and the recount."""

from __future__ import annotations

import resource
from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from gnnbench.cell import NO_MODEL, Cell
from gnnbench.check import gate
from gnnbench.check.hops import Hop
from gnnbench.check.law import Law
from gnnbench.data.graph import Graph
from gnnbench.errors import UnsupportedError
from gnnbench.minibatch import MiniBatch
from gnnbench.models.stack import build
from gnnbench.stages.clock import clock_for
from gnnbench.stages.order import AsDrawn
from gnnbench.stages.schedule import run_sampling, run_serial
from gnnbench.systems.base import CheckReport, EpochSample, System

WORTH_LEARNING = 1e-3  # loss; a single class has nothing to learn
REREAD_ROWS = 1024  # enough to find a stale buffer, too few to count in memory


class Counted(NamedTuple):
    """What is recounted of a timed batch: destinations and edges by hop, input nodes, seeds."""

    hops: list[tuple[Tensor, int]]
    nodes: int
    seeds: int


class TrainingSystem(System):
    """A system whose epoch is: sample, load features, train on the blocks, batch by batch.

    A subclass says how in its framework; the epoch loop, the gate and the recount after timing
    are the same for all, so that a ratio compares frameworks and not loops. On a GPU labels and
    model live there and phases are measured by events; nothing waits for the device between the
    phases except what the framework's own calls wait for. With the model ``none`` an epoch samples
    and does nothing else: no features, no loss. Where the device's memory is exhausted,
    ``torch.OutOfMemoryError`` or a ``RuntimeError`` with "CUDA out of memory" in its text is
    raised, by any method.
    """

    framework: ClassVar[str]
    picks: ClassVar[tuple[str, ...]]
    frontiers: ClassVar[tuple[str, ...]]

    def __init__(self, cell: Cell, graph: Graph) -> None:
        super().__init__(cell, graph)
        self.device = torch.device(cell.device)
        self.pick = self._choose("pick", cell.pick, self.picks_on(cell.device))
        self.frontier = self._choose("frontier", cell.frontier, self.frontiers_known())
        self.check_options(cell.options)
        self.trains = cell.model != NO_MODEL
        self.order = AsDrawn(graph.train_idx, cell.batch_size, cell.seed, cell.max_batches)
        self._last: tuple[Any, Tensor] | None = None  # the batch trained on last, to look at again

    def picks_on(self, device: str) -> tuple[str, ...]:
        """The pick algorithms, the default of the device first."""
        return self.picks

    def frontiers_known(self) -> tuple[str, ...]:
        """The frontiers, the default first."""
        return self.frontiers

    @cached_property
    def law(self) -> Law:
        """Inclusion law of the picks; all that do not say otherwise draw without replacement."""
        return Law.of(self.pick, self.graph.indptr)

    def _choose(self, what: str, asked: str, known: tuple[str, ...]) -> str:
        if asked == "default":
            return known[0]
        if asked not in known:
            raise UnsupportedError(
                f"system '{self.name}' has no {what} '{asked}'; it has: {', '.join(known)}"
            )
        return asked

    # What a framework supplies.

    @abstractmethod
    def build_backend(self) -> None:
        """Make the sampler and the feature store."""

    @abstractmethod
    def sample(self, seeds: Tensor, epoch: int, batch: int) -> Any:
        """Draw one batch, as timed."""

    @abstractmethod
    def load(self, drawn: Any) -> Tensor:
        """Feature rows of the drawn batch's input nodes, as timed."""

    @abstractmethod
    def blocks(self, drawn: Any) -> list[Any]:
        """The batch's blocks in the form the framework's layers take, input layer first."""

    @abstractmethod
    def input_nodes(self, drawn: Any) -> Tensor:
        """Global ids of the feature rows."""

    @abstractmethod
    def seeds(self, drawn: Any) -> Tensor:
        """Global ids of the seeds."""

    @abstractmethod
    def hop_sizes(self, drawn: Any) -> list[tuple[Tensor, int]]:
        """For each hop from the seeds outwards: global ids of its destinations, edges drawn."""

    @abstractmethod
    def hops(self, drawn: Any) -> list[Hop]:
        """The drawn edges in neutral form."""

    @abstractmethod
    def convert(self, batch: MiniBatch) -> list[Any]:
        """A mini-batch of ours as the framework's blocks."""

    def keep(self, drawn: Any) -> Any:
        """What ``counted`` needs of a timed batch; within the timed loop, so it must cost nothing.

        It should not hold the batch's edges: memory that a batch has left is warm for the next.
        """
        return self.counted_now(drawn)

    def counted(self, kept: Any) -> Counted:
        """A timed batch's counts, once the clock has stopped."""
        found: Counted = kept
        return found

    def counted_now(self, drawn: Any) -> Counted:
        """Counts of a batch."""
        return Counted(
            self.hop_sizes(drawn), self.input_nodes(drawn).numel(), self.seeds(drawn).numel()
        )

    def gate_sample(self, seeds: Tensor, batch: int) -> Any:
        """Draw one batch for the gate; with whatever the neutral form needs."""
        return self.sample(seeds, 0, batch)

    def gate_extra(self, seeds: Tensor) -> None:
        """Raise ``Fault`` when a check of the system's own fails."""

    def block_tensors(self, drawn: Any) -> list[Tensor]:
        """The tensors that make up a batch's blocks; none where nobody can tell."""
        return []

    def sampled_on(self) -> torch.device:
        """The device whose kernels draw."""
        return self.device

    def graph_bytes(self) -> int:
        """Bytes of the topology that torch's allocator holds on the device."""
        if self.device.type == "cpu":
            return 0
        return sum(t.numel() * t.element_size() for t in (self.graph.indptr, self.graph.indices))

    def row_bytes(self) -> int:
        """Bytes of one feature row."""
        return self.graph.feature_dim * self.graph.features.element_size()

    def feature_bytes(self, nodes: int) -> dict[str, int]:
        """Bytes by path that serving ``nodes`` feature rows took."""
        return {"host_copy": nodes * self.row_bytes()}

    def h2d_bytes(self, nodes: int) -> int:
        """Bytes that serving ``nodes`` feature rows moved from the host to the device."""
        return 0

    # The life of a system.

    def setup(self) -> None:
        """Build backend, model and optimizer; on a GPU the peak of memory counts from here."""
        if self.device.type == "cuda":
            torch.cuda.init()
            torch.cuda.reset_peak_memory_stats(self.device)
            # The gate's tolerance is one of float32.
            torch.backends.cuda.matmul.allow_tf32 = False
            torch.backends.cudnn.allow_tf32 = False
        self.build_backend()
        if not self.trains:
            return
        cell, graph = self.cell, self.graph
        self.model: nn.Module = build(
            cell.model,
            self.framework,
            graph.feature_dim,
            cell.hidden,
            graph.num_classes,
            len(cell.fanouts),
            cell.seed,
        ).to(self.device)
        self.labels = graph.labels.to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cell.learning_rate)

    def check(self) -> CheckReport:
        """Structure of consecutive batches; feature bits, forward and backward on a fixed block.

        Without a model the structure, and whatever ``gate_extra`` looks at, is all there is.
        """
        cell, graph = self.cell, self.graph
        report = CheckReport(
            True, "", self.pick, self.frontier, self.law.name, "", 0.0, 0.0, {"batches": 0}
        )
        all_seeds = gate.gate_seeds(self.order.batches(0))
        batches = [self.gate_sample(seeds, nth) for nth, seeds in enumerate(all_seeds)]
        edges = [sum(n for _, n in self.hop_sizes(drawn)) for drawn in batches]
        report.details["edges_by_call"] = edges
        all_hops: list[list[Hop]] = []
        try:
            for nth, (seeds, drawn) in enumerate(zip(all_seeds, batches, strict=True)):
                try:
                    all_hops.append(self.hops(drawn))
                    self._check_structure(seeds, all_hops[-1])
                except gate.Fault as fault:
                    counts = ", ".join(map(str, edges))
                    raise gate.Fault(
                        f"call {nth + 1} of the sampler, {fault}; edges by call: {counts}"
                    ) from None
                report.details["batches"] = nth + 1
            if self.trains:
                gate.check_features(graph, self.input_nodes(batches[0]), self.load(batches[0]))
            self.gate_extra(all_seeds[0])
            if self.trains:
                fixed = (graph, cell.model, cell.hidden, cell.fanouts, cell.seed, all_seeds[0])
                report.details["forward_error"] = gate.check_forward(*fixed, self._forward)
                report.details["backward_error"] = gate.check_backward(*fixed, self._gradient)
        except gate.Fault as fault:
            report.ok, report.reason = False, str(fault)
            return report
        count = sum(seeds.numel() for seeds in all_seeds)
        report.edges_per_seed = sum(edges) / count
        report.nodes_per_seed = sum(self.input_nodes(drawn).numel() for drawn in batches) / count
        report.digest = self.work_digest(all_hops)
        return report

    def recheck(self, epoch: int) -> str:
        """Structure and feature bits of fresh seeds: a cache of old answers cannot know them."""
        graph = self.graph
        try:
            for nth, seeds in enumerate(gate.gate_seeds(self.order.batches(epoch))):
                drawn = self.gate_sample(seeds, nth)
                self._check_structure(seeds, self.hops(drawn))
                if self.trains:
                    gate.check_features(graph, self.input_nodes(drawn), self.load(drawn))
            self.gate_extra(seeds)
        except gate.Fault as fault:
            return str(fault)
        return ""

    def profile(self, epoch: int) -> dict[str, list[dict[str, Any]]]:
        """Stages by hop, memory and kernels of a sampling cell."""
        from gnnbench.systems.profile import profile_samples

        return {} if self.trains else profile_samples(self, epoch)

    def _check_structure(self, seeds: Tensor, hops: list[Hop]) -> None:
        gate.check_structure(self.graph, self.cell.fanouts, self.frontier, seeds, hops, self.law)

    def work_digest(self, drawn: list[list[Hop]]) -> str:
        """Digest of the gate's edges; a foreign sampler draws other numbers and has none."""
        return ""

    def _forward(self, batch: MiniBatch, x: Tensor) -> Tensor:
        with torch.no_grad():
            blocks = self.convert(batch.to(self.device))
            out: Tensor = self.model(blocks, x.to(self.device))
        return out

    def _gradient(self, batch: MiniBatch, x: Tensor) -> Tensor:
        rows = x.to(self.device, copy=True).requires_grad_()
        values = self.model(self.convert(batch.to(self.device)), rows)
        found: Tensor = torch.autograd.grad(values.square().sum().div(2), rows)[0]
        return found

    def _train(self, inputs: tuple[Any, Tensor]) -> Tensor:
        drawn, x = inputs
        self.optimizer.zero_grad()
        logits = self.model(self.blocks(drawn), x)
        labels = self.labels[self.seeds(drawn).long()]
        loss = nn.functional.cross_entropy(logits, labels, ignore_index=-1)
        loss.backward()
        self.optimizer.step()
        self._last = inputs
        return loss.detach()

    def _peak_bytes(self) -> int:
        if self.device.type == "cuda":
            return int(torch.cuda.max_memory_allocated(self.device))
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def run_epoch(self, epoch: int) -> EpochSample:
        """Run one epoch, measure it, then look again at what every timed batch drew and read."""
        return self._training_epoch(epoch) if self.trains else self._sampling_epoch(epoch)

    def _training_epoch(self, epoch: int) -> EpochSample:
        before = [p.detach().clone() for p in self.model.parameters()]
        trace = run_serial(
            batches=lambda: self.order.batches(epoch, self.device),
            sample=lambda seeds, batch: self.sample(seeds, epoch, batch),
            load=lambda drawn: (drawn, self.load(drawn)),
            compute=self._train,
            keep=self.keep,
            clock=clock_for(self.device),
        )
        self.clock_stopped()
        peak = self._peak_bytes()
        found = [self.counted(k) for k in trace.kept]
        nodes = sum(c.nodes for c in found)
        reason = self._recount(epoch, [c.hops for c in found]) or self._reread()
        reason = reason or self._untrained(before, trace.losses)
        return EpochSample(
            epoch=epoch,
            wall_s=trace.wall_s,
            phases_s=trace.phases_s,
            **_summed(found),
            feature_bytes=self.feature_bytes(nodes),
            h2d_bytes=self.h2d_bytes(nodes),
            loss=float(np.mean(trace.losses)),
            peak_alloc_bytes=peak,
            ok=not reason,
            reason=reason,
        )

    def _sampling_epoch(self, epoch: int) -> EpochSample:
        """An epoch of ``sample`` calls alone, the seeds in the graph's id type beforehand."""
        id_type = self.graph.indices.dtype
        trace = run_sampling(
            batches=lambda: [b.to(id_type) for b in self.order.batches(epoch, self.device)],
            sample=lambda seeds, batch: self.sample(seeds, epoch, batch),
            keep=self.keep,
            device=self.device,
        )
        self.clock_stopped()
        peak = self._peak_bytes()
        found = [self.counted(k) for k in trace.kept]
        reason = self._recount(epoch, [c.hops for c in found])
        return EpochSample(
            epoch=epoch,
            wall_s=trace.wall_s,
            phases_s=trace.phases_s,
            **_summed(found),
            feature_bytes={},
            h2d_bytes=0,
            loss=None,
            peak_alloc_bytes=peak,
            ok=not reason,
            reason=reason,
            device_s=trace.device_s,
        )

    def _recount(self, epoch: int, batches: list[list[tuple[Tensor, int]]]) -> str:
        """What is wrong with the timed batches' seeds or edge counts, or nothing.

        Counted where the batches are: on a GPU thousands of hops would be long on their way.
        """
        law = self.law.on(self.device)
        all_seeds = self.order.batches(epoch, self.device)
        for nth, (seeds, hops) in enumerate(zip(all_seeds, batches, strict=True)):
            drawn_for = hops[0][0].long()
            if not torch.equal(drawn_for.sort().values, seeds.long().sort().values):
                return (
                    f"timed batch {nth + 1} was drawn for other seeds than its own:"
                    f" {drawn_for.numel()} where it has {seeds.numel()}"
                )
            for number, ((dst, drawn), fanout) in enumerate(
                zip(hops, self.cell.fanouts, strict=True)
            ):
                fault = law.count_fault(dst.long(), drawn, fanout)
                if fault is not None:
                    return f"timed batch {nth + 1}, hop {number + 1}: {fault}"
        return ""

    def _untrained(self, before: list[Tensor], losses: list[float]) -> str:
        """Whether an epoch with something to learn left every parameter as it was."""
        now = self.model.parameters()
        if np.mean(losses) > WORTH_LEARNING and all(map(torch.equal, before, now)):
            return "the epoch changed no parameter of the model: nothing was trained"
        return ""

    def _reread(self) -> str:
        """What is wrong with the rows that the last timed batch was trained on, or nothing."""
        if self._last is None:
            return ""
        drawn, x = self._last
        self._last = None
        ids = self.input_nodes(drawn)
        if x.shape[0] != ids.numel():
            return f"the last timed batch has {x.shape[0]} feature rows for {ids.numel()} nodes"
        step = max(1, ids.numel() // REREAD_ROWS)
        try:
            gate.check_features(self.graph, ids[::step], x[::step])
        except gate.Fault as fault:
            return f"last timed batch: {fault}"
        return ""


def _summed(batches: list[Counted]) -> dict[str, int]:
    return {
        "batches": len(batches),
        "seeds": sum(b.seeds for b in batches),
        "sampled_edges": sum(n for b in batches for _, n in b.hops),
        "unique_nodes": sum(b.nodes for b in batches),
    }
