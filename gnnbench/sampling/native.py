"""Stages of the library's samplers (``gnnbench.samplers()``), own and third-party.

Samplers with random numbers of their own use ``stated_law``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor

from gnnbench.core import registry
from gnnbench.core.counters import BLOCK_BYTES, CALLS, TOPOLOGY_BYTES
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch, Hop, MiniBatch
from gnnbench.core.missing import Missing
from gnnbench.core.stage import option
from gnnbench.kernels import rng
from gnnbench.kernels.missing import native_missing
from gnnbench.kernels.picks import PICKS, WEIGHTED
from gnnbench.sampling.base import Sampler
from gnnbench.sampling.build import checked_sampler
from gnnbench.sampling.library_stage import LibraryStage
from gnnbench.sampling.setting import TOPOLOGIES
from gnnbench.sampling.stage import DEFAULT, SamplerSpec, SamplerStage
from gnnbench.sampling.stated_law import StatedLawStage
from gnnbench.validation import gate
from gnnbench.validation.hops import digest
from gnnbench.validation.law import BY_WEIGHT, Law, named
from gnnbench.validation.same_work import same_work

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11: workers run on 3.10 too

OFFSET_BYTES = 16  # a row's two offsets


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
        """The native library must have been built, with CUDA for a GPU."""
        return native_missing(device)

    def _sampled_on(self, device: str) -> str:
        return "cpu" if self.topology == "cpu" else device

    def picks_on(self, device: str) -> tuple[str, ...]:
        """The picks of the library's sampler on its sampling device."""
        where = self._sampled_on(device)
        if where not in self.library.devices:
            raise UnsupportedError(
                f"sampler '{self.name}' does not sample on {where}; it does on:"
                f" {', '.join(self.library.devices)}"
            )
        return self.library.picks_on(where)

    def _chosen(self, field: str, known: Sequence[str]) -> str:
        """Resolve an option; a sampler with a stated law accepts every pick of that law."""
        law = self.library.law
        if field == "pick" and law and self.pick in PICKS and named(self.pick) == law:
            return self.library.name
        return super()._chosen(field, known)

    def resolved(self, device: str) -> Self:
        """Return a copy with every default resolved. Raises ``UnsupportedError``."""
        spec = super().resolved(device)
        if device == "cpu" and self.topology not in (DEFAULT, "cpu"):
            raise UnsupportedError(
                f"sampler.topology={self.topology} reads the graph from a GPU; give --device cuda"
            )
        if self.topology == DEFAULT:
            spec = replace(spec, topology="cpu" if device == "cpu" else "gpu")
        return spec

    def lean(self) -> Self:
        """Read the topology from locked host memory instead of a copy on the GPU."""
        return replace(self, topology="uva") if self.topology == "gpu" else self

    def shared(self, device: str) -> tuple[str, ...]:
        """The topology, if a GPU reads it from host memory."""
        return ("indptr", "indices") if self.topology == "uva" else ()

    def build(self, job: Job) -> SamplerStage:
        """Build the stage of the library's sampler."""
        if self.library.law:
            return StatedLawStage(self, job, _built(self, job))
        off_device = job.device.type == "cuda" and self.resolved("cuda").topology != "gpu"
        return (OffDeviceStage if off_device else NativeStage)(self, job)

    def own(self) -> dict[str, object]:
        """Values of the options that the library's sampler declares."""
        return {name: getattr(self, name) for name in self.library.options}


@lru_cache(maxsize=64)
def spec_of(name: str, library: type[Sampler]) -> type[NativeSampler]:
    """Create the spec class of a library sampler; its options become fields."""
    return dataclasses.make_dataclass(
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


def native(name: str | type[Sampler], **options: object) -> NativeSampler:
    """Return the spec of a library sampler, by name or class. Raises ``UsageError``."""
    if isinstance(name, str):
        spec = spec_of(name, registry.load(registry.SAMPLER, name))()
    else:
        spec = spec_of(name.name, name)()
    for option_name, value in options.items():
        spec = spec.changed(option_name, value)
    return spec


def _built(spec: NativeSampler, job: Job) -> Sampler:
    """Build the library's sampler of a cell."""
    cell, graph = job.cell, job.graph
    weighted = spec.pick in WEIGHTED or spec.library.law == BY_WEIGHT
    if weighted and graph.weights is None:
        raise UnsupportedError(
            f"pick '{spec.pick}' needs edge weights, and '{graph.name}' stores none"
        )
    return checked_sampler(
        spec.library,
        graph,
        cell.fanouts,
        job.device,
        cell.seed,
        pick=spec.pick,
        frontier=spec.frontier,
        topology=None if job.device.type == "cpu" else spec.topology,
        weights="graph" if weighted else None,
        options=spec.own(),
    )


class NativeStage(LibraryStage):
    """An exact sampler of the library; its edges are compared with the reference."""

    native = exact = True

    def __init__(self, spec: NativeSampler, job: Job) -> None:
        super().__init__(spec, job, _built(spec, job))

    @property
    def submits_async(self) -> bool:
        """As the library's sampler; False for a subclass with its own ``sample``."""
        return self.sampler.submits_async and type(self).sample is LibraryStage.sample

    def begin(self, seeds: Tensor, epoch: int, number: int) -> object:
        """Submit a batch; draw it at once unless ``submits_async``."""
        draw = self.sampler.begin if self.submits_async else self.sample
        return draw(seeds, epoch, number)

    def end(self, ticket: object) -> MiniBatch:
        """Return the batch of a ticket."""
        return self.sampler.end(ticket)

    def checked(self, seeds: Tensor, number: int) -> MiniBatch:
        """Draw a batch of epoch 0 with edge positions; random walks have visits instead."""
        walks = self.pick == "random_walk"
        return self.sampler.sample(seeds, 0, number, with_positions=not walks)

    @cached_property
    def law(self) -> Law:
        """Inclusion law of the sampler's pick."""
        walks, length = self.sampler.setting.pick.walk[:2] or (0, 0)
        graph = self.job.graph
        return Law.of(self.pick, graph.indptr, graph.weights, walks * length)

    def check(self, seeds: Tensor) -> None:
        """Compare edges with the reference, and the timed draw with the checked one."""
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


class OffDeviceStage(NativeStage):
    """A sampler whose graph is outside GPU memory; it counts transferred bytes.

    With the graph in GPU memory nothing is counted: a batch takes no longer than the counting.
    """

    def __init__(self, spec: NativeSampler, job: Job) -> None:
        super().__init__(spec, job)
        self._where = "zero_copy" if spec.topology == "uva" else "host"

    def sample(self, seeds: Tensor, epoch: int, number: int) -> MiniBatch:
        """Draw all hops in one dispatch and count the bytes read and copied."""
        batch = super().sample(seeds, epoch, number)
        count_off_device(self.job, batch, self._where)
        return batch


def count_off_device(job: Job, batch: Batch, where: str) -> None:
    """Count the topology that a batch was sampled from, and its copy if ``where`` is the host."""
    counts, ids, sizes = job.counts, job.graph.indices.element_size(), batch.sizes()
    rows = sum(dst.numel() for dst, _ in sizes.hops)
    counts.add("sampler", TOPOLOGY_BYTES, rows * OFFSET_BYTES + sizes.num_edges * ids, where)
    counts.add("sampler", CALLS, 1, where)
    if where == "host":
        moved = sum(t.numel() * t.element_size() for t in batch.tensors())
        counts.add("sampler", BLOCK_BYTES, moved, "host_copy")


def _bare(batch: MiniBatch) -> MiniBatch:
    """Return the batch without positions, as in timed epochs."""
    return replace(batch, blocks=[replace(block, positions=None) for block in batch.blocks])
