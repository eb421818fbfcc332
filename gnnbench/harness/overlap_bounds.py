"""How near epochs come to the least time that overlap could leave, and what phases cost each other.

Definitions: gnnbench/measure/README.md.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gnnbench.analysis import metrics as m
from gnnbench.core.cell import Cell, flat, phases
from gnnbench.core.counters import FEATURE_BYTES
from gnnbench.harness.pair_columns import Value, level
from gnnbench.harness.probing import shared_by_ranks

if TYPE_CHECKING:
    from gnnbench.harness.journal import JournalState

Record = dict[str, Any]
Row = dict[str, Any]

LINK, PROCESSORS, HOST = "link", "multiprocessors", "host"
FROM_HOST = {"host_copy", "zero_copy"}  # of gnnbench.core.counters.WHERE
CROSSING = {*FROM_HOST, "peer"}
# What drawing a batch holds, by where the topology is.
DRAWING = {"gpu": {PROCESSORS}, "uva": {PROCESSORS, LINK}, "cpu": {HOST}}


def bound_rows(cell: Cell, journal: JournalState, lives: Sequence[Sequence[Record]]) -> list[Row]:
    """Rows of ``metrics.csv``; no bound where a phase was not probed or nothing could overlap, no
    floor where no copy was."""
    samples = [s for life in lives for s in life]
    floor = _floor(cell, journal, samples)
    alone = _alone(cell, journal, samples)
    bound = least(cell, alone, _crosses(samples), _cores(cell, journal))
    if bound is None:
        return floor

    def of_bound(sample: Record) -> float:
        return float(sample["wall_s"]) / (bound * whole_batches(cell, sample))

    def slowed(phase: str) -> Value:
        def over(sample: Record) -> float | None:
            time = sample[f"{phase}_time_s"]
            return None if time is None else time / (alone[phase] * whole_batches(cell, sample))

        return over

    epoch_s = bound * statistics.median(whole_batches(cell, s) for s in samples)
    found = [m.metric(cell.id, phase, m.PROBED, seconds) for phase, seconds in alone.items()]
    found.append(m.metric(cell.id, m.EPOCH, m.BOUND, epoch_s))
    found.append(m.metric(cell.id, m.EPOCH, m.OF_BOUND, level(lives, of_bound)))
    slowdowns = {phase: level(lives, slowed(phase)) for phase in alone}
    return [*floor, *found] + [
        m.metric(cell.id, phase, m.INTERFERENCE, known)
        for phase, known in slowdowns.items()
        if known.n
    ]


def link_bytes(sample: Record) -> float:
    """Bytes of feature rows that came over a GPU's link from the host in an epoch."""
    return _served(sample, FROM_HOST)


def _floor(cell: Cell, journal: JournalState, samples: Sequence[Record]) -> list[Row]:
    """What a copy of as many bytes as cross the link would take: rate, and seconds an epoch."""
    copies = [p["copied"] for p in _probes(cell, journal, samples) if p.get("copied")]
    if not copies:
        return []
    rate = statistics.median(copy["bytes"] / copy["seconds"] for copy in copies)
    floor = statistics.median(link_bytes(s) for s in samples) / rate
    return [
        m.metric(cell.id, "features", m.LINK_RATE, rate, n=len(copies)),
        m.metric(cell.id, m.EPOCH, m.FLOOR, floor),
    ]


def whole_batches(cell: Cell, sample: Record) -> float:
    """Batches of an epoch, a short last one by its share of seeds: a probe looks at whole ones."""
    return float(sample["seeds"] / min(cell.batch_size, sample["seeds"]))


def least(cell: Cell, alone: Mapping[str, float], crosses: bool, cores: int) -> float | None:
    """Seconds per batch below which no order of these phases gets, as far as is known.

    ``alone`` are seconds per batch by phase, ``crosses`` says whether feature rows cross the link,
    ``cores`` how many the machine has for us.
    On a GPU what holds the same resource cannot overlap. On a CPU a phase is taken to keep its
    threads busy. None where a phase's time is unknown, there is but one, the sampler does not
    say where it draws, or several processes share the batches, which one of them probes.
    """
    if shared_by_ranks(cell):
        return None
    if cell.gathers or not cell.goes_until or not all(alone.get(p) for p in phases(cell.until)):
        return None
    if cell.device == "cpu":
        share = min((cell.threads or cores) / cores, 1.0)
        return max(*alone.values(), share * sum(alone.values()))
    drawing = DRAWING.get(flat(cell.recipe).get("sampler.topology", ""))
    if drawing is None:
        return None
    holds = {
        "sample": drawing,
        "memory_io": {LINK if crosses else PROCESSORS},
        "compute": {PROCESSORS},
    }
    return max(
        sum(seconds for phase, seconds in alone.items() if resource in holds[phase])
        for resource in (LINK, PROCESSORS, HOST)
    )


def _alone(cell: Cell, journal: JournalState, samples: Sequence[Record]) -> dict[str, float]:
    """Seconds per batch by phase, of the probes in the lives that the samples are of: median."""
    probes = [p["median"] for p in _probes(cell, journal, samples)]
    return {
        phase: statistics.median(p[phase] for p in probes if phase in p)
        for phase in phases(cell.until)
        if any(phase in p for p in probes)
    }


def _probes(cell: Cell, journal: JournalState, samples: Sequence[Record]) -> list[Record]:
    """Of the lives that the samples are of."""
    workers = {s["worker"] for s in samples}
    return [p for p in journal.probes.get(cell.id, ()) if p["worker"] in workers]


def _cores(cell: Cell, journal: JournalState) -> int:
    """Of the machine that was probed, which need not be the one that makes the tables."""
    return min((int(p["cores"]) for p in journal.probes.get(cell.id, ())), default=1)


def _crosses(samples: Sequence[Record]) -> bool:
    return any(_served(s, CROSSING) > 0 for s in samples)


def _served(sample: Record, places: set[str]) -> float:
    """Bytes of feature rows that an epoch read in some places."""
    return sum(
        value
        for stage, name, where, value in sample.get("counts") or ()
        if (stage, name) == ("features", FEATURE_BYTES.name) and where in places
    )
