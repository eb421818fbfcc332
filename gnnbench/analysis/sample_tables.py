"""Tables of sampling profiles: stages and kernels of a batch."""

from __future__ import annotations

from collections.abc import Sequence

from gnnbench.analysis.grouping import group_by
from gnnbench.analysis.table_layout import Line, TextTable, nonempty
from gnnbench.core.units import significant, time
from gnnbench.schema import STAGE_NAMES, KernelRow, StageRow

LONGEST = 40  # letters of a kernel's name; those of cuBLAS have 120
WHOLE = "batch"
STAGES = tuple(name for name in STAGE_NAMES if name != WHOLE)

TITLE = "Stages of a batch, from a separate profiling pass"
NOTE = (
    "whole call: a single batch sampled alone, after the timed epochs (ms/batch is from whole"
    " epochs and is the primary metric); stages are from another pass and need not add up to it"
)


def stages_table(stages: Sequence[StageRow]) -> TextTable:
    """One line per cell: time per batch of each stage over all hops, and memory.

    Times are from events on the GPU, or of the host if there are none.
    """
    lines = [_stage_line(own) for own in group_by(stages, lambda r: r["id"]).values()]
    return TextTable(nonempty(lines[0] if lines else (), lines), lines, TITLE, NOTE)


def _stage_line(rows: Sequence[StageRow]) -> Line:
    whole = next(r for r in rows if r["stage"] == WHOLE)
    extra, ratio = whole.get("extra_bytes"), whole.get("extra_ratio")
    return {
        "cell": rows[0]["cell"],
        "whole call": time(_time(whole)),
        **{stage.replace("_", " "): time(stage_time(rows, stage)) for stage in STAGES},
        "memory": "" if extra is None else f"{significant(extra / 2**20)} MiB",
        "over blocks": "" if ratio is None else f"{ratio:.2f}",
    }


def stage_time(rows: Sequence[StageRow], stage: str) -> float | None:
    """Time of a stage of one cell over all hops; None if the cell has no such stage."""
    times = [_time(r) or 0.0 for r in rows if r["stage"] == stage]
    return sum(times) if times else None


def _time(row: StageRow) -> float | None:
    device = row.get("device_s")
    return row.get("host_s") if device is None else device


def kernels_table(kernels: Sequence[KernelRow], most: int = 3) -> TextTable:
    """The ``most`` longest kernels of each cell. Values that the GPU lacks are ``unknown``."""
    groups = group_by(kernels, lambda r: r["id"]).values()
    lines = [_kernel_line(row) for own in groups for row in own[:most]]
    return TextTable(list(lines[0]) if lines else [], lines)


def _kernel_line(row: KernelRow) -> Line:
    occupancy, registers = row.get("occupancy"), row.get("registers")
    return {
        "cell": row["cell"], "kernel": _short(row["kernel"]), "calls": f"{row['calls']:g}",
        "device": time(row["device_s"]), "grid": row["grid"] or "unknown",
        "block": row["block"] or "unknown",
        "registers": "unknown" if registers is None else str(registers),
        "occupancy": "unknown" if occupancy is None else f"{occupancy:.0%}",
    }  # fmt: skip


def _short(name: str) -> str:
    """A kernel's name without arguments and template; the beginning of a very long one."""
    head = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    for mark in ("<", "("):
        head = head.partition(mark)[0] or head
    name = head.rpartition("::")[2] or head
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 3]}..."
