"""Validate a system's report of an epoch against values that the runner knows.

The runner knows how many seeds and batches an epoch must have, and what the reference drew for the
same epoch; times are compared in ``clocks``. A system whose false counts all agree with each other
and with its reference is not detected here. Each fault is a sentence.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping, Sequence

from gnnbench.core import registry
from gnnbench.core.batch_choice import BatchChoice, copy_s
from gnnbench.core.cell import Cell, phases
from gnnbench.schema.reports import GraphFacts
from gnnbench.schema.samples import EpochSample
from gnnbench.statistics import primary_metric

IDLE_SHARE = 0.1  # of the epoch
IDLE_SLACK_S = 0.03
MORE_IDLE_S = 0.001  # than the reference, whose loop records as much: one of Python adds less
GAIN, GAIN_SHARE = 0.1, 0.5  # a gain of the reference's time; how much of it more idle time may be
SAME_LOSSES = 3
FIRST_EPOCH_TIMES = 5.0
FIRST_EPOCH_SLACK_S = 1.0
AFTER_SLACK_S = 0.5
CHECKED_ROUNDS, CHECKED_TIMES = 3, 1.5


def sample_fault(cell: Cell, facts: GraphFacts, epoch: int, answer: EpochSample) -> str:
    """Return what is wrong with an epoch's answer; ``facts`` are the graph's, empty without one."""
    if answer.epoch != epoch:
        return f"epoch {answer.epoch} was answered where {epoch} was requested"
    if not cell.trains and answer.loss is not None:
        return f"epoch {epoch} has a loss, {answer.loss}, but no model"
    # Of a recipe the suite counts losses itself: it has none where no seed has a label.
    if cell.trains and answer.loss is None and not cell.composed:
        return f"epoch {epoch} has no loss"
    if answer.wall_s <= 0:
        return f"the wall time of epoch {epoch} is {answer.wall_s:g} s"
    ran = phases(cell.until)[1 if cell.gathers else 0 :]  # seeds are drawn in no time
    if missing := [p for p in ran if not answer.time_s(p)]:
        return f"epoch {epoch} has no span of the phase {missing[0]}"
    train = facts.get("train_nodes")
    if not train:
        return ""
    batches = math.ceil(train / cell.batch_size)
    seeds = train
    if 0 < cell.max_batches < batches:
        batches, seeds = cell.max_batches, cell.max_batches * cell.batch_size
    numbers = (("batches", answer.batches, batches), ("seeds", answer.seeds, seeds))
    for what, number, right in numbers:
        if number != right:
            return f"epoch {epoch} ran {number} {what} where it has {right}"
    return ""


def phase_fault(cell: Cell, epoch: int, spanned: Collection[str]) -> str:
    """Return a phase that has spans though the epoch does not run it: time reported where none
    is checked.
    """
    right = phases(cell.until)
    if other := [p for p in spanned if p not in right]:
        return f"epoch {epoch} has spans of '{other[0]}' where its phases are: {', '.join(right)}"
    return ""


def idle_doubt(
    cell: Cell, samples: Sequence[EpochSample], reference: Sequence[EpochSample] = ()
) -> str:
    """Return a doubt if work may be left out of the phase that is the primary metric.

    Work of gnnbench's own schedule and order outside of all phases is known. ``reference`` are
    epochs of the other side of the same trials. However short epochs are, a gain must not be the
    idle time that the reference does not have.
    """
    by = primary_metric.of(cell.until)
    if _spans_are_ours(cell) or cell.trains or not samples:
        return ""
    idle = statistics.median(s.idle_s for s in samples)
    wall = statistics.median(s.wall_s for s in samples)
    allowed = max(IDLE_SHARE * wall, IDLE_SLACK_S)
    if reference:
        usual = statistics.median(s.idle_s for s in reference)
        allowed = IDLE_SHARE * wall + usual + MORE_IDLE_S
        usual_time = statistics.median(s.time_s(cell.until) or 0.0 for s in reference)
        gain = usual_time - statistics.median(s.time_s(cell.until) or 0.0 for s in samples)
        if gain > GAIN * usual_time:
            allowed = min(allowed, usual + GAIN_SHARE * gain)
    if idle <= allowed:
        return ""
    return (
        f"{idle:.3g} s of its epochs of {wall:.3g} s are in no phase: work may be left out of its"
        f" {by.words}"
    )


def _spans_are_ours(cell: Cell) -> bool:
    """Whether gnnbench decides what runs between the spans of an epoch.

    A sampler or a store that is announced the next batches before the first span may work there.
    """
    kinds = (registry.ORDER, registry.SCHEDULE, registry.SAMPLER, registry.FEATURES)
    named = [(kind, cell.stage_name(kind)) for kind in kinds if kind in cell.recipe]
    return cell.composed and all(name in registry.OURS[kind] for kind, name in named)


def loss_fault(samples: Sequence[EpochSample]) -> str:
    """Return a fault if the loss never changes: nothing is trained, or answers are cached."""
    if len({s.epoch for s in samples}) < SAME_LOSSES:
        return ""
    losses = {s.loss for s in samples}
    if len(losses) > 1 or losses <= {0.0, None}:
        return ""
    return f"the loss is {losses.pop():g} whatever the epoch: nothing is trained, or it is cached"


def edges_fault(rounds: Sequence[tuple[EpochSample, EpochSample]], work: str) -> str:
    """Return a fault if a system of identical work drew other numbers of edges than the
    reference.
    """
    if work != "identical":
        return ""
    for reference, system in rounds:
        right, drawn = reference.sampled_edges, system.sampled_edges
        if drawn != right:
            return (
                f"epoch {system.epoch} drew {drawn} edges where the reference drew {right}, but"
                f" at the gate the work was {work}"
            )
    return ""


def digests_fault(one: Mapping[str, str], other: Mapping[str, str], work: str) -> str:
    """Return a fault if edges of batches that were copied on both sides differ, by batch number.

    A system with an epoch loop of its own has no digests.
    """
    if work != "identical":
        return ""
    for number in sorted(one.keys() & other.keys(), key=int):
        if one[number] != other[number]:
            place = f"batch {int(number) + 1}"
            return f"{place}: it drew other edges than the reference, not so at the gate"
    return ""


def missing_copies_fault(choice: BatchChoice, report: Mapping[str, object]) -> str:
    """Return a fault if batches that the key chooses have no digest: they were not checked."""
    batches, digests = report["batches"], report["digests"]
    assert isinstance(batches, int) and isinstance(digests, Mapping)
    chosen = sum(choice.has(position, batches) for position in range(batches))
    if len(digests) >= chosen:
        return ""
    return f"{len(digests)} batches were copied aside where at least {chosen} were chosen"


def epoch_digest_fault(reference: str, system: str, work: str) -> str:
    """Return a fault if the edges of two systems of identical work differ in a verification epoch.

    A system with an epoch loop of its own reports no edges and no digest.
    """
    if work != "identical" or not reference or not system or reference == system:
        return ""
    return "when every batch was checked it drew other edges than the reference, not so at the gate"


def first_epoch_doubt(warm: Sequence[EpochSample], samples: Sequence[EpochSample]) -> str:
    """Return a doubt if a worker's unmeasured first epoch took much longer than the others."""
    if not warm or not samples:
        return ""
    first_by_trial: dict[int, float] = {}
    for sample in warm:  # a later one checks batches
        first_by_trial.setdefault(sample.life, sample.wall_s)
    first = statistics.median(first_by_trial.values())
    usual = statistics.median(s.wall_s for s in samples)
    if first <= FIRST_EPOCH_TIMES * usual or first - usual <= FIRST_EPOCH_SLACK_S:
        return ""
    return (
        f"a warm-up epoch took {first:.3g} s, {first / usual:.0f} times a measured one: work may"
        " have moved there"
    )


def checked_doubt(cell: Cell, warm: Sequence[EpochSample], samples: Sequence[EpochSample]) -> str:
    """Return a doubt if epochs with many copied batches take longer than others.

    A worker can find out which these are, and do in them alone what it should always do. On a CPU
    its CPU time is compared, which other programs change little; the shortest of several epochs,
    as single ones take longer by chance.
    """
    checked = [s for s in warm if s.checked]
    if len(checked) < CHECKED_ROUNDS or not samples:
        return ""

    def spent(sample: EpochSample) -> float:
        copies = sample.checked * copy_s(cell.device, _elements(sample))
        return (sample.work_cpu_s if cell.device == "cpu" else sample.wall_s) - copies

    usual, least = statistics.median(map(spent, samples)), min(map(spent, checked))
    if least <= CHECKED_TIMES * usual:
        return ""
    return (
        f"epochs with many checked batches took {least / usual:.1f} times as long as others: work"
        " may be left out of these"
    )


def _elements(sample: EpochSample) -> float:
    """Edges and nodes of a batch, as a mean."""
    return (sample.sampled_edges + sample.unique_nodes) / max(sample.batches, 1)


def after_doubt(cell: Cell, samples: Sequence[EpochSample]) -> str:
    """Return a doubt if a worker is busy after an epoch or in its audit for longer than in the
    epoch.

    The work of gnnbench's own audit is known; it counts where a third-party stage may work in it.
    """
    known_audit = _spans_are_ours(cell)
    known = [s for s in samples if s.outer_s]
    if not known:
        return ""
    after = statistics.median(
        (s.block_s or 0.0) - s.outer_s + (0.0 if known_audit else s.audit_s) for s in known
    )
    wall = statistics.median(s.wall_s for s in known)
    if after <= wall or after <= AFTER_SLACK_S:
        return ""
    return (
        f"it worked for {after:.3g} s after each epoch of {wall:.3g} s: work may have moved there"
    )
