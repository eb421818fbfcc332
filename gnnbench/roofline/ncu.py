"""A GPU's hardware counters, by Nsight Compute around a process of its own that runs each kernel
of a batch once.

``ncu`` runs every launch several times over, from empty caches, and writes a line for each. Before
the launches of one kernel of ours stands a mark, a launch that does nothing
(``gnnbench.kernels.ceilings.mark``), so that lines are shared out by their order alone.
"""

from __future__ import annotations

import csv
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

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


def counted(command: Sequence[str], timeout_s: float = TIMEOUT_S) -> list[Counts]:
    """Sums of ``METRICS`` over the launches behind each mark of a command, in order.

    Raises ``NoCounters`` where there is no ``ncu``, or where it or the program failed.
    """
    program = shutil.which("ncu")
    if program is None:
        raise NoCounters("there is no 'ncu' (Nsight Compute); put it on the PATH")
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        around = [
            program, "--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log),
            "--clock-control", "none", "--profile-from-start", "off",
            "--metrics", ",".join(METRICS.values()), *command,
        ]  # fmt: skip
        try:
            done = subprocess.run(
                around, capture_output=True, text=True, check=False, timeout=timeout_s
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoCounters(f"'ncu' did not run ({type(error).__name__})") from None
        text = log.read_text(encoding="utf-8") if log.exists() else ""
    found = shared_out(text)
    if done.returncode or not found:
        raise NoCounters(f"'ncu' read nothing: {_why(text, done.stderr)}")
    return found


def shared_out(text: str) -> list[Counts]:
    """The sums by mark, of what ``ncu --csv --page raw --print-units base`` wrote."""
    lines = text.splitlines()
    head = next((n for n, line in enumerate(lines) if line.startswith('"ID"')), None)
    if head is None:
        return []
    found: list[Counts] = []
    for row in csv.DictReader(lines[head:]):
        if not row["ID"]:  # the line of units
            continue
        if MARK in row["Kernel Name"]:
            found.append(dict.fromkeys(METRICS, 0.0))
        elif found:
            for name, metric in METRICS.items():
                found[-1][name] += float(row[metric].replace(",", ""))
    return found


def rates(counts: Mapping[str, float]) -> dict[str, float | None]:
    """Hit rates, bytes of memory and operations, as FastGL's Table 2 has them from the same tool:
    sectors found in a cache over all that were looked up there."""
    return {
        "l1_hit": _over(counts["l1_hits"], counts["l1_sectors"]),
        "l2_hit": _over(counts["l2_hits"], counts["l2_sectors"]),
        "memory_bytes": counts["read_bytes"] + counts["written_bytes"],
        "flops_run": counts["adds"] + counts["products"] + 2 * counts["multiply_adds"],
    }


def _over(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _why(text: str, errors: str) -> str:
    """The tool's own word, else the last of the program's."""
    told = [line for line in text.splitlines() if line.startswith("==ERROR==")]
    lines = [line for line in errors.strip().splitlines() if line]
    return (told or lines or ["it wrote no kernel"])[-1].removeprefix("==ERROR== ")
