"""Run a worker's phases one by one, and a copy over its link, after its epochs were timed."""

from __future__ import annotations

import secrets
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gnnbench.core.cell import Cell
from gnnbench.harness.overlap_bounds import link_bytes
from gnnbench.harness.probing import probe_fault, shared_by_ranks
from gnnbench.harness.process import WorkerProcess
from gnnbench.harness.retraining import EPOCHS

Record = Mapping[str, Any]

PROBE_EPOCHS = 3
PROBES = 3
COPIED_BYTES = 1 << 32  # at most, to see how fast the link is


@dataclass
class Probed:
    """Times of the phases, run one by one: seconds per batch by phase.

    ``alone`` is the least and ``median`` the median over batches. ``wrong`` says which batch was
    wrong, ``fault`` which phase an epoch reports as shorter than it is.
    """

    alone: dict[str, float] = field(default_factory=dict)
    median: dict[str, float] = field(default_factory=dict)
    wrong: str = ""
    fault: str = ""


def probe_phases(cell: Cell, worker: WorkerProcess, samples: Sequence[Record]) -> Probed:
    """Run the phases one by one, and again where one looks wrong: it may be other programs.

    Raises ``WorkerFailed``.
    """
    times: dict[str, list[float]] = {}
    probed = Probed()
    for _ in range(PROBES):
        epochs = [secrets.randbelow(EPOCHS) for _ in range(PROBE_EPOCHS)]
        answer = worker.call("probe", epochs=epochs)
        if reason := answer["reason"]:
            return Probed(wrong=f"when its phases were run one by one: {reason}")
        for phase, seconds in answer["alone"].items():
            times.setdefault(phase, []).extend(seconds)
        # On a busy machine a batch may take many times as long, and never less.
        probed.alone = {phase: min(seconds) for phase, seconds in times.items()}
        probed.fault = probe_fault(samples, probed.alone, shared_by_ranks(cell))
        if not probed.fault:
            break
    probed.median = {phase: statistics.median(seconds) for phase, seconds in times.items()}
    return probed


def link_copy(
    cell: Cell, worker: WorkerProcess, samples: Sequence[Record]
) -> dict[str, float] | None:
    """Bytes and seconds of a copy as large as an epoch's transfers over the link, or a part of
    them; None where there are none.

    Each rank has a link of its own, of which this worker is one. Raises ``WorkerFailed``.
    """
    whole = statistics.median(link_bytes(dict(s)) for s in samples) if samples else 0.0
    if not whole or not cell.composed or cell.gathers or shared_by_ranks(cell):
        return None
    size = int(min(whole, COPIED_BYTES))
    batches = max(1, round(samples[-1]["batches"] * size / whole))
    counts = worker.call("copies", served={"host_copy": size}, batches=batches)["counts"]
    return {"bytes": size, "seconds": counts[0][-1]} if counts else None
