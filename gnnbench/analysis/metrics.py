"""Measures that the harness computes, and access to the rows of ``metrics.csv``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from gnnbench.analysis.grouping import group_by
from gnnbench.core import counters
from gnnbench.core.counters import METRICS, Metric, declare
from gnnbench.schema import MetricRow
from gnnbench.statistics.estimates import Estimate

EPOCH = "epoch"  # stage of measures of a whole epoch
LEARNING = "learning"  # stage of measures over all epochs of a process
WALL = declare("wall_s", "s", "measured wall time of an epoch")
OUTER = declare("outer_s", "s", "wall time of an epoch until the worker is idle")
FIRST = declare("first_epoch_s", "s", "longest warm-up epoch; part of no other statistic")
ALONE = declare("alone_s", "s", "time in which no other phase runs")
PROBED = declare("probed_s", "s", "time of the phase of one batch, run alone, median")
BOUND = declare("bound_s", "s", "shortest epoch that overlap allows, computed from probed_s")
LINK_RATE = declare("link_rate", "B/s", "copy of one pinned buffer over an otherwise idle link")
FLOOR = declare(
    "floor_s",
    "s",
    "bytes of feature rows that cross the link in an epoch, after caches and reuse, over link_rate",
)
OF_BOUND = declare("of_bound", "1", "wall time of an epoch / bound_s")
INTERFERENCE = declare(
    "interference", "1", "time of the phase in an epoch / time of its batches run alone"
)
OPEN = declare("open_time_s", "s", "from process start to the open graph, without import_time_s")
IMPORT = declare("import_time_s", "s", "import of the framework's package (DGL, PyG ...)")
SETUP = declare("setup_time_s", "s", "building sampler, feature store and model")
START = declare(
    "start_time_s",
    "s",
    "from process start to the gate: open_time_s and setup_time_s without lock_time_s",
)
CHECK = declare("check_time_s", "s", "correctness gate")
DETERMINISTIC = declare(
    "deterministic", "", "1: three runs of one training step gave bit-equal losses, parameters and"
    " gradient moments in the gate; 0: they differed, or the aggregation adds with atomics in"
    " arbitrary order",
)  # fmt: skip
PEAK_ALLOC = declare(
    "peak_alloc_bytes", "B",
    "peak of the GPU allocator without checks and audits (on a CPU: peak resident memory, with"
    " them), plus memory of the system's other processes; maximum",
)  # fmt: skip
PEAK_RSS = declare("peak_rss_bytes", "B", "peak resident memory of the worker, maximum")
THROTTLED = declare("throttled", "epochs", "measured epochs around which the GPU was throttled")
IDLE_CPU = declare("idle_cpu_share", "cores", "CPU use while the other worker was measured")
FOREIGN_CPU = declare("foreign_cpu_share", "cores", "CPU use of other programs while measured")
SPEEDUP = declare(
    "speedup", "1", "geometric mean over pairs of the reference's time / this system's"
)
PER_EDGE = declare("speedup_per_edge", "1", "speedup per sampled edge, any work class")
PER_BATCH = declare("speedup_per_batch", "1", "speedup per batch, any work class")
HIT_RATIO = declare("hit_ratio", "1", "feature rows read from a cache / all feature rows needed")
ROW_RATE = declare("row_rate", "B/s", "bytes of feature rows read / memory IO time")
COPY_RATE = declare("copy_rate", "B/s", "rate of one contiguous copy of these bytes")
OF_COPY = declare("of_copy", "1", "time of that copy / memory IO time")
REQUESTS = declare("requests_per_row", "1", "128-byte requests, by the address model")
# Models that are evaluated after each epoch, over the processes of a comparison.
VAL_ACCURACY = declare(
    "val_accuracy", "1", "accuracy on validation nodes after the last epoch, mean"
)
TEST_ACCURACY = declare("test_accuracy", "1", "accuracy on test nodes after the last epoch, mean")
VAL_NODES = declare("val_nodes", "", "validation nodes evaluated: all, or a random subset")
TEST_NODES = declare("test_nodes", "", "test nodes evaluated: all, or a random subset")
REACHED = declare("reached", "1", "share of processes that reached the target validation accuracy")
EPOCHS_TO = declare("epochs_to_accuracy", "epochs", "epochs until the target accuracy, mean")
TIME_TO = declare(
    "time_to_accuracy_s",
    "s",
    "wall time of all epochs until the target accuracy, with warm-up, geometric mean; only if all"
    " processes reached it",
)
TO_SPEEDUP = declare(
    "accuracy_speedup",
    "1",
    "geometric mean over pairs of the reference's time_to_accuracy_s / this system's",
)
H2D = declare("h2d_bytes", "B", "bytes copied from host to device (runs of version 1)")


def metric(
    cell: str,
    stage: str,
    measure: Metric,
    value: float | Estimate,
    *,
    where: str = "",
    n: int | None = None,
) -> MetricRow:
    """A row of ``metrics.csv``; an ``Estimate`` adds its interval and number of samples."""
    row = MetricRow(
        id=cell, stage=stage, name=measure.name, where=where, n=n, unit=measure.unit,
        description=measure.description,
    )  # fmt: skip
    if isinstance(value, Estimate):
        row.value, row.n = value.value, value.n
        row.low, row.high = _number(value.low), _number(value.high)
    else:
        row.value = value
    return row


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def declared() -> Iterator[Metric]:
    """All metrics of gnnbench, without those of plug-ins."""
    for values in (dict(globals()), vars(counters)):
        for value in values.values():
            if isinstance(value, Metric):
                yield value
            elif isinstance(value, dict) and value is not METRICS:
                yield from (v for v in value.values() if isinstance(v, Metric))


def meaning(name: str) -> Metric:
    """The declaration of a measure; without unit and description if only a worker declares it."""
    return METRICS.get(name) or Metric(name, "", "")


class Metrics:
    """Rows of ``metrics.csv`` by cell, stage, name and ``where``."""

    def __init__(self, rows: Iterable[MetricRow]) -> None:
        self._rows = {(r["id"], r["stage"], r["name"], r["where"]): r for r in rows}
        self._by_cell = group_by(self._rows.values(), lambda r: str(r["id"]))

    def row(self, cell: str, stage: str, measure: Metric, where: str = "") -> MetricRow | None:
        """The row, or None."""
        return self._rows.get((cell, stage, measure.name, where))

    def value(self, cell: str, stage: str, measure: Metric, where: str = "") -> float | None:
        """The row's value, or None."""
        row = self.row(cell, stage, measure, where)
        return None if row is None else float(row["value"])

    def by_where(self, cell: str, stage: str, measure: Metric) -> dict[str, float]:
        """The values of a measure by ``where``."""
        wanted = (stage, measure.name)
        return {r["where"]: r["value"] for r in self.of(cell) if (r["stage"], r["name"]) == wanted}

    def of(self, cell: str) -> list[MetricRow]:
        """All rows of a cell."""
        return self._by_cell.get(cell, [])
