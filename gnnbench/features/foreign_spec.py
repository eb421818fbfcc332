"""Feature stores of DGL, GraphBolt, PyG and WholeGraph, as recipes name them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core.errors import UnsupportedError
from gnnbench.core.missing import Missing
from gnnbench.core.option import Interval
from gnnbench.core.stage import option
from gnnbench.features.spec import DEFAULT, StoreSpec, table_location
from gnnbench.kernels.dgl_import import dgl_missing, graphbolt_missing
from gnnbench.kernels.missing import gpu_missing
from gnnbench.kernels.pyg_import import pyg_missing
from gnnbench.kernels.wholegraph_import import MEMORY, wholegraph_missing

if TYPE_CHECKING:  # keeps torch out of the listing of systems
    from typing import Self

    from gnnbench.core.job import Job
    from gnnbench.features.base import FeatureStore, RowStore

TABLES = ("host", "uva", "gpu")


@dataclass(frozen=True)
class DglGather(StoreSpec):
    """DGL's feature fetch: ``index_select`` where the table is, or its gather by a GPU."""

    name: ClassVar[str] = "dgl"
    summary: ClassVar[str] = "DGL's: torch.index_select, on a GPU its gather of pinned rows"
    table: str = option(
        DEFAULT,
        "where the table is: host; on a GPU uva: pinned, its rows gathered by the GPU (default);"
        " gpu: in its memory; host: selected on the host into pinned memory, then copied",
        (DEFAULT, *TABLES),
    )

    def missing(self, device: str) -> Missing | None:
        """DGL's gather needs a DGL with CUDA; torch's needs no DGL."""
        if device == "cpu":
            return None
        return dgl_missing(device) if self.table in (DEFAULT, "uva") else gpu_missing()

    def shared(self, device: str) -> tuple[str, ...]:
        """The table, if it stays in host memory."""
        return ("features",) if device == "cuda" and self.table != "gpu" else ()

    def resolved(self, device: str) -> Self:
        """Return a copy with every default resolved. Raises ``UnsupportedError``."""
        return replace(super().resolved(device), table=table_location(self.table, device))

    def build(self, job: Job) -> FeatureStore:
        """Build the store for the table's location."""
        from gnnbench.features import foreign

        if job.device.type == "cpu":
            return foreign.IndexSelect(job)
        if self.table == "uva":
            return foreign.PinnedRows(job)
        return foreign.DeviceSelect(job) if self.table == "gpu" else foreign.PinnedSelect(job)


@dataclass(frozen=True)
class BoltGather(StoreSpec):
    """GraphBolt's feature fetch: ``graphbolt.index_select``, for a GPU over a locked table, or its
    features in a file."""

    name: ClassVar[str] = "graphbolt"
    summary: ClassVar[str] = "GraphBolt's: its index_select, on a GPU of locked rows, or a file"
    file: str = option(
        "none",
        "a file with the table: none: it is in host memory, for a GPU locked and read by it;"
        " io_uring: read by its DiskBasedFeature; mmap: a mapped file; rows of a file are read by"
        " the host, for a GPU then copied",
        ("none", "io_uring", "mmap"),
        added=True,
    )
    cache_gib: float = option(
        0.0,
        "capacity of its CPU cache of rows before a file, in GiB; 0: no cache",
        Interval(0, 1 << 20),
        added=True,
    )

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """GraphBolt must be installed, with CUDA for a GPU."""
        return graphbolt_missing(device)

    def shared(self, device: str) -> tuple[str, ...]:
        """The table, if it is locked in place."""
        return ("features",) if device == "cuda" and self.file == "none" else ()

    def resolved(self, device: str) -> Self:
        """Return a copy with every default resolved. Raises ``UnsupportedError``."""
        if self.cache_gib and self.file == "none":
            raise UnsupportedError(
                "features 'graphbolt': cache_gib is the size of a cache before a file; give"
                " file=io_uring or mmap, or cache_gib=0"
            )
        return super().resolved(device)

    def build(self, job: Job) -> FeatureStore:
        """Build the store on the host, over the table locked as for ``uva``, or over a file."""
        from gnnbench.features.foreign import BoltRows, BoltSelect

        if self.file != "none":
            from gnnbench.features.bolt_file import BoltFile

            return BoltFile(job, self.file, int(self.cache_gib * 2**30))
        return BoltSelect(job) if job.device.type == "cpu" else BoltRows(job)


@dataclass(frozen=True)
class PygFilter(StoreSpec):
    """The filter function of the PyG loader that drew the batch."""

    name: ClassVar[str] = "pyg"
    summary: ClassVar[str] = "PyG's: the loader's own filter; for a GPU pinned, then copied"

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """PyG must be installed."""
        return pyg_missing(device)

    def build(self, job: Job) -> FeatureStore:
        """Build the store; each batch refers to its loader."""
        from gnnbench.features.foreign import LoaderFilter

        return LoaderFilter(job)


@dataclass(frozen=True)
class WholeGraphGather(StoreSpec):
    """WholeGraph's gather from a table in its own memory."""

    name: ClassVar[str] = "wholegraph"
    summary: ClassVar[str] = "WholeGraph's: its gather of a copy in its memory"
    devices: ClassVar[tuple[str, ...]] = ("cuda",)
    table: str = option("uva", "uva: in locked host memory; gpu: in the GPU's", ("uva", "gpu"))
    memory: str = option("continuous", "WholeMemory of the table", MEMORY)

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """WholeGraph's wheels and a GPU are required."""
        return wholegraph_missing()

    def build(self, job: Job) -> RowStore:
        """Build with a copy of the table."""
        from gnnbench.features.wholegraph import WholeRows

        return WholeRows(job, self.table, self.memory)
