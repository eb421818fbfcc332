"""The answer of a comparison of systems: one table, fastest first, one line for each system."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gnnbench.analysis import metrics as m
from gnnbench.analysis.grouping import group_by
from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.reliability import UNRELIABLE_MARK, is_unreliable, verdict
from gnnbench.analysis.table import peak_memory
from gnnbench.analysis.table_layout import TextTable, in_units, nonempty
from gnnbench.core import registry
from gnnbench.core.cell import Until
from gnnbench.core.units import Time, half_share, plural, time, times, worth
from gnnbench.schema import CellRow
from gnnbench.schema.reader import Run

FEWEST_SYSTEMS = 4  # compared in the same setting; fewer are shown with all columns
HEADS = ("system", "epoch", "speed-up", "verdict", "work", "memory")
TWINS = "designed for a GPU, here with substitute stages"
Line = dict[str, str | Time]


def is_ranking(run: Run) -> bool:
    """Whether a run compares enough systems by their training epochs."""
    return any(
        len({r["system"] for r in group}) >= FEWEST_SYSTEMS for group in _groups(run.cells).values()
    )


def ranking_tables(run: Run) -> list[TextTable]:
    """A table for each group of cells that differ in their system only.

    On a CPU, systems that were designed for a GPU follow in a second block.
    """
    named, known = labels(run.cells), Metrics(run.metrics)
    by_id = {r["id"]: r for r in run.cells}
    tables = []
    for title, group in _groups(run.cells).items():
        blocks = group_by(ranked(group), is_twin)
        lines: list[Line] = []
        for twins in (False, True):
            rows = blocks.get(twins, [])
            lines += [{"system": f"{TWINS}:"}] * bool(twins and rows)
            lines += [_line(row, group, named, known, by_id) for row in rows]
        head = _time_head(group)
        texts = [
            {head if name == "epoch" else name: text for name, text in line.items()}
            for line in in_units(lines)
        ]
        heads = [head if name == "epoch" else name for name in HEADS]
        tables.append(TextTable(nonempty(heads, texts), texts, title))
    return tables


def _time_head(group: Sequence[CellRow]) -> str:
    """``epoch``, or how many batches were measured where all epochs were cut to the same number."""
    measured = [r for r in group if r.get("batches")]
    lengths = {r["batches"] for r in measured}
    cut = all(r["batches"] < (r.get("epoch_batches") or 0) for r in measured)
    return plural(lengths.pop(), "batch") if cut and len(lengths) == 1 else "epoch"


def _groups(rows: Sequence[CellRow]) -> dict[str, list[CellRow]]:
    named = labels(rows)
    replaced = {r["stand_in_for"] for r in rows if r.get("stand_in_for")}
    trained = [
        r
        for r in rows
        if r["until"] == Until.COMPUTE.word
        and not (r["system"] in replaced and r["status"] == "missing_dep")
    ]
    return group_by(
        trained, lambda r: ", ".join(named.varying(r, but=("pick", "frontier")).values())
    )


def is_twin(row: CellRow) -> bool:
    """Whether a system that was designed for a GPU ran on a CPU."""
    return row["device"] == "cpu" and row["system"] in registry.GPU_DESIGNS


def ranked(rows: Sequence[CellRow]) -> list[CellRow]:
    """Rows by speed-up over their one reference, else by time.

    Those without a time and incorrect ones are last.
    """
    references = {r["reference_id"] for r in rows if r.get("reference_id")}
    key = _speed_up if len(references) == 1 else _speed
    return sorted(rows, key=lambda r: (r["status"] != "incorrect", key(r)), reverse=True)


def _speed(row: CellRow) -> float:
    return 1 / row["judged_s"] if row.get("judged_s") else -math.inf


def _speed_up(row: CellRow) -> float:
    """The ratio; of different work, the quotient of times."""
    if not row.get("judged_s"):
        return -math.inf
    if row.get("ratio") is not None:
        return float(row["ratio"])
    return row["reference_s"] / row["judged_s"] if row.get("reference_s") else 1.0


def _line(
    row: CellRow,
    group: Sequence[CellRow],
    named: Labels,
    known: Metrics,
    by_id: dict[str, CellRow],
) -> Line:
    is_only = sum(r["system"] == row["system"] for r in group) == 1
    name = str(row["system"]) if is_only and not row.get("env") else named.system(row)
    line: Line = {"system": name + f" {UNRELIABLE_MARK}" * is_unreliable(row)}
    failed = "" if row["status"] == "ok" else str(row["status"])
    if row.get("judged_s") is None:
        return line | {"verdict": failed}
    line["epoch"] = time(row["judged_s"], worth(half_share(row)))
    line["memory"] = peak_memory(row, known)
    if row["id"] == row.get("reference_id"):
        return line | {"verdict": "reference"}
    if row.get("work_class") == "different":
        return line | _different(row, known, by_id.get(str(row.get("reference_id"))))
    text = times(*(row.get(k) for k in ("ratio", "ratio_ci_low", "ratio_ci_high", "pairs")))
    line["speed-up"] = text
    return line | {"verdict": failed or verdict(row), "work": row.get("work_class") or ""}


def _different(row: CellRow, known: Metrics, reference: CellRow | None) -> Line:
    """The ratio per edge, and the number of edges relative to the reference's."""
    per_edge = known.row(row["id"], m.EPOCH, m.PER_EDGE)
    line: Line = {"work": "different"}
    if per_edge is not None:
        ratio, _, interval = times(per_edge["value"], per_edge["low"], per_edge["high"]).partition(
            " "
        )
        line["speed-up"] = " ".join(filter(None, [f"{ratio}/edge", interval]))
    if reference is not None and reference.get("sampled_edges") and row.get("sampled_edges"):
        line["work"] = f"{row['sampled_edges'] / reference['sampled_edges']:.2f}x edges"
    return line
