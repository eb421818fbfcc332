"""Samplers of the library (``gnnbench.samplers()``) as stages: ours, and third parties' that draw
the same edges. Those with random numbers of their own are in ``own``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from gnnbench.core import registry
from gnnbench.core.counters import CALLS, TOPOLOGY_BYTES, measure
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Hop, MiniBatch
from gnnbench.core.missing import Missing
from gnnbench.core.stage import option
from gnnbench.kernels import rng
from gnnbench.kernels.missing import native_missing
from gnnbench.kernels.picks import PICKS, WEIGHTED
from gnnbench.sampling.base import Sampler
from gnnbench.sampling.build import build_sampler
from gnnbench.sampling.library_stage import LibraryStage
from gnnbench.sampling.own_random import OwnStage
from gnnbench.sampling.setting import TOPOLOGIES
from gnnbench.sampling.stage import DEFAULT, SamplerSpec, SamplerStage
from gnnbench.validation import gate
from gnnbench.validation.hops import digest
from gnnbench.validation.law import BY_WEIGHT, Law, named
from gnnbench.validation.same_work import same_work

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11: workers run on 3.10 too

BLOCK_BYTES = measure("block_bytes", "B", "blocks copied from the host to the device")
OFFSETS = 16  # bytes of a row's two offsets


@dataclass(frozen=True)
class NativeSampler(SamplerSpec):
    """A sampler of the library; ``library`` is its class."""

    library: ClassVar[type[Sampler]]
    topology: str = option(
        DEFAULT,
        "gpu: the graph is copied there (default on a GPU); uva: read out of locked host memory;"
        " cpu: sampled there",
        (DEFAULT, *TOPOLOGIES),
    )

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """The native library must have been built, for a GPU its CUDA part."""
        return native_missing(device)

    def _sampled_on(self, device: str) -> str:
        return "cpu" if self.topology == "cpu" else device

    def picks_on(self, device: str) -> tuple[str, ...]:
        """The library's, where it draws."""
        where = self._sampled_on(device)
        if where not in self.library.devices:
            raise UnsupportedError(
                f"sampler '{self.name}' does not sample on {where}; it does on:"
                f" {', '.join(self.library.devices)}"
            )
        return self.library.picks_on(where)

    def _chosen(self, what: str, known: Sequence[str]) -> str:
        """A sampler with random numbers of its own stands for every pick of its law."""
        law = self.library.law
        if what == "pick" and law and self.pick in PICKS and named(self.pick) == law:
            return self.library.name
        return super()._chosen(what, known)

    def resolved(self, device: str) -> Self:
        """The same with every default put in."""
        spec = super().resolved(device)
        if device == "cpu" and self.topology not in (DEFAULT, "cpu"):
            raise UnsupportedError(
                f"sampler.topology={self.topology} reads the graph from a GPU; give --device cuda"
            )
        if self.topology == DEFAULT:
            spec = replace(spec, topology="cpu" if device == "cpu" else "gpu")
        return spec

    def lean(self) -> Self:
        """Read out of locked host memory what a copy on the GPU was for."""
        return replace(self, topology="uva") if self.topology == "gpu" else self

    def shared(self, device: str) -> tuple[str, ...]:
        """The topology, where a GPU reads it out of host memory."""
        return ("indptr", "indices") if self.topology == "uva" else ()

    def build(self, job: Job) -> SamplerStage:
        """The stage around the library's sampler."""
        if self.library.law:
            return OwnStage(self, job, _built(self, job))
        leaves = job.device.type == "cuda" and self.resolved("cuda").topology != "gpu"
        return (OffDevice if leaves else NativeStage)(self, job)

    def own(self) -> dict[str, Any]:
        """The sampler's own options."""
        return {name: getattr(self, name) for name in self.library.options}


@lru_cache(maxsize=64)
def spec_of(name: str, library: type[Sampler]) -> type[NativeSampler]:
    """The spec of a class of the library: its options become fields."""
    made = dataclasses.make_dataclass(
        library.__name__,
        [
            (o.name, type(o.default), option(o.default, o.help, o.choices, added=o.added))
            for o in library.options.values()
        ],
        bases=(NativeSampler,),
        frozen=True,
        namespace={
            "name": name, "summary": library.summary, "library": library,
            "devices": library.devices, "frontiers": library.frontiers, "__doc__": library.__doc__,
            "repeats": not library.law, "implementation": library.implementation,
        },
    )  # fmt: skip
    return made


def native(name: str | type[Sampler], **options: Any) -> NativeSampler:
    """A sampler of the library by its name, or by its class. Raises ``UsageError``."""
    if isinstance(name, str):
        return spec_of(name, registry.load(registry.SAMPLER, name))(**options)
    return spec_of(name.name, name)(**options)


def _built(spec: NativeSampler, job: Job) -> Sampler:
    """The library's sampler of a cell."""
    cell, graph = job.cell, job.graph
    weighted = spec.pick in WEIGHTED or spec.library.law == BY_WEIGHT
    if weighted and graph.weights is None:
        raise UnsupportedError(
            f"pick '{spec.pick}' needs edge weights, and '{graph.name}' stores none"
        )
    return build_sampler(
        spec.library,
        graph,
        cell.fanouts,
        job.device,
        cell.seed,
        pick=spec.pick,
        frontier=spec.frontier,
        topology=None if job.device.type == "cpu" else spec.topology,
        weights="graph" if weighted else None,
        **spec.own(),
    )


class NativeStage(LibraryStage):
    """A sampler of the library; its edges are held against the reference's."""

    native = exact = True

    def __init__(self, spec: NativeSampler, job: Job) -> None:
        super().__init__(spec, job, _built(spec, job))

    @property
    def asks(self) -> bool:
        """As the library's sampler; a stage derived from this one draws by its own ``sample``."""
        return self.sampler.asks and type(self).sample is LibraryStage.sample

    def begin(self, seeds: Tensor, epoch: int, number: int) -> Any:
        """Nothing is waited for where ``asks``."""
        draw = self.sampler.begin if self.asks else self.sample
        return draw(seeds, epoch, number)

    def end(self, ticket: Any) -> MiniBatch:
        """The batch, its sizes read."""
        return self.sampler.end(ticket)

    def checked(self, seeds: Tensor, number: int) -> MiniBatch:
        """The same draw, with the edges' positions; random walks have visits instead."""
        walks = self.pick == "random_walk"
        return self.sampler.sample(seeds, 0, number, with_positions=not walks)

    @cached_property
    def law(self) -> Law:
        """Inclusion law of the sampler's pick."""
        walks, length = self.sampler.setting.pick.walk[:2] or (0, 0)
        graph = self.job.graph
        return Law.of(self.pick, graph.indptr, graph.weights, walks * length)

    def check(self, seeds: Tensor) -> None:
        """The reference's work for the same key; the same draw as timed and as checked."""
        cell = self.job.cell
        gate.check_against_reference(
            self.job.graph,
            cell.fanouts,
            seeds,
            lambda few: self.checked(few, 0),
            pick=self.sampler.setting.pick,
            frontier=self.frontier,
            key=rng.key(cell.seed, 0, "sample"),
        )
        timed, checked = self.sample(seeds, 0, 1), self.checked(seeds, 1)
        fault = same_work(_bare(checked), timed, self.frontier)
        if fault is not None:
            raise gate.Fault(f"the sampler as timed draws other edges than as checked: {fault}")

    def digest(self, batches: list[list[Hop]]) -> str:
        """SHA-256 of the gate's edges."""
        return digest(batches)


class OffDevice(NativeStage):
    """A sampler whose graph is not in the GPU's memory: it counts what it moves.

    One whose graph is there counts nothing: a batch takes no longer than the counting.
    """

    def __init__(self, spec: NativeSampler, job: Job) -> None:
        super().__init__(spec, job)
        self._where = "zero_copy" if spec.topology == "uva" else "host"

    def sample(self, seeds: Tensor, epoch: int, number: int) -> MiniBatch:
        """One dispatch for all hops, and its bytes."""
        batch = super().sample(seeds, epoch, number)
        counts, ids = self.job.counts, self.job.graph.indices.element_size()
        sizes = batch.sizes()
        rows = sum(dst.numel() for dst, _ in sizes.hops)
        counts.add("sampler", TOPOLOGY_BYTES, rows * OFFSETS + sizes.num_edges * ids, self._where)
        counts.add("sampler", CALLS, 1, self._where)
        if self._where == "host":
            moved = sum(t.numel() * t.element_size() for t in batch.tensors())
            counts.add("sampler", BLOCK_BYTES, moved, "host_copy")
        return batch


def _bare(batch: MiniBatch) -> MiniBatch:
    """The batch without positions, as it is timed."""
    return replace(batch, blocks=[replace(block, positions=None) for block in batch.blocks])
