"""The feature stores by name. What they need is imported when they are built."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from gnnbench.core.errors import UnsupportedError
from gnnbench.core.missing import Missing
from gnnbench.core.option import Interval
from gnnbench.core.stage import Spec, option, stage_option
from gnnbench.features.policies.policy import LEGAL, OPTIMAL, SIEVE, Policy
from gnnbench.features.policies.size import AUTO
from gnnbench.kernels.access import ACCESSES, MOST_READERS, PAGE_ORDERED, READERS
from gnnbench.kernels.dgl_import import dgl_missing, graphbolt_missing
from gnnbench.kernels.missing import gpu_missing, native_missing
from gnnbench.kernels.pyg_import import pyg_missing
from gnnbench.kernels.wholegraph_import import MEMORY, wholegraph_missing

if TYPE_CHECKING:  # keeps torch out of the listing of systems
    from typing import Self

    from gnnbench.core.job import Job
    from gnnbench.features.base import FeatureStore, RowStore, TableStore

DEFAULT = "default"
TABLES = ("host", "uva", "gpu")
REGISTERED = "registered"
UNION, BATCHES = "union", "batches"  # what a window holds


@dataclass(frozen=True)
class StoreSpec(Spec):
    """A feature store as a recipe names it."""

    kind: ClassVar[str] = "features"
    traced: ClassVar[bool] = False  # it has curves to tell of a trace

    @property
    def foresees(self) -> bool:
        """Whether it is an oracle, told each epoch's number before the epoch is timed.

        Only among stages of gnnbench's own, and with a sampler that can draw an epoch twice.
        """
        return False

    @property
    def derived(self) -> bool:
        """Whether how much it holds is derived from the memory that batches leave."""
        return False

    def lean(self) -> StoreSpec:
        """The same rows by a store that keeps no table in a GPU's memory, where there is one;
        ``self`` is resolved."""
        return self

    @abstractmethod
    def build(self, job: Job) -> FeatureStore:
        """The store of a cell."""


@dataclass(frozen=True)
class Host(StoreSpec):
    """Features in host memory, gathered by the cores (DGL's method)."""

    name: ClassVar[str] = "host"
    summary: ClassVar[str] = "gathered by the cores; for a GPU into locked memory, then copied"

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """The native library must have been built, for a GPU its CUDA part."""
        return native_missing(device)

    def shared(self, device: str) -> tuple[str, ...]:
        """The table, where rows of it go to a GPU: it may not wait for a disk."""
        return ("features",) if device == "cuda" else ()

    def build(self, job: Job) -> RowStore:
        """By the cell's device."""
        from gnnbench.features.host import HostGather, StagedGather

        return HostGather(job) if job.device.type == "cpu" else StagedGather(job)


@dataclass(frozen=True)
class Uva(StoreSpec):
    """Features in locked host memory, read by the GPU (DGL's gather by unified addresses)."""

    name: ClassVar[str] = "uva"
    summary: ClassVar[str] = "read out of locked host memory by a kernel"
    devices: ClassVar[tuple[str, ...]] = ("cuda",)

    access: str = option(
        PAGE_ORDERED,
        "naive: rows in the order of the ids; aligned: by whole lines, shifted (PyTorch-Direct);"
        " page-ordered: rows of 2 MiB together",
        ACCESSES,
    )
    memory: str = option(
        REGISTERED,
        "registered: the table that all lives of a run share, locked in place; vmm: pages of 2 MiB"
        " made by the driver and filled anew, a copy for each process",
        (REGISTERED, "vmm"),
    )
    blocks: int = option(
        0,
        "blocks of 1024 threads that read page-ordered, each on one multiprocessor (a capped grid;"
        f" sort and kept rows before it take them all); 0: {READERS}, which fill the link",
        range(MOST_READERS + 1),
    )

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """The native library must have been built, for a GPU its CUDA part."""
        return native_missing(device)

    def shared(self, device: str) -> tuple[str, ...]:
        """The table, where it is locked in place: a copy is filled once, from the disk."""
        return ("features",) if self.memory == REGISTERED else ()

    def resolved(self, device: str) -> Self:
        """The same with the default put in. Raises ``UnsupportedError``."""
        made = super().resolved(device)
        if made.access == PAGE_ORDERED:
            return replace(made, blocks=made.blocks or READERS)
        if made.blocks:
            raise UnsupportedError(
                f"features 'uva': blocks={made.blocks} caps the grid of access=page-ordered alone,"
                f" not of {made.access}; give access=page-ordered, or blocks=0"
            )
        return made

    def plain(self) -> dict[str, Any]:
        """Name and fields; other ways of access have no such grid, and tell none."""
        found = super().plain()
        if self.access != PAGE_ORDERED and not self.blocks:
            del found["blocks"]
        return found

    def build(self, job: Job) -> RowStore:
        """The table, locked where the run's keeper holds it, else in a copy."""
        from gnnbench.features.uva import ZeroCopyGather

        return ZeroCopyGather(job, self.access, self.memory, self.blocks or READERS)


@dataclass(frozen=True)
class Gpu(StoreSpec):
    """All features on the GPU."""

    name: ClassVar[str] = "gpu"
    summary: ClassVar[str] = "the whole table in device memory"
    devices: ClassVar[tuple[str, ...]] = ("cuda",)

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """The native library must have been built, for a GPU its CUDA part."""
        return native_missing(device)

    def lean(self) -> StoreSpec:
        """Gathered by the cores."""
        return Host()

    def build(self, job: Job) -> FeatureStore:
        """The table, copied."""
        from gnnbench.features.gpu import DeviceGather

        return DeviceGather(job)


def _table(asked: str, device: str) -> str:
    """Where a table is, the default put in. Raises ``UnsupportedError``."""
    if asked == DEFAULT:
        return "host" if device == "cpu" else "uva"
    if device == "cpu" and asked in ("uva", "gpu"):
        raise UnsupportedError(f"features.table={asked} needs a GPU; give --device cuda, or host")
    return asked


FETCHING = (
    "where missing rows come from: host: gathered by the cores (default on a CPU), for a GPU then"
    " copied; uva: read by the GPU (default there)"
)
HOSTS = {"host": Host, "uva": Uva}


@dataclass(frozen=True)
class Over(StoreSpec):
    """A store before another, ``table``, which fetches the rows that it lacks."""

    traced: ClassVar[bool] = True
    table: StoreSpec | str = stage_option(DEFAULT, FETCHING, HOSTS)

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """The native library must have been built, for a GPU its CUDA part."""
        return native_missing(device)

    @property
    def foresees(self) -> bool:
        """As the store that fetches."""
        return isinstance(self.table, StoreSpec) and self.table.foresees

    @property
    def derived(self) -> bool:
        """As the store that fetches."""
        return isinstance(self.table, StoreSpec) and self.table.derived

    def shared(self, device: str) -> tuple[str, ...]:
        """The table, as of the store that fetches."""
        return self.under(device).shared(device)

    def resolved(self, device: str) -> Self:
        """The same with the default put in."""
        return replace(super().resolved(device), table=self.under(device).resolved(device))

    def under(self, device: str) -> StoreSpec:
        """The store that fetches. Raises ``UnsupportedError``."""
        name = self.table if isinstance(self.table, str) else self.table.name
        found = _table(name, device)
        return HOSTS[found]() if isinstance(self.table, str) else self.table

    def fetching(self, job: Job) -> RowStore:
        """The store that fetches, built; what it fetched is copied on before it is asked again."""
        from gnnbench.features.base import RowStore

        made = self.under(job.device.type).build(replace(job, held=1))
        assert isinstance(made, RowStore)
        return made

    def reading(self, job: Job) -> TableStore:
        """The same where it reads the table itself, so that it can fill what is before it."""
        from gnnbench.features.base import TableStore

        made = self.fetching(job)
        assert isinstance(made, TableStore)
        return made


@dataclass(frozen=True)
class Cache(Over):
    """Some rows on the device, others fetched from the host (GNNLab, PaGraph; GraphBolt)."""

    name: ClassVar[str] = "cache"
    summary: ClassVar[str] = (
        "the hottest rows in device memory, misses from the host's; of policy sieve those asked for"
        " lately (its queue is the host's, which waits once a batch)"
    )
    policy: str = option("presc#1", "what is cached", words=LEGAL)
    ratio: float | str = option(
        0.1,
        "cached rows over all rows of the table; auto: what batches without the cache leave of"
        " the GPU's memory",
        Interval(0, 1, (AUTO,)),
    )
    memory_gib: float = option(
        0.0, "the most that the cache may take, in GiB; 0: no limit", Interval(0, 1 << 20)
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        Policy.named(self.policy)

    def resolved(self, device: str) -> Self:
        """The same with the default put in. On a CPU nobody knows what ``auto`` may take."""
        if device == "cpu" and self.ratio == AUTO and not self.memory_gib:
            raise UnsupportedError(
                "features 'cache': ratio=auto is derived from a GPU's memory; on a CPU give"
                " memory_gib above 0, or a ratio"
            )
        return super().resolved(device)

    @property
    def foresees(self) -> bool:
        """``optimal`` is told an epoch before it runs."""
        return self.policy == OPTIMAL

    @property
    def derived(self) -> bool:
        """Where its ratio is ``auto``."""
        return self.ratio == AUTO

    def build(self, job: Job) -> RowStore:
        """The cache before the store that fetches its misses."""
        from gnnbench.features.cache import StaticCache
        from gnnbench.features.sieve import SieveCache

        policy, limit = Policy.named(self.policy), int(self.memory_gib * 2**30)
        under = self.reading(job)
        if policy.name == SIEVE:
            return SieveCache(job, self.ratio, limit, under)
        return StaticCache(job, policy, self.ratio, limit, under)


CACHED = FETCHING + "; cache: out of a cache before one of these (its settings: table.ratio ...)"
STORES = {**HOSTS, "cache": Cache}


@dataclass(frozen=True)
class Match(Over):
    """FastGL's Match: rows of the last batch are kept, only those that it lacks are fetched."""

    name: ClassVar[str] = "match"
    summary: ClassVar[str] = "rows of the last batch reused, the others fetched (FastGL's Match)"
    table: StoreSpec | str = stage_option(DEFAULT, CACHED, STORES)

    def build(self, job: Job) -> FeatureStore:
        """Over the store that fetches."""
        from gnnbench.features.match import MatchStore

        return MatchStore(job, self.fetching(job))


@dataclass(frozen=True)
class Window(Over):
    """The union of several batches' nodes, fetched once."""

    name: ClassVar[str] = "window"
    summary: ClassVar[str] = "rows of several batches' union fetched once, in ascending order"
    table: StoreSpec | str = stage_option(DEFAULT, CACHED, STORES)
    window: int = option(8, "batches whose rows are fetched together", range(1, 1025))
    holds: str = option(
        DEFAULT,
        "what is held of a window: union: each row once, copied for every batch that has it;"
        " batches (uva alone, the default there): the rows of every batch, written there as they"
        " are read: more memory, no copy",
        (DEFAULT, UNION, BATCHES),
    )

    def resolved(self, device: str) -> Self:
        """The same with the defaults put in."""
        made = super().resolved(device)
        once = isinstance(made.table, Uva) and made.table.access == PAGE_ORDERED
        if self.holds == BATCHES and not once:
            raise UnsupportedError(
                "features 'window': holds=batches needs a table that the GPU reads itself, page by"
                " page; give table=uva, or holds=union"
            )
        default = BATCHES if once else UNION
        return replace(made, holds=default if self.holds == DEFAULT else self.holds)

    def build(self, job: Job) -> FeatureStore:
        """Over the store that fetches."""
        from gnnbench.features.window import WindowStore

        return WindowStore(job, self.fetching(job), self.window, self.holds == BATCHES)


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
        """DGL's own gather needs a DGL with CUDA; torch's needs nothing."""
        if device == "cpu":
            return None
        return dgl_missing(device) if self.table in (DEFAULT, "uva") else gpu_missing()

    def shared(self, device: str) -> tuple[str, ...]:
        """The table, where it stays in the host's memory: held as that of our stores is."""
        return ("features",) if device == "cuda" and self.table != "gpu" else ()

    def resolved(self, device: str) -> Self:
        """The same with the default put in."""
        return replace(super().resolved(device), table=_table(self.table, device))

    def build(self, job: Job) -> FeatureStore:
        """By where the table is."""
        from gnnbench.features import foreign

        if job.device.type == "cpu":
            return foreign.IndexSelect(job)
        if self.table == "uva":
            return foreign.PinnedRows(job)
        return foreign.DeviceSelect(job) if self.table == "gpu" else foreign.PinnedSelect(job)


@dataclass(frozen=True)
class BoltGather(StoreSpec):
    """GraphBolt's feature fetch: ``graphbolt.index_select``, for a GPU over a locked table."""

    name: ClassVar[str] = "graphbolt"
    summary: ClassVar[str] = "GraphBolt's: its index_select, on a GPU of locked rows"

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """GraphBolt must be installed, for a GPU in a DGL with CUDA."""
        return graphbolt_missing(device)

    def shared(self, device: str) -> tuple[str, ...]:
        """The table, where it is locked in place."""
        return ("features",) if device == "cuda" else ()

    def build(self, job: Job) -> FeatureStore:
        """By the host, or over the table, locked as ``uva`` does."""
        from gnnbench.features.foreign import BoltRows, BoltSelect

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
        """Nothing to build: the batch knows its loader."""
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
        """The wheels must be installed, and a GPU be there."""
        return wholegraph_missing()

    def build(self, job: Job) -> RowStore:
        """The table, copied."""
        from gnnbench.features.wholegraph import WholeRows

        return WholeRows(job, self.table, self.memory)
