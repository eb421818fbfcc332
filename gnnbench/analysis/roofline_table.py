"""Tables of a roofline: the machine's measured peaks, and kernels compared with them."""

from __future__ import annotations

from collections.abc import Sequence

from gnnbench.analysis.reliability import UNRELIABLE_MARK
from gnnbench.analysis.table_layout import Line, TextTable, nonempty
from gnnbench.core.units import half_width, percent, significant, time
from gnnbench.schema import RooflineRow

PEAKS = "Measured peaks of this machine"
KERNELS = "Kernels, with cold caches, compared with these peaks"
WORD = 4  # bytes of a single random read
UNITS = {"flop/s": (1e9, "GFLOP/s"), "B/s": (1e9, "GB/s"), "read/s": (1e6, "M reads/s")}


def roofline_tables(rows: Sequence[RooflineRow]) -> list[TextTable]:
    """A table of peaks and a table of kernels, each only if it has lines."""
    peaks = [_peak(row) for row in rows if row["kind"] == "ceiling"]
    kernels = [_kernel(row) for row in rows if row["kind"] == "kernel"]
    return [
        TextTable(nonempty(lines[0], lines), lines, title)
        for lines, title in ((peaks, PEAKS), (kernels, KERNELS))
        if lines
    ]


def rate(value: float | None, unit: str) -> str:
    """A rate with its unit, three significant digits."""
    if value is None:
        return ""
    factor, words = UNITS[unit]
    return f"{significant(value / factor)} {words}"


def kernel_name(row: RooflineRow) -> str:
    """The name of a kernel with its direction: ``aggregate forward``."""
    return f"{row['name']} {row['direction']}".rstrip()


def _peak(row: RooflineRow) -> Line:
    row_bytes = row["row_bytes"]
    is_single_read = row_bytes == WORD  # shown as reads per second
    value = row["value"] / WORD if is_single_read else row["value"]
    return {
        "name": row["name"] + (f" of {row_bytes} B" if row_bytes else ""), "level": row["level"],
        "size": _size(row["level_bytes"]), "device": row["device"], "threads": str(row["threads"]),
        "rate": rate(value, "read/s" if is_single_read else row["unit"]), "+-": _half(row),
        "spread": percent(row["spread"]), "remark": row["remark"],
    }  # fmt: skip


def _kernel(row: RooflineRow) -> Line:
    intensity = row["intensity"]
    return {
        "cell": row["cell"] + f" {UNRELIABLE_MARK}" * bool(row["doubtful"]),
        "kernel": kernel_name(row),
        "layer": str(row["layer"] or ""), "width": str(row["width"] or ""),
        "time": time(row["time_s"]), "rate": rate(row["value"], row["unit"]),
        "+-": _half(row), "flop/B": "" if intensity is None else f"{intensity:.3g}",
        "bound": row["bound"], "of bound": percent(row["of_ceiling"]),
        "L1 hits": percent(row["l1_hit"]), "L2 hits": percent(row["l2_hit"]),
    }  # fmt: skip


def remarks(rows: Sequence[RooflineRow]) -> list[str]:
    """Kernels above their peaks, and why hardware counters are missing."""
    unreliable = [
        f"{row['cell']}: {kernel_name(row)}, layer {row['layer']}: {row['doubtful']}"
        for row in rows
        if row["doubtful"]
    ]
    reasons = dict.fromkeys(
        row["counters"].partition(": ")[2]
        for row in rows
        if (row["counters"] or "").startswith("none")
    )
    return [*unreliable, *(f"no hardware counters: {reason}" for reason in reasons)]


def _half(row: RooflineRow) -> str:
    return half_width(row, "value", ("low", "high"))


def _size(count: int | None) -> str:
    if not count:
        return ""
    return f"{count / 2**20:.4g} MiB" if count < 2**30 else f"{count / 2**30:.4g} GiB"
