"""Rows of ``metrics.csv``: what the harness measures itself, and finding a number again."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from gnnbench.core.counters import MEASURES, Measure, measure
from gnnbench.statistics.estimates import Estimate

Row = dict[str, Any]

EPOCH = "epoch"  # the stage that is all of it
LEARNING = "learning"  # of all epochs of a life, one after the other
WALL = measure("wall_s", "s", "measured wall time of an epoch")
OUTER = measure("outer_s", "s", "the same until the worker is quiet")
FIRST = measure("first_epoch_s", "s", "longest warm-up epoch: in no other statistic")
ALONE = measure("alone_s", "s", "time of the phase with no other beside it")
PROBED = measure("probed_s", "s", "time of the phase of a whole batch run by itself, median")
BOUND = measure(
    "bound_s", "s", "least time of an epoch that overlap could leave, by probed_s (architecture.md)"
)
LINK_RATE = measure("link_rate", "B/s", "one locked buffer copied over the link, nothing beside it")
FLOOR = measure(
    "floor_s",
    "s",
    "bytes of feature rows that cross the link in an epoch, after caches and reuse, by link_rate",
)
OF_BOUND = measure("of_bound", "1", "wall time of an epoch over bound_s")
INTERFERENCE = measure(
    "interference", "1", "time of the phase in an epoch over that of its batches run by themselves"
)
OPEN = measure("open_time_s", "s", "start of the process to the open graph, without import_time_s")
IMPORT = measure("import_time_s", "s", "import of a framework's own package (DGL, PyG ...)")
SETUP = measure("setup_time_s", "s", "building sampler, feature store and model")
START = measure(
    "start_time_s",
    "s",
    "start of the process to ready for the gate: open_time_s and setup_time_s without lock_time_s",
)
CHECK = measure("check_time_s", "s", "correctness gate")
DETERMINISTIC = measure(
    "deterministic", "", "1: in the gate a training step on one batch, three times over, had the"
    " same bits of the loss, the parameters and the moments of their gradients; 0: it had others,"
    " or its aggregation adds by atomics in an order left to chance",
)  # fmt: skip
PEAK_ALLOC = measure(
    "peak_alloc_bytes", "B",
    "peak of the GPU's allocator without what checks and audits took (on a CPU of resident memory,"
    " with it), and what other processes of the system's hold; maximum",
)  # fmt: skip
PEAK_RSS = measure("peak_rss_bytes", "B", "peak resident memory of the worker, maximum")
THROTTLED = measure("throttled", "epochs", "measured epochs around which the GPU was throttled")
IDLE_CPU = measure("idle_cpu_share", "cores", "CPU use while the other worker was measured")
FOREIGN_CPU = measure("foreign_cpu_share", "cores", "CPU use of other programs while measured")
SPEEDUP = measure(
    "speedup", "1", "geometric mean over pairs of the reference's time / this system's"
)
PER_EDGE = measure("speedup_per_edge", "1", "the same ratio per sampled edge, any work class")
PER_BATCH = measure("speedup_per_batch", "1", "the same ratio per batch, any work class")
HIT_RATIO = measure("hit_ratio", "1", "feature rows found in a cache over all that were needed")
ROW_RATE = measure("row_rate", "B/s", "bytes of feature rows read, over memory IO time")
COPY_RATE = measure("copy_rate", "B/s", "the same bytes copied in one piece, the same way")
OF_COPY = measure("of_copy", "1", "time of that copy over memory IO time")
REQUESTS = measure("requests_per_row", "1", "lines of 128 bytes that a GPU asks for, by the model")
# Of models that are evaluated after each epoch, over the lives of a comparison.
VAL_ACCURACY = measure(
    "val_accuracy", "1", "share of validation nodes answered right after the last epoch, mean"
)
TEST_ACCURACY = measure("test_accuracy", "1", "the same of test nodes")
VAL_NODES = measure("val_nodes", "", "validation nodes evaluated: all, or as many drawn of them")
TEST_NODES = measure("test_nodes", "", "the same of test nodes")
REACHED = measure("reached", "1", "share of lives that came to the stated validation accuracy")
EPOCHS_TO = measure("epochs_to_accuracy", "epochs", "epochs until then, mean")
TIME_TO = measure(
    "time_to_accuracy_s",
    "s",
    "wall time of all epochs until then, warm-up among them, geometric mean; told where all lives"
    " came there",
)
TO_SPEEDUP = measure(
    "accuracy_speedup",
    "1",
    "geometric mean over pairs of the reference's time_to_accuracy_s / this system's, any work",
)
H2D = measure("h2d_bytes", "B", "bytes copied from host to device (runs of version 1)")

OWN = frozenset(what.name for what in list(vars().values()) if isinstance(what, Measure))


def metric(
    cell: str,
    stage: str,
    what: Measure,
    value: float | Estimate,
    *,
    where: str = "",
    n: int | None = None,
) -> Row:
    """One row; an estimate brings its interval and its number of samples."""
    known = value if isinstance(value, Estimate) else None
    return {
        "id": cell, "stage": stage, "name": what.name, "where": where,
        "value": known.value if known else value,
        "low": _number(known.low) if known else None,
        "high": _number(known.high) if known else None,
        "n": known.n if known else n, "unit": what.unit, "description": what.description,
    }  # fmt: skip


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def meaning(name: str) -> Measure:
    """The declaration of a measure; one that only a worker knows has no words here."""
    return MEASURES.get(name) or Measure(name, "", "")


class Metrics:
    """Rows of ``metrics.csv`` by cell, stage, name and where."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = {(r["id"], r["stage"], r["name"], r["where"]): r for r in rows}

    def row(self, cell: str, stage: str, what: Measure, where: str = "") -> Row | None:
        """The row, or None."""
        return self._rows.get((cell, stage, what.name, where))

    def value(self, cell: str, stage: str, what: Measure, where: str = "") -> float | None:
        """Its value, or None."""
        found = self.row(cell, stage, what, where)
        return None if found is None else found["value"]

    def by_where(self, cell: str, stage: str, what: Measure) -> dict[str, float]:
        """Its values by ``where``."""
        wanted = (stage, what.name)
        return {r["where"]: r["value"] for r in self.of(cell) if (r["stage"], r["name"]) == wanted}

    def of(self, cell: str) -> list[Row]:
        """All rows of a cell."""
        return [r for key, r in self._rows.items() if key[0] == cell]
