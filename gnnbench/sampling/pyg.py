"""PyG's loaders as stages: with PyG's sampler, and with gnnbench's."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, ClassVar

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

    from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader, NodeLoader
    from torch_geometric.sampler import SamplerOutput

NODES_PER_CHUNK = 1 << 22  # nodes whose edge destinations are written at a time


@dataclass(frozen=True)
class PygSampler(SamplerSpec):
    """The real ``NeighborLoader``, with the sampler of pyg-lib or torch-sparse.

    The default ``extension`` is the one that PyG would choose on this machine. An explicit name is
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
        """Return a copy with every default resolved. Raises ``UnsupportedError``."""
        return replace(super().resolved(device), extension=self._extension())

    def picks_on(self, device: str) -> tuple[str, ...]:
        """PyG has one pick function."""
        return ("pyg",)

    def build(self, job: Job) -> PygStage:
        """Build a ``NeighborLoader`` over the cell's graph."""
        return (PygWorkersStage if self.workers else PygStage)(self, job)


@dataclass(frozen=True)
class PygNativeSampler(SamplerSpec):
    """PyG's ``NodeLoader`` with a sampler of gnnbench, for machines without PyG's extensions."""

    name: ClassVar[str] = "pyg-native"
    summary: ClassVar[str] = "PyG's NodeLoader around our hop-by-hop sampler"
    mini_batches: ClassVar[bool] = False
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    frontiers: ClassVar[tuple[str, ...]] = ("new",)

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """PyG must be installed, and the native library built."""
        return pyg_missing(device) or native_missing()

    def picks_on(self, device: str) -> tuple[str, ...]:
        """The picks of DGL."""
        return ("floyd", "reservoir")

    def build(self, job: Job) -> PygNativeStage:
        """Build a ``NodeLoader`` over the cell's graph."""
        return PygNativeStage(self, job)


def _data(job: Job) -> Data:
    from torch_geometric.data import Data

    data = Data(x=job.graph.features, y=job.graph.labels)
    data.num_nodes = job.graph.num_nodes
    return data


def _edge_index(graph: Graph, shared: bool) -> Tensor:
    """Edges in PyG's form, int64 ``[2, num_edges]``: sources, and ascending destinations.

    They are written in place, without temporaries of their size: 16 bytes an edge are half of a
    host's memory at paper scale. ``shared``: in shared memory, to which PyG would copy them for its
    worker processes.
    """
    size = 2 * graph.num_edges
    if shared and size:
        storage = torch.UntypedStorage._new_shared(8 * size)
        edges = torch.tensor([], dtype=torch.int64).set_(storage).view(2, -1)
    else:
        edges = torch.empty(size, dtype=torch.int64).view(2, -1)
    edges[0].copy_(graph.indices)
    for first in range(0, graph.num_nodes, NODES_PER_CHUNK):
        bounds = graph.indptr[first : first + NODES_PER_CHUNK + 1]
        nodes = torch.arange(first, first + bounds.numel() - 1)
        dst = torch.repeat_interleave(nodes, bounds.diff())
        edges[1, int(bounds[0]) : int(bounds[-1])] = dst
    return edges


class LoaderStage(SamplerStage):
    """Calls the collate function of a PyG loader, which samples on the host.

    For a GPU the subgraph is copied asynchronously from pinned memory, as with ``pin_memory=True``
    and ``batch.to(device, non_blocking=True)``.
    """

    loader: NodeLoader

    def __init__(self, spec: SamplerSpec, job: Job) -> None:
        super().__init__(spec, job)
        self._expected: Sequence[Tensor] = ()
        self._on_host: Sequence[Tensor] = ()
        self._last_position = 0

    def expect(self, epoch: int, batches: Sequence[Tensor]) -> None:
        """Remember the epoch's seeds."""
        self._expected, self._on_host, self._last_position = batches, (), 0

    def _position(self, seeds: Tensor) -> int | None:
        """Return the position of ``seeds`` among the announced batches; None if they are not there.

        A rank's batches are not numbered one after the other.
        """
        last, size = self._last_position, len(self._expected)
        for position in chain(range(last, size), range(min(last, size))):
            if self._expected[position] is seeds:
                self._last_position = position
                return position
        return None

    def _seeds(self, seeds: Tensor) -> Tensor:
        """Seeds on the host; an epoch's seeds are copied at once, since a copy synchronizes."""
        if seeds.device.type == "cpu" or (position := self._position(seeds)) is None:
            return seeds.cpu()
        if not self._on_host:
            sizes = [s.numel() for s in self._expected]
            self._on_host = torch.cat(list(self._expected)).cpu().split(sizes)
        return self._on_host[position]

    def sample(self, seeds: Tensor, epoch: int, number: int) -> PygBatch:
        """Draw a batch by the loader's collate function."""
        return self._batch(number, self.loader.collate_fn(self._seeds(seeds)))

    def _batch(self, number: int, out: SamplerOutput, shared: bool = False) -> PygBatch:
        hops = len(self.job.cell.fanouts)
        return PygBatch(number, out, hops, self.loader, self.job.device, shared)

    @property
    def sampled_on(self) -> torch.device:
        """The CPU."""
        return torch.device("cpu")


class PygStage(LoaderStage):
    """``NeighborLoader`` with the sampler of one extension."""

    def __init__(self, spec: PygSampler, job: Job) -> None:
        super().__init__(spec, job)
        self._extension = spec.extension
        with sampling_by(self._extension):
            self.loader = self._build_loader()

    def _build_loader(self) -> NeighborLoader:
        return self._neighbor_loader(batch_size=self.job.cell.batch_size)

    def _neighbor_loader(self, shared: bool = False, **options: object) -> NeighborLoader:
        """A loader over the cell's graph, with edges sorted by destination."""
        from torch_geometric.loader import NeighborLoader

        data = _data(self.job)
        data.edge_index = _edge_index(self.job.graph, shared)
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
        """Draw a batch with the extension's sampler."""
        with sampling_by(self._extension):
            return super().sample(seeds, epoch, number)

    @cached_property
    def law(self) -> Law:
        """Inclusion law; torch-sparse 0.6.18 draws the last edges of a row too rarely, and with
        fanout 1 never the last one (rusty1s/pytorch_sparse issue 385)."""
        law = super().law
        return replace(law, name=UNEVEN) if self._extension == "torch-sparse" else law


class EpochBatchSampler:
    """Batch sampler of a loader: yields the seeds of set ``batches`` as lists of node ids."""

    def __init__(self) -> None:
        self.batches: Sequence[Tensor] = ()

    def __iter__(self) -> Iterator[list[int]]:
        return (seeds.tolist() for seeds in self.batches)

    def __len__(self) -> int:
        return len(self.batches)


class PygWorkersStage(PygStage):
    """``NeighborLoader`` with ``num_workers`` persistent worker processes.

    An epoch's first batch starts all batches of the epoch, with the default ``prefetch_factor``;
    ``sample`` waits for the next one. The training process fetches features with all its threads
    (``filter_per_worker=False``). A batch outside the announced epoch (at the gate, in a profile)
    is an epoch by itself.
    """

    ahead = True

    def __init__(self, spec: PygSampler, job: Job) -> None:
        self._workers = spec.workers
        self._batch_sampler = EpochBatchSampler()
        self._pending: deque[Tensor] = deque()
        self._outputs: _MultiProcessingDataLoaderIter | None = None
        super().__init__(spec, job)

    def _build_loader(self) -> NeighborLoader:
        return self._neighbor_loader(
            shared=True,
            batch_sampler=self._batch_sampler,
            num_workers=self._workers,
            persistent_workers=True,
            worker_init_fn=partial(_initialize_worker, self._extension),
        )

    def sample(self, seeds: Tensor, epoch: int, number: int) -> PygBatch:
        """Return the next batch of the worker processes."""
        if not (self._pending and self._pending[0] is seeds):
            position = self._position(seeds)
            self._pending = deque([seeds] if position is None else self._expected[position:])
            self._batch_sampler.batches = [self._seeds(batch) for batch in self._pending]
            # PyG's own iterator would also fetch features; its inner one does not.
            self._outputs = iter(self.loader).iterator
        assert self._outputs is not None
        self._pending.popleft()
        return self._batch(number, next(self._outputs), shared=True)

    def close(self) -> None:
        """End the processes; garbage collection would wait 5 s for each."""
        if self._outputs is not None:
            self._outputs._shutdown_workers()
            self._outputs = None


def _initialize_worker(extension: str, worker: int) -> None:
    """Select the extension in a worker process, before its first batch."""
    sample_by(extension)


class PygNativeStage(LoaderStage):
    """``NodeLoader`` with a sampler of gnnbench as a PyG ``BaseSampler``."""

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
        """Draw a batch; the adapter gets its epoch and number first."""
        self._sampler.set_epoch(epoch, number)
        return super().sample(seeds, epoch, number)
