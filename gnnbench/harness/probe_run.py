"""Run a worker's phases one by one, and a copy over its link, after its epochs were timed."""

from __future__ import annotations

import secrets
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gnnbench.core.cell import Cell
from gnnbench.harness.probing import probe_fault, shared_by_ranks
from gnnbench.harness.process import WorkerProcess
from gnnbench.harness.protocol import COPIES, EPOCH_NUMBERS, PROBE
from gnnbench.harness.reduce.overlap_bounds import link_bytes
from gnnbench.schema.events import LinkCopy

if TYPE_CHECKING:
    from gnnbench.schema.samples import EpochSample

PROBE_EPOCHS = 3
MAX_PROBES = 3
MAX_COPIED_BYTES = 1 << 32


@dataclass
class ProbedPhases:
    """Times of the phases, run one by one: seconds per batch by phase.

    ``alone`` is the minimum and ``median`` the median over batches. ``wrong`` describes a wrong
    batch, ``fault`` a phase that an epoch reports as shorter than it is.
    """

    alone: dict[str, float] = field(default_factory=dict)
    median: dict[str, float] = field(default_factory=dict)
    wrong: str = ""
    fault: str = ""


def probe_phases(cell: Cell, worker: WorkerProcess, samples: Sequence[EpochSample]) -> ProbedPhases:
    """Run the phases one by one; repeat where one looks wrong, as other programs may cause that.

    Raises ``WorkerFailed``.
    """
    times: dict[str, list[float]] = {}
    probed = ProbedPhases()
    for _ in range(MAX_PROBES):
        epochs = [secrets.randbelow(EPOCH_NUMBERS) for _ in range(PROBE_EPOCHS)]
        answer = worker.call(PROBE, epochs=epochs)
        if reason := answer["reason"]:
            return ProbedPhases(wrong=f"when its phases were run one by one: {reason}")
        for phase, seconds in answer["alone"].items():
            times.setdefault(phase, []).extend(seconds)
        # On a busy machine a batch may take many times as long, and never less.
        probed.alone = {phase: min(seconds) for phase, seconds in times.items()}
        probed.fault = probe_fault(samples, probed.alone, shared_by_ranks(cell))
        if not probed.fault:
            break
    probed.median = {phase: statistics.median(seconds) for phase, seconds in times.items()}
    return probed


def link_copy(cell: Cell, worker: WorkerProcess, samples: Sequence[EpochSample]) -> LinkCopy | None:
    """Copy as many bytes over the link as an epoch does, up to ``MAX_COPIED_BYTES``.

    Returns None where an epoch transfers nothing. Each rank has a link of its own; this worker is
    one rank. Raises ``WorkerFailed``.
    """
    epoch_bytes = statistics.median(link_bytes(s) for s in samples) if samples else 0.0
    if not epoch_bytes or not cell.composed or cell.gathers or shared_by_ranks(cell):
        return None
    size = int(min(epoch_bytes, MAX_COPIED_BYTES))
    batches = max(1, round(samples[-1].batches * size / epoch_bytes))
    counts = worker.call(COPIES, served={"host_copy": size}, batches=batches)["counts"]
    return {"bytes": size, "seconds": float(counts[0][-1])} if counts else None
