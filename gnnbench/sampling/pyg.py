"""PyG's loaders as stages: around PyG's own sampler, and around ours."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from gnnbench.core.job import Job
from gnnbench.core.missing import Missing
from gnnbench.core.stage import option
from gnnbench.datasets.graph import Graph
from gnnbench.kernels.missing import native_missing
from gnnbench.kernels.pyg_import import (
    EXTENSIONS,
    extension_missing,
    extensions,
    pyg_missing,
    sample_by,
    sampling_by,
)
from gnnbench.sampling.build import build_sampler
from gnnbench.sampling.pyg_batch import PygBatch
from gnnbench.sampling.stage import DEFAULT, SamplerSpec, SamplerStage
from gnnbench.validation.law import UNEVEN, Law

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11: workers run on 3.10 too

NODES_AT_ONCE = 1 << 22
"""Nodes whose edges' destinations are written at once."""


@dataclass(frozen=True)
class PygSampler(SamplerSpec):
    """The real ``NeighborLoader``, its sampler from pyg-lib or torch-sparse.

    ``extension`` is the machine's choice unless it is named: what PyG itself would take. A name is
    kept, installed or not.
    """

    name: ClassVar[str] = "pyg"
    summary: ClassVar[str] = "the real PyG: NeighborLoader with its own sampler, on the CPU"
    mini_batches: ClassVar[bool] = False
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    frontiers: ClassVar[tuple[str, ...]] = ("new",)
    loads: ClassVar[bool] = True
    extension: str = option(
        DEFAULT,
        "whose sampler: default: pyg-lib where it is installed, else torch-sparse",
        (DEFAULT, *EXTENSIONS),
    )
    workers: int = option(
        0, "processes that draw the epoch's batches ahead; 0: the loop draws them", range(257)
    )

    def missing(self, device: str) -> Missing | None:
        """PyG and the sampling extension must be installed."""
        return pyg_missing(device) or extension_missing(self._extension())

    def _extension(self) -> str:
        if self.extension != DEFAULT:
            return self.extension
        return next(iter([*extensions(), *EXTENSIONS]))

    def resolved(self, device: str) -> Self:
        """The same with every default put in."""
        return replace(super().resolved(device), extension=self._extension())

    def picks_on(self, device: str) -> tuple[str, ...]:
        """PyG does not let one choose."""
        return ("pyg",)

    def build(self, job: Job) -> PygStage:
        """A ``NeighborLoader`` over the same graph."""
        return (PygWorkersStage if self.workers else PygStage)(self, job)


@dataclass(frozen=True)
class PygNativeSampler(SamplerSpec):
    """PyG's ``NodeLoader`` around our sampler, for machines without PyG's extension."""

    name: ClassVar[str] = "pyg-native"
    summary: ClassVar[str] = "PyG's NodeLoader around our hop-by-hop sampler"
    mini_batches: ClassVar[bool] = False
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    frontiers: ClassVar[tuple[str, ...]] = ("new",)

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """PyG must be installed and the native library have been built."""
        return pyg_missing(device) or native_missing()

    def picks_on(self, device: str) -> tuple[str, ...]:
        """Those of DGL."""
        return ("floyd", "reservoir")

    def build(self, job: Job) -> PygNativeStage:
        """A ``NodeLoader`` over the same graph."""
        return PygNativeStage(self, job)


def _data(job: Job) -> Any:
    from torch_geometric.data import Data

    data = Data(x=job.graph.features, y=job.graph.labels)
    data.num_nodes = job.graph.num_nodes
    return data


def _edge_index(graph: Graph, shared: bool) -> Tensor:
    """Edges as PyG takes them, (2, edges) of int64: sources, then destinations, which ascend.

    They are written where they are to be and nothing else of their size is made: 16 bytes an edge
    are half of a host's memory at paper scale. ``shared``: in shared memory, whither PyG would
    copy them for its worker processes.
    """
    size = 2 * graph.num_edges
    if shared and size:
        storage = torch.UntypedStorage._new_shared(8 * size)
        edges = torch.tensor([], dtype=torch.int64).set_(storage).view(2, -1)
    else:
        edges = torch.empty(size, dtype=torch.int64).view(2, -1)
    edges[0].copy_(graph.indices)
    for first in range(0, graph.num_nodes, NODES_AT_ONCE):
        bounds = graph.indptr[first : first + NODES_AT_ONCE + 1]
        nodes = torch.arange(first, first + bounds.numel() - 1)
        dst = torch.repeat_interleave(nodes, bounds.diff())
        edges[1, int(bounds[0]) : int(bounds[-1])] = dst
    return edges


class LoaderStage(SamplerStage):
    """A loader of PyG's by its own collate function; it draws on the host.

    For a GPU the subgraph is then copied there out of pinned memory, and nothing waits for it, as
    with ``pin_memory=True`` and ``batch.to(device, non_blocking=True)``.
    """

    loader: Any

    def __init__(self, spec: SamplerSpec, job: Job) -> None:
        super().__init__(spec, job)
        self._expected: Sequence[Tensor] = ()
        self._on_host: Sequence[Tensor] = ()

    def expect(self, epoch: int, batches: Sequence[Tensor]) -> None:
        """Remember them."""
        self._expected, self._on_host = batches, ()

    def _in_turn(self, seeds: Tensor, number: int) -> bool:
        """Whether an epoch that was told asks for a batch."""
        return number < len(self._expected) and self._expected[number] is seeds

    def _seeds(self, seeds: Tensor, number: int) -> Tensor:
        """Seeds on the host; those of an epoch come over at once, for a copy waits for the GPU."""
        if seeds.device.type == "cpu" or not self._in_turn(seeds, number):
            return seeds.cpu()
        if not self._on_host:
            sizes = [s.numel() for s in self._expected]
            self._on_host = torch.cat(list(self._expected)).cpu().split(sizes)
        return self._on_host[number]

    def sample(self, seeds: Tensor, epoch: int, number: int) -> PygBatch:
        """PyG's ``SamplerOutput``."""
        return self._batch(number, self.loader.collate_fn(self._seeds(seeds, number)))

    def _batch(self, number: int, out: Any, shared: bool = False) -> PygBatch:
        hops = len(self.job.cell.fanouts)
        return PygBatch(number, out, hops, self.loader, self.job.device, shared)

    @property
    def sampled_on(self) -> torch.device:
        """The host."""
        return torch.device("cpu")


class PygStage(LoaderStage):
    """``NeighborLoader``, its sampler from one extension."""

    def __init__(self, spec: PygSampler, job: Job) -> None:
        super().__init__(spec, job)
        self._extension = spec.extension
        with sampling_by(self._extension):
            self.loader = self._loader(batch_size=job.cell.batch_size)

    def _loader(self, **options: Any) -> Any:
        """Over the same graph, its edges given sorted by destination."""
        from torch_geometric.loader import NeighborLoader

        data = _data(self.job)
        data.edge_index = _edge_index(self.job.graph, shared=options.get("num_workers", 0) > 0)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*pyg-lib.*")
            return NeighborLoader(
                data,
                num_neighbors=list(self.job.cell.fanouts),
                input_nodes=None,
                is_sorted=True,
                filter_per_worker=False,
                **options,
            )

    def sample(self, seeds: Tensor, epoch: int, number: int) -> PygBatch:
        """PyG's ``SamplerOutput``, of the extension."""
        with sampling_by(self._extension):
            return super().sample(seeds, epoch, number)

    @cached_property
    def law(self) -> Law:
        """torch-sparse 0.6.18 draws the last edges of a row too rarely, by fanout 1 the very last
        one never (rusty1s/pytorch_sparse issue 385)."""
        law = super().law
        return replace(law, name=UNEVEN) if self._extension == "torch-sparse" else law


class Asked:
    """The batches that a loader is to draw, as its sampler of batches: lists of node ids."""

    def __init__(self) -> None:
        self.batches: Sequence[Tensor] = ()

    def __iter__(self) -> Iterator[list[int]]:
        return (seeds.tolist() for seeds in self.batches)

    def __len__(self) -> int:
        return len(self.batches)


class PygWorkersStage(PygStage):
    """The same with ``num_workers`` processes that live on from epoch to epoch.

    An epoch's first batch sets them to work on all of its batches, as many ahead as
    ``prefetch_factor`` says by default; ``sample`` waits for the next one. Features are fetched in
    the training process, by all its threads (``filter_per_worker=False``). A batch out of turn (at
    the gate, in a look inside) goes through the processes alone.
    """

    ahead = True

    def __init__(self, spec: PygSampler, job: Job) -> None:
        self._workers = spec.workers
        self._asked = Asked()
        self._coming: deque[Tensor] = deque()
        self._drawn: Any = None
        super().__init__(spec, job)

    def _loader(self, **options: Any) -> Any:
        return super()._loader(
            batch_sampler=self._asked,
            num_workers=self._workers,
            persistent_workers=True,
            worker_init_fn=partial(_begin, self._extension),
        )

    def sample(self, seeds: Tensor, epoch: int, number: int) -> PygBatch:
        """The next batch that the processes have drawn."""
        if not (self._coming and self._coming[0] is seeds):
            in_turn = self._in_turn(seeds, number)
            self._coming = deque(self._expected[number:] if in_turn else [seeds])
            coming = enumerate(self._coming, number)
            self._asked.batches = [self._seeds(each, nth) for nth, each in coming]
            # Beneath PyG's own iterator, which fetches the features as it yields.
            self._drawn = iter(self.loader).iterator
        self._coming.popleft()
        return self._batch(number, next(self._drawn), shared=True)

    def close(self) -> None:
        """End the processes; left to the collector of garbage, each is waited for 5 s in vain."""
        if self._drawn is not None:
            self._drawn._shutdown_workers()
            self._drawn = None


def _begin(extension: str, worker: int) -> None:
    """In a worker process, before its first batch."""
    sample_by(extension)


class PygNativeStage(LoaderStage):
    """``NodeLoader`` around our sampler as a PyG ``BaseSampler``."""

    def __init__(self, spec: SamplerSpec, job: Job) -> None:
        super().__init__(spec, job)
        from torch_geometric.loader import NodeLoader

        cell = self.job.cell
        self._sampler = build_sampler(
            "hop-by-hop",
            self.job.graph,
            cell.fanouts,
            seed=cell.seed,
            pick=self.pick,
            frontier=self.frontier,
        ).as_pyg()
        self.loader = NodeLoader(
            _data(self.job),
            node_sampler=self._sampler,
            input_nodes=None,
            filter_per_worker=False,
            batch_size=cell.batch_size,
        )

    def sample(self, seeds: Tensor, epoch: int, number: int) -> PygBatch:
        """As PyG's, with the batch's place in the epoch told to our sampler."""
        self._sampler.set_epoch(epoch, number)
        return super().sample(seeds, epoch, number)
