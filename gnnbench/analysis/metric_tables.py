"""Tables of cells with special metrics: overlapped epochs, and partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gnnbench.analysis import metrics as m
from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.table_layout import TextTable, nonempty
from gnnbench.core import counters
from gnnbench.core.cell import PHASES
from gnnbench.core.counters import Metric
from gnnbench.core.units import Time, significant, time, times
from gnnbench.schema import CellRow, MetricRow

Text = Callable[[CellRow, Metrics], str | Time]

AXIS_HEADS = {"batch_size": "batch", "learning_rate": "learning rate", "max_batches": "batches"}
NETWORK_STAGES = ("sampler", "features")


@dataclass(frozen=True)
class View:
    """A table with one line for each cell to which ``applies`` is true.

    ``columns`` has the text of a cell by heading. Empty columns are left out, except ``always``.
    """

    title: str
    applies: Callable[[CellRow, Metrics], bool]
    columns: Mapping[str, Text]
    note: str = ""
    always: tuple[str, ...] = ()

    def table(self, rows: Sequence[CellRow], metrics: Sequence[MetricRow]) -> TextTable:
        """The table of a run; without lines if it applies to no cell."""
        named, known = labels(rows), Metrics(metrics)
        lines = [
            axis_texts(row, named)
            | {"system": named.system(row)}
            | {head: text(row, known) for head, text in self.columns.items()}
            for row in rows
            if self.applies(row, known)
        ]
        heads = nonempty(self.columns, lines, self.always)
        axes = [AXIS_HEADS.get(axis, axis) for axis in named.axes]
        return TextTable((*axes, "system", *heads), lines, self.title, self.note)


def axis_texts(row: CellRow, named: Labels) -> dict[str, str | Time]:
    """The values of the varying axes by heading."""
    return {AXIS_HEADS.get(axis, axis): text for axis, text in named.values(row).items()}


def _time(stage: str, measure: Metric) -> Text:
    return lambda row, known: time(known.value(row["id"], stage, measure))


def _ratio(stage: str, measure: Metric) -> Text:
    return lambda row, known: times(known.value(row["id"], stage, measure))


def _digits(stage: str, measure: Metric) -> Text:
    return lambda row, known: significant(known.value(row["id"], stage, measure), 4)


def _is_overlapped(row: CellRow, known: Metrics) -> bool:
    limits = [known.value(row["id"], m.EPOCH, measure) for measure in (m.BOUND, m.FLOOR)]
    is_probed = any(limit is not None for limit in limits)
    return is_probed and row["status"] != "incorrect" and bool(row.get("overlap_s"))


def _is_partitioned(row: CellRow, known: Metrics) -> bool:
    cut = known.value(row["id"], "partition", counters.EDGES_CUT)
    return cut is not None and bool(row.get("batches"))


def _rounds(row: CellRow, known: Metrics) -> str:
    """All-to-alls of a batch."""
    counts = [known.value(row["id"], stage, counters.ROUNDS) or 0.0 for stage in NETWORK_STAGES]
    return significant(sum(counts) / row["batches"])


def _sent(stage: str, measure: Metric) -> Text:
    """Megabytes of an epoch, sum over all ranks."""

    def text(row: CellRow, known: Metrics) -> str:
        by_rank = known.by_where(row["id"], stage, measure)
        return f"{sum(by_rank.values()) / 1e6:.3g}" if by_rank else ""

    return text


OVERLAP = View(
    "Overlap: epochs compared with their bound; each phase / the same phase run alone",
    _is_overlapped,
    {
        "epoch": lambda row, _: time(row["epoch_wall_s"]),
        "bound": _time(m.EPOCH, m.BOUND),
        "floor": _time(m.EPOCH, m.FLOOR),
        "of bound": _ratio(m.EPOCH, m.OF_BOUND),
        **{p.replace("memory_io", "memory IO"): _ratio(p, m.INTERFERENCE) for p in PHASES},
    },
    always=("epoch", "bound", "of bound"),
)
PARTITIONS = View(
    "Partitions: time to create them, edges between parts, largest part / mean part, rounds of a"
    " batch",
    _is_partitioned,
    {
        "partitioning": _time("partition", counters.PARTITION_TIME),
        "edges cut": lambda row, known: (
            f"{known.value(row['id'], 'partition', counters.EDGES_CUT) or 0.0:,.0f}"
        ),
        "of all": lambda row, known: (
            f"{known.value(row['id'], 'partition', counters.CUT_SHARE) or 0.0:.1%}"
        ),
        **{head: _digits("partition", x) for head, x in counters.PART_IMBALANCE.items()},
        "rounds": _rounds,
        "sampling sent": _sent("sampler", counters.SENT_BYTES),
        "features sent": _sent("features", counters.SENT_BYTES),
        "gradients": _sent("schedule", counters.REDUCE_BYTES),
    },
    "MB per epoch that all ranks send to other ranks; gradients: the input of all-reduces",
)
