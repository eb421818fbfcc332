"""Hardware counters of a GPU, read by Nsight Compute from a process that runs each kernel once.

``ncu`` replays every launch several times with empty caches and writes a line for it. An empty
launch (``gnnbench.kernels.ceilings.mark``) precedes the launches of each kernel, so that lines are
assigned to kernels by their order alone.
"""

from __future__ import annotations

import csv
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from gnnbench.roofline.perf import NoCounters

MARK = "ceiling_mark_kernel"
METRICS = {
    "l1_sectors": "l1tex__t_sectors.sum",
    "l1_hits": "l1tex__t_sectors_lookup_hit.sum",
    "l2_sectors": "lts__t_sectors.sum",
    "l2_hits": "lts__t_sectors_lookup_hit.sum",
    "read_bytes": "dram__bytes_read.sum",
    "written_bytes": "dram__bytes_write.sum",
    "adds": "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
    "products": "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
    "multiply_adds": "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
}
TIMEOUT_S = 1200.0

Counts = dict[str, float]


class GpuRates(TypedDict):
    """Hit rates of both caches, bytes of memory traffic and executed operations."""

    l1_hit: float | None
    l2_hit: float | None
    memory_bytes: float
    flops_run: float


def counted(command: Sequence[str], timeout_s: float = TIMEOUT_S) -> list[Counts]:
    """Run a command under ``ncu``; returns sums of ``METRICS`` over the launches after each mark.

    Raises ``NoCounters`` where ``ncu`` is not installed, or where it or the program fails.
    """
    program = shutil.which("ncu")
    if program is None:
        raise NoCounters("'ncu' (Nsight Compute) is not installed; put it on the PATH")
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        profiled = [
            program, "--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log),
            "--clock-control", "none", "--profile-from-start", "off",
            "--metrics", ",".join(METRICS.values()), *command,
        ]  # fmt: skip
        try:
            done = subprocess.run(
                profiled, capture_output=True, text=True, check=False, timeout=timeout_s
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoCounters(f"'ncu' did not run ({type(error).__name__})") from None
        text = log.read_text(encoding="utf-8") if log.exists() else ""
    counts = counts_by_mark(text)
    if done.returncode or not counts:
        raise NoCounters(f"'ncu' read nothing: {_why(text, done.stderr)}")
    return counts


def counts_by_mark(text: str) -> list[Counts]:
    """Sums by mark from the output of ``ncu --csv --page raw --print-units base``."""
    lines = text.splitlines()
    head = next((n for n, line in enumerate(lines) if line.startswith('"ID"')), None)
    if head is None:
        return []
    counts: list[Counts] = []
    for row in csv.DictReader(lines[head:]):
        if not row["ID"]:  # the line of units
            continue
        if MARK in row["Kernel Name"]:
            counts.append(dict.fromkeys(METRICS, 0.0))
        elif counts:
            for name, metric in METRICS.items():
                counts[-1][name] += float(row[metric].replace(",", ""))
    return counts


def rates(counts: Mapping[str, float]) -> GpuRates:
    """Hit rates, bytes of memory traffic and operations, defined as in FastGL's Table 2.

    A hit rate is sectors hit / sectors looked up.
    """
    return {
        "l1_hit": _over(counts["l1_hits"], counts["l1_sectors"]),
        "l2_hit": _over(counts["l2_hits"], counts["l2_sectors"]),
        "memory_bytes": counts["read_bytes"] + counts["written_bytes"],
        "flops_run": counts["adds"] + counts["products"] + 2 * counts["multiply_adds"],
    }


def _over(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _why(text: str, errors: str) -> str:
    """The tool's last error, else the last line of the program's errors."""
    reported = [line for line in text.splitlines() if line.startswith("==ERROR==")]
    lines = [line for line in errors.strip().splitlines() if line]
    return (reported or lines or ["it wrote no kernel"])[-1].removeprefix("==ERROR== ")
