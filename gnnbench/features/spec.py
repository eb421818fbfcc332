"""Feature stores as recipes name them. Their modules are imported when they are built."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core.errors import UnsupportedError
from gnnbench.core.missing import Missing
from gnnbench.core.option import Interval
from gnnbench.core.stage import Spec, option, stage_option
from gnnbench.features.policies.policy import LEGAL, SIEVE, Policy
from gnnbench.features.policies.size import AUTO
from gnnbench.kernels.access import ACCESSES, MOST_READERS, PAGE_ORDERED, READERS
from gnnbench.kernels.missing import native_missing

if TYPE_CHECKING:  # keeps torch out of the listing of systems
    from typing import Self

    from gnnbench.core.job import Job
    from gnnbench.features.base import FeatureStore, RowStore, TableStore

DEFAULT = "default"
REGISTERED = "registered"
UNION, BATCHES = "union", "batches"  # layouts of a window's rows


@dataclass(frozen=True)
class StoreSpec(Spec):
    """The feature store of a recipe."""

    kind: ClassVar[str] = "features"
    traced: ClassVar[bool] = False  # it has hit-ratio curves of a recorded trace

    @property
    def foresees(self) -> int:
        """Number of epochs for which an oracle prepares at once, before they are timed; 0: it is
        no oracle.

        An oracle requires gnnbench's own stages and a sampler with repeatable epochs.
        """
        return 0

    @property
    def derived(self) -> bool:
        """Whether its size is derived from the memory that batches leave free."""
        return False

    def lean(self) -> StoreSpec:
        """Return a store of equal rows without a table in GPU memory, if one exists; ``self``
        is resolved."""
        return self

    @abstractmethod
    def build(self, job: Job) -> FeatureStore:
        """The store of a cell."""


@dataclass(frozen=True)
class NativeStoreSpec(StoreSpec):
    """A store over the native library."""

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """The native library must have been built, with CUDA for a GPU."""
        return native_missing(device)


@dataclass(frozen=True)
class Host(NativeStoreSpec):
    """Features in host memory, gathered by the cores (DGL's method)."""

    name: ClassVar[str] = "host"
    summary: ClassVar[str] = "gathered by the cores; for a GPU into locked memory, then copied"

    def shared(self, device: str) -> tuple[str, ...]:
        """The table, if its rows go to a GPU: gathering must not wait for a disk."""
        return ("features",) if device == "cuda" else ()

    def build(self, job: Job) -> RowStore:
        """Build the store for the cell's device."""
        from gnnbench.features.host import HostGather, StagedGather

        return HostGather(job) if job.device.type == "cpu" else StagedGather(job)


@dataclass(frozen=True)
class Uva(NativeStoreSpec):
    """Features in locked host memory, read by the GPU (DGL's gather by unified addresses)."""

    name: ClassVar[str] = "uva"
    summary: ClassVar[str] = "read out of locked host memory by a kernel"
    devices: ClassVar[tuple[str, ...]] = ("cuda",)

    access: str = option(
        PAGE_ORDERED,
        "naive: rows in the order of the ids; aligned: by whole lines, shifted (PyTorch-Direct);"
        " page-ordered: rows of 2 MiB together; elementwise: a thread for each 4 bytes of the"
        " result, elementwise-shifted: with the circular shift (PyTorch-Direct's Listing 2 as"
        " printed; rows of a multiple of 4 bytes)",
        ACCESSES,
    )
    memory: str = option(
        REGISTERED,
        "registered: the table that all trials of a run share, locked in place; vmm: pages of 2 MiB"
        " allocated by the driver, a copy for each process",
        (REGISTERED, "vmm"),
    )
    blocks: int = option(
        0,
        "thread blocks, of 1024 threads each, of the page-ordered gather (the sort and the copy of"
        f" reused rows before it use the whole GPU); 0: {READERS}, which saturate the link",
        range(MOST_READERS + 1),
    )

    def shared(self, device: str) -> tuple[str, ...]:
        """The table, if it is locked in place; a copy is filled once, from the disk."""
        return ("features",) if self.memory == REGISTERED else ()

    def resolved(self, device: str) -> Self:
        """Return a copy with every default resolved. Raises ``UnsupportedError``."""
        spec = super().resolved(device)
        if spec.access == PAGE_ORDERED:
            return replace(spec, blocks=spec.blocks or READERS)
        if spec.blocks:
            raise UnsupportedError(
                f"features 'uva': blocks={spec.blocks} caps the grid of access=page-ordered alone,"
                f" not of {spec.access}; give access=page-ordered, or blocks=0"
            )
        return spec

    def plain(self) -> dict[str, object]:
        """Name and fields; ``blocks`` only for access by pages."""
        values = super().plain()
        if self.access != PAGE_ORDERED and not self.blocks:
            del values["blocks"]
        return values

    def build(self, job: Job) -> RowStore:
        """Build over the table, locked in shared memory or in a copy."""
        from gnnbench.features.uva import ZeroCopyGather

        return ZeroCopyGather(job, self.access, self.memory, self.blocks or READERS)


@dataclass(frozen=True)
class RowCopies(NativeStoreSpec):
    """Features in locked host memory, copied row by row (PyTorch-Direct, section 5)."""

    name: ClassVar[str] = "row-copies"
    summary: ClassVar[str] = "copied out of locked host memory by a DMA transfer for each row"
    devices: ClassVar[tuple[str, ...]] = ("cuda",)

    together: ClassVar[bool] = False

    def shared(self, device: str) -> tuple[str, ...]:
        """The table, which is locked in place."""
        return ("features",)

    def build(self, job: Job) -> RowStore:
        """Build over the table, locked in shared memory."""
        from gnnbench.features import row_copies

        return row_copies.RowCopies(job, self.together)


@dataclass(frozen=True)
class RowCopiesTogether(RowCopies):
    """The same, where one call of the driver starts all copies of a batch."""

    name: ClassVar[str] = "row-copies-together"
    summary: ClassVar[str] = "the same, where one call of the driver starts all transfers"
    together: ClassVar[bool] = True


@dataclass(frozen=True)
class Gpu(NativeStoreSpec):
    """The whole feature table in GPU memory."""

    name: ClassVar[str] = "gpu"
    summary: ClassVar[str] = "the whole table in device memory"
    devices: ClassVar[tuple[str, ...]] = ("cuda",)

    def lean(self) -> StoreSpec:
        """Return ``host``: gathered by the cores."""
        return Host()

    def build(self, job: Job) -> FeatureStore:
        """Build with a copy of the table."""
        from gnnbench.features.gpu import DeviceGather

        return DeviceGather(job)


def table_location(location: str, device: str) -> str:
    """Resolve the location of a table. Raises ``UnsupportedError``."""
    if location == DEFAULT:
        return "host" if device == "cpu" else "uva"
    if device == "cpu" and location in ("uva", "gpu"):
        raise UnsupportedError(
            f"features.table={location} needs a GPU; give --device cuda, or host"
        )
    return location


FETCHING = (
    "where missing rows come from: host: gathered by the cores (default on a CPU), for a GPU then"
    " copied; uva: read by the GPU (default there)"
)
TABLE_STORES = {"host": Host, "uva": Uva}


@dataclass(frozen=True)
class FallbackSpec(NativeStoreSpec):
    """A store with a fallback, ``table``, which fetches missing rows."""

    traced: ClassVar[bool] = True
    table: StoreSpec | str = stage_option(DEFAULT, FETCHING, TABLE_STORES)

    @property
    def foresees(self) -> int:
        """As the fallback."""
        return self.table.foresees if isinstance(self.table, StoreSpec) else 0

    @property
    def derived(self) -> bool:
        """As the fallback."""
        return isinstance(self.table, StoreSpec) and self.table.derived

    def shared(self, device: str) -> tuple[str, ...]:
        """Shared arrays of the fallback."""
        return self.fallback(device).shared(device)

    def resolved(self, device: str) -> Self:
        """Return a copy with every default resolved. Raises ``UnsupportedError``."""
        return replace(super().resolved(device), table=self.fallback(device).resolved(device))

    def fallback(self, device: str) -> StoreSpec:
        """The store that fetches missing rows. Raises ``UnsupportedError``."""
        name = self.table if isinstance(self.table, str) else self.table.name
        location = table_location(name, device)
        return TABLE_STORES[location]() if isinstance(self.table, str) else self.table

    def build_fallback(self, job: Job) -> RowStore:
        """Build the fallback; its rows are copied before its next call."""
        from gnnbench.features.base import RowStore

        store = self.fallback(job.device.type).build(replace(job, max_in_flight=1))
        assert isinstance(store, RowStore)
        return store

    def build_table_store(self, job: Job) -> TableStore:
        """Build the fallback, which reads the table itself and so can fill a cache."""
        from gnnbench.features.base import TableStore

        store = self.build_fallback(job)
        assert isinstance(store, TableStore)
        return store


@dataclass(frozen=True)
class Cache(FallbackSpec):
    """Some rows on the device, others fetched from the host (GNNLab, PaGraph; GraphBolt)."""

    name: ClassVar[str] = "cache"
    summary: ClassVar[str] = (
        "the hottest rows in device memory, misses from the host; with policy sieve the rows"
        " requested last (its queue is on the host, which waits once a batch)"
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
        """Return a copy with every default resolved.

        Raises ``UnsupportedError`` for ``auto`` on a CPU, whose memory has no reserved part.
        """
        if device == "cpu" and self.ratio == AUTO and not self.memory_gib:
            raise UnsupportedError(
                "features 'cache': ratio=auto is derived from a GPU's memory; on a CPU give"
                " memory_gib above 0, or a ratio"
            )
        return super().resolved(device)

    @property
    def foresees(self) -> int:
        """1 for ``optimal``, which is filled for each epoch, and K for ``optimal#K``."""
        return Policy.named(self.policy).foreseen

    @property
    def derived(self) -> bool:
        """Whether its ratio is ``auto``."""
        return self.ratio == AUTO

    def lean(self) -> StoreSpec:
        """Return the fallback, without a cache."""
        return self.table if isinstance(self.table, StoreSpec) else self

    def build(self, job: Job) -> RowStore:
        """Build the cache and its fallback."""
        from gnnbench.features.cache import StaticCache
        from gnnbench.features.sieve import SieveCache

        policy, limit = Policy.named(self.policy), int(self.memory_gib * 2**30)
        fallback = self.build_table_store(job)
        if policy.name == SIEVE:
            return SieveCache(job, self.ratio, limit, fallback)
        return StaticCache(job, policy, self.ratio, limit, fallback)


CACHED = FETCHING + "; cache: out of a cache before one of these (its settings: table.ratio ...)"
FALLBACK_STORES = {**TABLE_STORES, "cache": Cache}


@dataclass(frozen=True)
class Match(FallbackSpec):
    """FastGL's Match: reuses rows of the last batch and fetches the others."""

    name: ClassVar[str] = "match"
    summary: ClassVar[str] = "rows of the last batch reused, the others fetched (FastGL's Match)"
    table: StoreSpec | str = stage_option(DEFAULT, CACHED, FALLBACK_STORES)

    def build(self, job: Job) -> FeatureStore:
        """Build the store and its fallback."""
        from gnnbench.features.match import MatchStore

        return MatchStore(job, self.build_fallback(job))


@dataclass(frozen=True)
class Window(FallbackSpec):
    """The union of several batches' nodes, fetched once."""

    name: ClassVar[str] = "window"
    summary: ClassVar[str] = "rows of several batches' union fetched once, in ascending order"
    table: StoreSpec | str = stage_option(DEFAULT, CACHED, FALLBACK_STORES)
    window: int = option(8, "batches whose rows are fetched together", range(1, 1025))
    holds: str = option(
        DEFAULT,
        "layout of a window's rows: union: each row once, copied for every batch that has it;"
        " batches (uva alone, the default there): the rows of every batch, written as they are"
        " read: more memory, no copy",
        (DEFAULT, UNION, BATCHES),
    )

    def resolved(self, device: str) -> Self:
        """Return a copy with every default resolved. Raises ``UnsupportedError``."""
        spec = super().resolved(device)
        by_pages = isinstance(spec.table, Uva) and spec.table.access == PAGE_ORDERED
        if self.holds == BATCHES and not by_pages:
            raise UnsupportedError(
                "features 'window': holds=batches needs a table that the GPU reads itself, page by"
                " page; give table=uva, or holds=union"
            )
        default = BATCHES if by_pages else UNION
        return replace(spec, holds=default if self.holds == DEFAULT else self.holds)

    def build(self, job: Job) -> FeatureStore:
        """Build the store and its fallback."""
        from gnnbench.features.window import WindowStore

        return WindowStore(job, self.build_fallback(job), self.window, self.holds == BATCHES)
