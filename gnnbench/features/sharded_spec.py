"""One table for all ranks, as a recipe names it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core.errors import UsageError
from gnnbench.core.option import Interval
from gnnbench.core.stage import option
from gnnbench.features.policies.policy import OPTIMAL, SIEVE, Policy
from gnnbench.features.spec import DEFAULT, FallbackSpec, StoreSpec

if TYPE_CHECKING:  # keeps torch out of the listing of systems
    from gnnbench.core.job import Job
    from gnnbench.features.base import RowStore

POLICIES = "degree, random or presc#K (visits in K pre-sampled epochs)"


@dataclass(frozen=True)
class Sharded(FallbackSpec):
    """One table, or cache, divided over all ranks; each reads the shards of the others (as
    WholeGraph's chunked memory; ``docs/several-gpus.md``)."""

    name: ClassVar[str] = "sharded"
    summary: ClassVar[str] = (
        "one table or cache divided over the ranks' memories; each reads the others' shards"
    )
    policy: str = option("presc#1", "which rows are cached, for a ratio below 1", words=POLICIES)
    ratio: float = option(
        1.0, "rows that all ranks cache together over all rows of the table", Interval(0, 1)
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if Policy.named(self.policy).name in (OPTIMAL, SIEVE):
            raise UsageError(
                f"features 'sharded' holds the same rows in every epoch, and policy {self.policy}"
                f" changes them; take {POLICIES}"
            )

    def fallback(self, device: str) -> StoreSpec:
        """The store that fetches missing rows; with a ratio of 1 it locks no table."""
        return super().fallback("cpu" if self.ratio == 1 and self.table == DEFAULT else device)

    def build(self, job: Job) -> RowStore:
        """Build the rank's shard, and the fallback for rows of no shard."""
        from gnnbench.features.sharded import ShardedRows

        return ShardedRows(job, Policy.named(self.policy), self.ratio, self.build_table_store(job))
