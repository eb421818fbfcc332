"""Lower bounds of an epoch's time by overlap, and how much phases slow each other down.

Definitions: gnnbench/measure/README.md.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gnnbench.analysis import metrics as m
from gnnbench.core.cell import Cell, flat, phases
from gnnbench.core.counters import FEATURE_BYTES
from gnnbench.harness.probing import shared_by_ranks
from gnnbench.harness.reduce.comparison import Value, level
from gnnbench.schema import MetricRow

if TYPE_CHECKING:
    from gnnbench.harness.journal import JournalState
    from gnnbench.schema.events import ProbedEvent
    from gnnbench.schema.samples import EpochSample

LINK, PROCESSORS, HOST = "link", "multiprocessors", "host"
FROM_HOST = {"host_copy", "zero_copy", "disk"}  # of gnnbench.core.counters.WHERE
CROSSING = {*FROM_HOST, "peer"}
# Resources that sampling occupies, by the location of the topology.
DRAWING = {"gpu": {PROCESSORS}, "uva": {PROCESSORS, LINK}, "cpu": {HOST}}


def bound_rows(
    cell: Cell, journal: JournalState, trials: Sequence[Sequence[EpochSample]]
) -> list[MetricRow]:
    """Rows of ``metrics.csv``.

    There is no bound where a phase was not probed or nothing can overlap, and no floor where no
    copy was measured.
    """
    samples = [s for trial in trials for s in trial]
    floor = _floor(cell, journal, samples)
    alone = _alone(cell, journal, samples)
    crosses = any(_served(s, CROSSING) > 0 for s in samples)
    bound = least(cell, alone, crosses, _cores(cell, journal))
    if bound is None:
        return floor

    def of_bound(sample: EpochSample) -> float:
        return sample.wall_s / (bound * whole_batches(cell, sample))

    def slowed(phase: str) -> Value:
        def over(sample: EpochSample) -> float | None:
            time = sample.time_s(phase)
            return None if time is None else time / (alone[phase] * whole_batches(cell, sample))

        return over

    epoch_s = bound * statistics.median(whole_batches(cell, s) for s in samples)
    rows = [m.metric(cell.id, phase, m.PROBED, seconds) for phase, seconds in alone.items()]
    rows.append(m.metric(cell.id, m.EPOCH, m.BOUND, epoch_s))
    rows.append(m.metric(cell.id, m.EPOCH, m.OF_BOUND, level(trials, of_bound)))
    slowdowns = {phase: level(trials, slowed(phase)) for phase in alone}
    return [*floor, *rows] + [
        m.metric(cell.id, phase, m.INTERFERENCE, slowdown)
        for phase, slowdown in slowdowns.items()
        if slowdown.n
    ]


def link_bytes(sample: EpochSample) -> float:
    """Bytes of feature rows that crossed a GPU's link from the host in an epoch."""
    return _served(sample, FROM_HOST)


def _floor(cell: Cell, journal: JournalState, samples: Sequence[EpochSample]) -> list[MetricRow]:
    """Rate of a plain copy over the link, and the time that an epoch's bytes take at this rate."""
    copies = [c for p in _probes(cell, journal, samples) if (c := p.get("copied"))]
    if not copies:
        return []
    rate = statistics.median(copy["bytes"] / copy["seconds"] for copy in copies)
    floor = statistics.median(link_bytes(s) for s in samples) / rate
    return [
        m.metric(cell.id, "features", m.LINK_RATE, rate, n=len(copies)),
        m.metric(cell.id, m.EPOCH, m.FLOOR, floor),
    ]


def whole_batches(cell: Cell, sample: EpochSample) -> float:
    """Batches of an epoch; a short last one counts by its share of seeds."""
    return sample.seeds / min(cell.batch_size, sample.seeds)


def least(cell: Cell, alone: Mapping[str, float], crosses: bool, cores: int) -> float | None:
    """Lower bound of the time per batch (s) of any schedule of these phases.

    ``alone``: seconds per batch by phase; ``crosses``: whether feature rows cross the link;
    ``cores``: usable cores of the machine. On a GPU, phases that occupy the same resource cannot
    overlap. On a CPU, a phase is assumed to keep its threads busy. None where a phase's time is
    unknown, there is only one phase, the sampler's topology has no known location, or several
    processes share the batches (then one of them is probed).
    """
    if shared_by_ranks(cell):
        return None
    if cell.gathers or not cell.goes_until or not all(alone.get(p) for p in phases(cell.until)):
        return None
    if cell.device == "cpu":
        share = min((cell.threads or cores) / cores, 1.0)
        return max(*alone.values(), share * sum(alone.values()))
    drawing = DRAWING.get(str(flat(cell.recipe).get("sampler.topology", "")))
    if drawing is None:
        return None
    occupied = {
        "sample": drawing,
        "memory_io": {LINK if crosses else PROCESSORS},
        "compute": {PROCESSORS},
    }
    return max(
        sum(seconds for phase, seconds in alone.items() if resource in occupied[phase])
        for resource in (LINK, PROCESSORS, HOST)
    )


def _alone(cell: Cell, journal: JournalState, samples: Sequence[EpochSample]) -> dict[str, float]:
    """Median seconds per batch by phase, over the probes in the trials of the samples."""
    probes = [p["median"] for p in _probes(cell, journal, samples)]
    return {
        phase: statistics.median(p[phase] for p in probes if phase in p)
        for phase in phases(cell.until)
        if any(phase in p for p in probes)
    }


def _probes(cell: Cell, journal: JournalState, samples: Sequence[EpochSample]) -> list[ProbedEvent]:
    """Probes in the trials of the samples."""
    workers = {s.worker for s in samples}
    return [p for p in journal.probes.get(cell.id, ()) if p["worker"] in workers]


def _cores(cell: Cell, journal: JournalState) -> int:
    """Usable cores of the machine that was probed; another one may reduce the journal."""
    return min((p["cores"] for p in journal.probes.get(cell.id, ())), default=1)


def _served(sample: EpochSample, places: set[str]) -> float:
    """Bytes of feature rows that an epoch read from these locations."""
    return sum(
        c.value
        for c in sample.counts
        if (c.stage, c.name) == ("features", FEATURE_BYTES.name) and c.where in places
    )
