"""One table for all ranks, as a recipe names it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core.errors import UsageError
from gnnbench.core.option import Interval
from gnnbench.core.stage import option
from gnnbench.features.policies.policy import OPTIMAL, SIEVE, Policy
from gnnbench.features.spec import DEFAULT, Over, StoreSpec

if TYPE_CHECKING:  # keeps torch out of the listing of systems
    from gnnbench.core.job import Job
    from gnnbench.features.base import RowStore

POLICIES = "degree, random or presc#K (visits in K pre-sampled epochs)"


@dataclass(frozen=True)
class Sharded(Over):
    """One table, or cache, for all ranks: each holds a part, and reads those of the others (as
    WholeGraph's chunked memory; ``docs/several-gpus.md``)."""

    name: ClassVar[str] = "sharded"
    summary: ClassVar[str] = (
        "one table or cache dealt out over the ranks' memories; rows of others are read there"
    )
    policy: str = option("presc#1", "what is held, where not all is", words=POLICIES)
    ratio: float = option(
        1.0, "rows that all ranks hold together over all rows of the table", Interval(0, 1)
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if Policy.named(self.policy).name in (OPTIMAL, SIEVE):
            raise UsageError(
                f"features 'sharded' holds the same rows in every epoch, and policy {self.policy}"
                f" changes them; take {POLICIES}"
            )

    def under(self, device: str) -> StoreSpec:
        """The store that fetches; where all rows are held nothing is, and no table is locked."""
        return super().under("cpu" if self.ratio == 1 and self.table == DEFAULT else device)

    def build(self, job: Job) -> RowStore:
        """The rank's shard, before the store that fetches what no rank holds."""
        from gnnbench.features.sharded import ShardedRows

        return ShardedRows(job, Policy.named(self.policy), self.ratio, self.reading(job))
