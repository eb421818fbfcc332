"""Hardware counters of a GPU, read by Nsight Compute from a process that runs each kernel once.

``ncu`` replays every launch several times with empty caches and writes a line for it. An empty
launch (``gnnbench.kernels.ceilings.mark``) precedes the launches of each kernel, so that lines are
assigned to kernels by their order alone.
"""

from __future__ import annotations

import csv
import math
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict

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
    "time_ns": "gpu__time_duration.sum",
    "compute_percent": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "memory_percent": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
}
# Reads of host memory ("sysmem"). A request is what one load of a warp sends to the second-level
# cache for one line of 128 bytes: 1 to 4 sectors of 32 bytes.
HOST_METRICS = {
    "host_requests": "lts__t_requests_srcunit_tex_aperture_sysmem_op_read.sum",
    "host_sectors": "lts__t_sectors_srcunit_tex_aperture_sysmem_op_read.sum",
    "all_host_sectors": "lts__t_sectors_aperture_sysmem_op_read.sum",
    "missed_host_sectors": "lts__t_sectors_aperture_sysmem_op_read_lookup_miss.sum",
    "load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "pcie_read_bytes": "pcie__read_bytes.sum",
    "pcie_written_bytes": "pcie__write_bytes.sum",
}
TIMEOUT_S = 1200.0

Counts = dict[str, float]


class Launch(NamedTuple):
    """One launch: the name of its kernel and what was counted, by the names of the metrics."""

    kernel: str
    counts: Counts


class GpuRates(TypedDict):
    """Hit rates of both caches, bytes of memory traffic and executed operations."""

    l1_hit: float | None
    l2_hit: float | None
    memory_bytes: float
    flops_run: float
    compute_throughput: float | None
    memory_throughput: float | None


def counted(
    command: Sequence[str],
    timeout_s: float = TIMEOUT_S,
    metrics: Mapping[str, str] = METRICS,
) -> list[Counts]:
    """Run a command under ``ncu``; returns sums of ``metrics`` over the launches after each mark.

    Raises ``NoCounters`` as :func:`launched`.
    """
    return [summed(launches, metrics) for launches in launched(command, timeout_s, metrics)]


def launched(
    command: Sequence[str],
    timeout_s: float = TIMEOUT_S,
    metrics: Mapping[str, str] = METRICS,
) -> list[list[Launch]]:
    """Run a command under ``ncu``; returns the launches after each mark, in order.

    Raises ``NoCounters`` where ``ncu`` is not installed, or where it or the program fails.
    """
    program = _program()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        profiled = [
            program, "--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log),
            "--clock-control", "none", "--profile-from-start", "off",
            "--metrics", ",".join(metrics.values()), *command,
        ]  # fmt: skip
        try:
            done = subprocess.run(
                profiled, capture_output=True, text=True, check=False, timeout=timeout_s
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoCounters(f"'ncu' did not run ({type(error).__name__})") from None
        text = log.read_text(encoding="utf-8") if log.exists() else ""
    launches = launches_by_mark(text, metrics)
    if done.returncode or not launches:
        raise NoCounters(f"'ncu' read nothing: {_why(text, done.stderr)}")
    return launches


def available(metrics: Mapping[str, str], timeout_s: float = TIMEOUT_S) -> dict[str, str]:
    """Those of ``metrics`` that this machine's GPU has. Raises ``NoCounters`` as ``counted``."""
    query = [_program(), "--query-metrics"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, check=False, timeout=timeout_s)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoCounters(f"'ncu' did not run ({type(error).__name__})") from None
    # A line begins with the metric's name, without .sum and the like.
    known = {re.split(r'[",\s]', line.lstrip('"'), maxsplit=1)[0] for line in _lines(done.stdout)}
    if done.returncode or not known:
        raise NoCounters(f"'ncu' listed no metrics: {_why(done.stdout, done.stderr)}")
    return {name: one for name, one in metrics.items() if one.split(".")[0] in known}


def launches_by_mark(text: str, metrics: Mapping[str, str] = METRICS) -> list[list[Launch]]:
    """Launches by mark from the output of ``ncu --csv --page raw --print-units base``.

    A count is NaN if ``ncu`` could not read it (``n/a``).
    """
    lines = text.splitlines()
    head = next((n for n, line in enumerate(lines) if line.startswith('"ID"')), None)
    if head is None:
        return []
    launches: list[list[Launch]] = []
    for row in csv.DictReader(lines[head:]):
        if not row["ID"]:  # the line of units
            continue
        if MARK in row["Kernel Name"]:
            launches.append([])
        elif launches:
            read = {name: _number(row[metric]) for name, metric in metrics.items()}
            launches[-1].append(Launch(row["Kernel Name"], read))
    return launches


def summed(launches: Sequence[Launch], metrics: Mapping[str, str] = METRICS) -> Counts:
    """Sums over launches; NaN if one of them could not be counted."""
    return {name: math.fsum(launch.counts[name] for launch in launches) for name in metrics}


def throughput(launches: Sequence[Launch], percent: str) -> float | None:
    """Share of the GPU's peak throughput that the kernel with the most time reaches.

    ``percent`` is ``compute_percent`` or ``memory_percent``: ncu reports that of the unit nearest
    to its peak. Of several launches of that kernel (one a hop in DGL's sampler, where it is the one
    that draws), the mean weighted by time. None without a launch.
    """
    times: dict[str, float] = {}
    for launch in launches:
        times[launch.kernel] = times.get(launch.kernel, 0.0) + launch.counts["time_ns"]
    if not any(times.values()):
        return None
    longest = max(times, key=lambda kernel: times[kernel])
    parts = [one.counts for one in launches if one.kernel == longest]
    return sum(c["time_ns"] * c[percent] / 100 for c in parts) / times[longest]


def rates(launches: Sequence[Launch]) -> GpuRates:
    """Hit rates, bytes of memory traffic and operations, defined as in FastGL's Table 2; throughput
    as in PGSampler's Table I.

    A hit rate is sectors hit / sectors looked up.
    """
    counts = summed(launches)
    return {
        "l1_hit": _over(counts["l1_hits"], counts["l1_sectors"]),
        "l2_hit": _over(counts["l2_hits"], counts["l2_sectors"]),
        "memory_bytes": counts["read_bytes"] + counts["written_bytes"],
        "flops_run": counts["adds"] + counts["products"] + 2 * counts["multiply_adds"],
        "compute_throughput": throughput(launches, "compute_percent"),
        "memory_throughput": throughput(launches, "memory_percent"),
    }


def _program() -> str:
    program = shutil.which("ncu")
    if program is None:
        raise NoCounters("'ncu' (Nsight Compute) is not installed; put it on the PATH")
    return program


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if "__" in line]


def _number(text: str) -> float:
    return math.nan if text == "n/a" else float(text.replace(",", ""))


def _over(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _why(text: str, errors: str) -> str:
    """The tool's last error, else the last line of the program's errors."""
    reported = [line for line in text.splitlines() if line.startswith("==ERROR==")]
    lines = [line for line in errors.strip().splitlines() if line]
    return (reported or lines or ["it wrote no kernel"])[-1].removeprefix("==ERROR== ")
