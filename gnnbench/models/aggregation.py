"""The aggregations by name. Their dependencies are imported when they are built."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core.counters import GROUPS_TIME
from gnnbench.core.missing import Missing
from gnnbench.core.stage import Spec, option
from gnnbench.kernels.dgl_import import dgl_missing
from gnnbench.kernels.missing import gpu_missing, native_missing
from gnnbench.kernels.pyg_import import pyg_missing, require_pyg

NARROWING, FEWEST_BYTES = "narrowing", "fewest-bytes"
GATHER, SCATTER = "gather", "scatter"

if TYPE_CHECKING:  # keeps torch out of the listing of systems
    from contextlib import AbstractContextManager

    from gnnbench.core.job import Job
    from gnnbench.core.minibatch import Block
    from gnnbench.models.framework import Framework
    from gnnbench.models.native import Aggregate


@dataclass(frozen=True)
class AggregateSpec(Spec):
    """An aggregation as a recipe names it; ``devices`` are those on which its layers run.

    ``by_chance``  devices on which sums use atomics, in a nondeterministic order
    ``lacks``      features it lacks that some models need: ``attention``, edge ``weights``
    """

    kind: ClassVar[str] = "aggregate"
    devices: ClassVar[tuple[str, ...]] = ("cpu",)
    padded: ClassVar[bool] = False  # whether its layers take native blocks
    captured: ClassVar[bool] = False  # whether a CUDA graph can capture its layers
    by_chance: ClassVar[tuple[str, ...]] = ()
    lacks: ClassVar[tuple[str, ...]] = ()

    def adds_by_chance(self, device: str) -> bool:
        """Whether this configuration adds in a nondeterministic order on ``device``."""
        return device in self.by_chance

    @classmethod
    @abstractmethod
    def missing(cls, device: str) -> Missing | None:
        """None where the layers can run on this machine's ``device``; must be cheap."""

    @abstractmethod
    def build(self) -> Framework:
        """Build its framework. Raises ``MissingError`` where a dependency is missing."""

    def build_for(self, job: Job) -> Framework:
        """The same for the epochs of a job, to whose counts it may add. Raises as ``build``."""
        del job
        return self.build()


@dataclass(frozen=True)
class NativeSpec(AggregateSpec):
    """Our layers over a kernel of the native library."""

    padded: ClassVar[bool] = True

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """The native library must have been built."""
        return native_missing(device)


@dataclass(frozen=True)
class OwnOrder(NativeSpec):
    """Native layers with a choice of when W is multiplied."""

    captured: ClassVar[bool] = True

    linear: str = option(
        NARROWING, "when W is multiplied: before the aggregation where it narrows the rows, as by"
        " DGL's layers (narrowing), or whenever training then moves fewer bytes, a bias and ReLU in"
        " one pass, too (fewest-bytes)",
        (NARROWING, FEWEST_BYTES), added=True,
    )  # fmt: skip

    @abstractmethod
    def aggregation(self) -> Aggregate:
        """Import and return its operator."""

    def build(self) -> Framework:
        """Our layers over the operator."""
        from gnnbench.kernels.attention import attend
        from gnnbench.kernels.library import load_native
        from gnnbench.models.native import Native

        load_native()
        return Native(self.aggregation(), attend, self.linear == FEWEST_BYTES)


@dataclass(frozen=True)
class Csr(OwnOrder):
    """Our layers; a destination's sampled neighbours are added up one after the other."""

    name: ClassVar[str] = "csr"
    summary: ClassVar[str] = "our layers, over our SpMM on the blocks' CSR"
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")

    def aggregation(self) -> Aggregate:
        """The sum of rows."""
        from gnnbench.kernels.aggregate import aggregate

        return aggregate


@dataclass(frozen=True)
class Tuned(OwnOrder):
    """Our layers; the fastest sum of rows that we have on a GPU."""

    name: ClassVar[str] = "tuned"
    summary: ClassVar[str] = "our layers, over our fastest kernel on a GPU"
    devices: ClassVar[tuple[str, ...]] = ("cuda",)

    def aggregation(self) -> Aggregate:
        """The sum of rows."""
        from gnnbench.kernels.aggregate_tuned import aggregate_tuned

        return aggregate_tuned


@dataclass(frozen=True)
class MemoryAware(NativeSpec):
    """Our layers; FastGL's Memory-Aware kernels, as published."""

    name: ClassVar[str] = "memory-aware"
    summary: ClassVar[str] = "our layers, over FastGL's Memory-Aware aggregation, as published"
    implementation: ClassVar[int] = 2  # 1 read ids from global memory and had barriers of the block
    devices: ClassVar[tuple[str, ...]] = ("cuda",)
    captured: ClassVar[bool] = True

    x: int = option(8, "destinations of a block of threads (the paper's X)", (1, 2, 4, 8, 16, 32))
    y: int = option(32, "columns of a block of threads (the paper's Y)", (8, 16, 32))
    backward: str = option(
        GATHER, "gradient: the same sum over the transpose, as by Eq. 5 (gather), or added to the"
        " rows of sources by atomics, as by the authors' code (scatter)",
        (GATHER, SCATTER), added=True,
    )  # fmt: skip

    def adds_by_chance(self, device: str) -> bool:
        """The scatter uses atomics."""
        return self.backward == SCATTER

    def build(self) -> Framework:
        """Our layers over the kernels."""
        from functools import partial

        from gnnbench.kernels.aggregate_memory_aware import (
            aggregate_memory_aware,
            attend_memory_aware,
        )
        from gnnbench.kernels.library import load_native
        from gnnbench.models.native import Native

        load_native()
        scatter = self.backward == SCATTER
        return Native(
            partial(aggregate_memory_aware, x_nodes=self.x, y_dims=self.y, scatter=scatter),
            partial(attend_memory_aware, x_nodes=self.x, y_dims=self.y, scatter=scatter),
        )


@dataclass(frozen=True)
class MemoryAwareWarp(NativeSpec):
    """Our layers; FastGL's Memory-Aware aggregation at its best."""

    name: ClassVar[str] = "memory-aware-warp"
    summary: ClassVar[str] = "our layers, over Memory-Aware aggregation with a warp per destination"
    devices: ClassVar[tuple[str, ...]] = ("cuda",)
    captured: ClassVar[bool] = True

    x: int = option(8, "warps of a block of threads", (1, 2, 4, 8))
    y: int = option(128, "most columns of a destination that a warp sums at once", (64, 128))

    def build(self) -> Framework:
        """Our layers over the kernels."""
        from functools import partial

        from gnnbench.kernels.aggregate_memory_aware import (
            aggregate_memory_aware_warp,
            attend_memory_aware_warp,
        )
        from gnnbench.kernels.library import load_native
        from gnnbench.models.native import Native

        load_native()
        return Native(
            partial(aggregate_memory_aware_warp, warps=self.x, columns=self.y),
            partial(attend_memory_aware_warp, warps=self.x, columns=self.y),
        )


@dataclass(frozen=True)
class Spmm(AggregateSpec):
    """Our layers; torch's sparse product, which is MKL's or cuSPARSE's."""

    name: ClassVar[str] = "spmm"
    summary: ClassVar[str] = "our layers, over torch's product of a sparse CSR matrix"
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    padded: ClassVar[bool] = True
    lacks: ClassVar[tuple[str, ...]] = ("attention",)

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """On the CPU torch must be built with MKL, which its product calls."""
        if device != "cpu":
            return gpu_missing()
        import torch

        if torch.backends.mkl.is_available():
            return None
        return Missing("this torch is built without MKL", "install a torch with MKL")

    def build(self) -> Framework:
        """Our layers over the product."""
        from gnnbench.kernels.aggregate_spmm import aggregate_spmm
        from gnnbench.models.native import Native

        return Native(aggregate_spmm)


@dataclass(frozen=True)
class Scatter(AggregateSpec):
    """Our layers; a row for each edge is gathered, then scattered (PyG's way)."""

    name: ClassVar[str] = "scatter"
    summary: ClassVar[str] = "our layers, over gather and scatter, as PyG aggregates"
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    padded: ClassVar[bool] = True
    by_chance: ClassVar[tuple[str, ...]] = ("cuda",)

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """Torch is enough."""
        return None if device == "cpu" else gpu_missing()

    def build(self) -> Framework:
        """Our layers over torch's gather and scatter."""
        from gnnbench.kernels.aggregate_scatter import aggregate_scatter, attend_scatter
        from gnnbench.models.native import Native

        return Native(aggregate_scatter, attend_scatter)


@dataclass(frozen=True)
class GnnAdvisor(NativeSpec):
    """Our layers; GNNAdvisor's 2D workload, its groups made anew for every block."""

    name: ClassVar[str] = "gnnadvisor"
    summary: ClassVar[str] = "our layers, over GNNAdvisor's neighbour groups, made for every block"
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    by_chance: ClassVar[tuple[str, ...]] = ("cuda",)
    lacks: ClassVar[tuple[str, ...]] = ("attention", "weights")

    group: int = option(32, "most neighbours in a group", range(1, 1025))
    dim_workers: int = option(32, "threads of a warp for a group's columns", (1, 2, 4, 8, 16, 32))

    def build(self) -> Framework:
        """Our layers over the groups."""
        return self._with()

    def build_for(self, job: Job) -> Framework:
        """The same; the time to build groups is counted by epoch, as a part of compute."""
        from gnnbench.measure.stopwatch import Stopwatch

        watch, counts = Stopwatch(job.device), job.counts
        counts.settled_by(lambda: counts.add("aggregate", GROUPS_TIME, watch.take()))
        return self._with(watch=watch)

    def _with(self, watch: AbstractContextManager[None] | None = None) -> Framework[Block]:
        from functools import partial

        from gnnbench.kernels.aggregate_groups import aggregate_groups
        from gnnbench.kernels.library import load_native
        from gnnbench.models.native import Native

        load_native()
        run = partial(aggregate_groups, group=self.group, dim_workers=self.dim_workers)
        return Native(run if watch is None else partial(run, watch=watch), weighs=False)


@dataclass(frozen=True)
class DglLayers(AggregateSpec):
    """DGL's own layers."""

    name: ClassVar[str] = "dgl"
    summary: ClassVar[str] = "the real DGL: its own layers, and its message passing"
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """DGL must be installed, for a GPU one with CUDA."""
        return dgl_missing(device)

    def build(self) -> Framework:
        """DGL's layers."""
        from gnnbench.models.dgl_layers import DglFramework

        return DglFramework()


@dataclass(frozen=True)
class PygLayers(AggregateSpec):
    """PyG's own layers, and its message passing."""

    name: ClassVar[str] = "pyg"
    summary: ClassVar[str] = "the real PyG: its own layers, and message passing"
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    by_chance: ClassVar[tuple[str, ...]] = ("cuda",)

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """PyG must be installed."""
        return pyg_missing(device)

    def build(self) -> Framework:
        """PyG's layers."""
        require_pyg()
        from gnnbench.models.pyg_layers import PygFramework

        return PygFramework()
