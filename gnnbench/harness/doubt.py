"""Why a paired trial is unreliable: disturbances from outside, and implausible times of a cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gnnbench.core import registry
from gnnbench.core.cell import flat, phases
from gnnbench.core.units import plural
from gnnbench.harness import clocks, report_audit, thread_placement
from gnnbench.harness.training_check import excess_doubt
from gnnbench.measure import machine

if TYPE_CHECKING:
    from gnnbench.core.cell import Cell
    from gnnbench.harness.journal import JournalState
    from gnnbench.harness.plan import CellPair
    from gnnbench.schema.samples import EpochSample

IDLE_SHARE = 0.02  # of a core
FOREIGN_SHARE = 0.2  # cores
FREE_SHARE = 0.05  # and of each core that the worker leaves free, where others are in nobody's way
IDLE_TICKS_S = 0.03  # three clock ticks: less cannot be distinguished from rounding
# Of the worker's own CPU time: what all cores did is sampled by ticks, what a process used is not,
# and work in short bursts is counted by the one at up to a tenth more or less than by the other.
SAMPLED = 0.1


# Cores above the number of threads: OpenMP threads spin, and a helper thread that is rarely active.
THREADS_SLACK, ONE_HELPER = 1.05, {"cpu": 0.02, "cuda": 0.25}
SERIAL = "serial"

# Of the runner's own run-queue delay: a share of an epoch, and seconds of a short one.
WAIT_SHARE = 0.01
WAIT_S = 0.004


def share(samples: Sequence[EpochSample], cpu_s: Callable[[EpochSample], float | None]) -> float:
    """CPU time per second of the timed blocks (cores)."""
    length = sum(s.block_s or 0.0 for s in samples)
    return sum(cpu_s(s) or 0.0 for s in samples) / length if length else 0.0


def pair_doubt(
    samples: Sequence[EpochSample], free_cores: int = 0, untimed: Sequence[EpochSample] = ()
) -> str:
    """Return why a paired trial should not count, or "", from the measured samples of both sides.

    Causes are outside the system. ``free_cores``: cores that no worker thread needs. A stop also
    counts in ``untimed`` parts.
    """
    if changed := thread_placement.changes_doubt(samples):
        return changed
    if stopped := stop_doubt([*untimed, *samples]):
        return stopped
    for ident in dict.fromkeys(s.id for s in samples):
        own = [s for s in samples if s.id == ident]
        others = [s.system for s in samples if s.id != ident]
        if reason := disturbed(own, free_cores, others[0] if others else "the other"):
            return reason
        if slowed := [s.throttle for s in own if s.throttle]:
            return f"the GPU was throttled ({slowed[-1]}); cool it or lock lower clocks"
    return ""


def disturbed(own: Sequence[EpochSample], free_cores: int = 0, other: str = "the other") -> str:
    """Return why the machine was not idle while a worker was measured, or "", from its samples.

    ``other`` is the system that was idle meanwhile. The worker's own run-queue delay does not
    count: its threads may delay each other.
    """
    busy, busy_cores = sum(s.idle_cpu_s or 0.0 for s in own), share(own, lambda s: s.idle_cpu_s)
    if busy > IDLE_TICKS_S and busy_cores > IDLE_SHARE:
        return (
            f"the worker of '{other}' used {busy_cores:.0%} of a core while"
            f" '{own[0].system}' was measured"
        )
    allowed = allowed_cores(free_cores)
    foreign = share(own, lambda s: s.foreign_cpu_s)
    slack = IDLE_TICKS_S + SAMPLED * sum(s.cpu_s or 0.0 for s in own)
    if foreign > allowed and sum(s.foreign_cpu_s or 0.0 for s in own) > slack:
        return f"other programs used {foreign:.1f} cores meanwhile; close them"
    stolen = share(own, lambda s: s.stolen_s)
    if stolen > allowed and sum(s.stolen_s for s in own) > IDLE_TICKS_S:
        return f"the hypervisor gave {stolen:.1f} cores to other machines meanwhile"
    return ""


def waited(own: Sequence[EpochSample]) -> bool:
    """Whether the runner waited too long for a core to judge a worker's times by its clock.

    Programs that are not visible from this process may use the cores.
    """
    seconds = sum(s.runner_wait_s for s in own)
    return seconds > max(WAIT_SHARE * sum(s.block_s or 0.0 for s in own), WAIT_S * len(own))


def allowed_cores(free_cores: int) -> float:
    """Cores that other programs may use, where the workers leave some free."""
    return FOREIGN_SHARE + FREE_SHARE * free_cores


def busy_round(sample: EpochSample, free_cores: int) -> bool:
    """Whether other programs used more cores during one epoch than is allowed."""
    slack = IDLE_TICKS_S + SAMPLED * (sample.cpu_s or 0.0)
    allowed = allowed_cores(free_cores)
    return (sample.foreign_cpu_s or 0.0) > max(allowed * (sample.block_s or 0.0), slack)


def stop_doubt(samples: Sequence[EpochSample]) -> str:
    """Whether a worker was stopped by a signal, or the machine suspended, in these samples."""
    for ident in dict.fromkeys(s.id for s in samples):
        own = [s for s in samples if s.id == ident]
        if stopped := sum(s.stopped_s for s in own):
            length = f" for {stopped:.0f} s" if stopped >= 1 else ""
            return f"the worker of '{own[0].system}' was stopped by a signal{length}"
    if suspended := sum(s.suspended_s for s in samples):
        return f"the machine was suspended for {suspended:.0f} s"
    return ""


def threads_doubt(cell: Cell, own: Sequence[EpochSample]) -> str:
    """Whether a cell has more busy threads than it should: CPU time above threads x wall time.

    Processes of its data loader count as threads. Schedules that run phases concurrently have a
    team of threads for each: gnnbench's own are not examined, a plug-in's by how many phases its
    epochs had open.
    """
    settings, known = flat(cell.recipe), [s for s in own if s.work_cpu_s]
    schedule = settings.get("schedule", SERIAL)
    if not known or (schedule != SERIAL and schedule in registry.OURS[registry.SCHEDULE]):
        return ""
    is_own = settings.get("sampler") in registry.OURS[registry.SAMPLER]
    loaders = settings.get("sampler.workers", 0) if is_own else 0
    allowed = machine.resolve_threads(cell.threads) + (loaders if isinstance(loaders, int) else 0)
    open_s = sum(max(s.wall_s - s.idle_s, 0.0) for s in known)
    phases_s = sum(s.time_s(phase) or 0.0 for s in known for phase in phases(cell.until))
    teams = max(phases_s / open_s, 1.0) if open_s else 1.0
    # What its main thread waited for a core counts too, else other programs would hide threads.
    busy_s = sum(s.work_cpu_s + s.worker_wait_s for s in known)
    used = busy_s / sum(s.parent_s for s in known)
    if used <= THREADS_SLACK * allowed * teams + ONE_HELPER[cell.device]:
        return ""
    return f"it kept {used:.1f} cores busy with {plural(allowed, 'thread')}; it gets --threads"


def own_doubts(cell: Cell, pair: CellPair | None, journal: JournalState) -> list[str]:
    """Return implausible times of a cell in the trials of one comparison, or of all."""
    own = journal.measured(cell, pair)
    reference: Sequence[EpochSample] = ()
    if pair is not None and pair.reference is not None and pair.reference != cell:
        reference = journal.measured(pair.reference, pair)
    excesses = journal.excesses(pair).values() if pair is not None else ()
    doubts = [
        report_audit.first_epoch_doubt(journal.warm_ups(cell, pair), own),
        report_audit.checked_doubt(cell, journal.warm_ups(cell, pair), own),
        clocks.quiescence_doubt(own),
        clocks.parent_doubt(own),
        thread_placement.idle_cpu_doubt(own),
        report_audit.idle_doubt(cell, own, reference),
        report_audit.after_doubt(cell, own),
        threads_doubt(cell, own),
        excess_doubt([*excesses]) if pair is not None and pair.system == cell else "",
    ]
    return [text for text in doubts if text]
