"""Two lives that start from the same weights and see the same epochs: do they learn alike?

Systems of the same work have losses, steps of the parameters and numbers of nodes in common, epoch
by epoch since their start. What is left out of an epoch's work shows here, whatever it is. A system
that computes another's answers beside its own is beyond this, but then it has done the work.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from gnnbench.measure.work import drawn_alike

Record = Mapping[str, Any]
Life = Sequence[Record]

# Of the loss of the first epoch. Identical draws differ by float32 sums in another order;
# equivalent ones by the draws: DGL and PyG beside ours were within 1.1 % over 12 epochs.
# Again: identical work after its first epoch. Training leads sums in another order apart, the more
# layers and the less there is to be learnt: three layers on labels drawn at random (24 batches an
# epoch, 9 epochs, six trainings of FastSample beside the baseline) were apart by 1e-4 in the first
# epoch's steps and in the ninth's by 5 %, a layer's from 0.76 times the other's on, the losses by
# 0.06 %, the norms by 0.09 %. Two layers were not.
# Reordered: the same batches, run in another order within an epoch. How far an epoch leads from
# where it began is then a matter of its last batches (measured on R-MAT of scale 10 in windows of
# 8 and of 32: steps up to 37 and 94 % apart, losses 0.2 %, norms 0.7 %).
# First, paced: equivalent work in the first epoch of a training that is followed, and later on.
# Measured with two picks of one law on Amazon Computers and Tolokers, 13 pairs of 8 epochs: right
# systems up to 16 % apart in the first loss, then 7 % beyond the epochs around, steps of layers
# from 0.42 times the reference's on, norms 2.3 % apart. Half of the updates left out, half and
# twice the rate are beyond one of these bounds in six trainings, but not where little is learned in
# 8 epochs (Tolokers at a rate of 0.003); three quarters left out are in all eight.
# Later: equivalent work after its first epoch. Where nothing more is to be learnt the steps are
# what chance makes of each draw: on R-MAT of scale 21, DGL beside ours (GCN, GraphSAGE, GAT; 100
# epochs), first steps at most 3 % apart, later ones 30 %, a layer's from 0.43 times the other's on,
# norms 1.9 %; epochs of one and the same system were as far apart. Where much is learned in an
# epoch, a loss is a matter of how far a training has come: DGL beside FastSample's draws (GraphSAGE
# 256, Products' twin, 7 epochs of 4 batches, the loss from 3.8 to 0.4) were 0.16, 0.21, 0.24 and
# 0.35 of the reference's own progress of an epoch apart, in the third to sixth, each more than 3 %
# of the first loss and the last less than 4 %.
AGAIN, REORDERED, FIRST, PACED, LATER = "again", "reordered", "first", "paced", "later"
LOSS = {
    "identical": 1e-3, AGAIN: 5e-3, "equivalent": 0.03, REORDERED: 0.03, FIRST: 0.2, PACED: 0.08,
    LATER: 0.04,
}  # fmt: skip
# How far an epoch moves the parameters, all together.
STEPS = {
    "identical": 0.02, AGAIN: 0.2, "equivalent": 0.2, REORDERED: math.inf, FIRST: 0.2,
    PACED: math.inf, LATER: 0.6,
}  # fmt: skip
NORM = {
    "identical": 1e-3, AGAIN: 5e-3, "equivalent": 0.02, REORDERED: 0.02, FIRST: 0.02, PACED: 0.03,
    LATER: 0.03,
}  # fmt: skip
# And of the reference's step, by which draws lead norms apart: epochs of 151 batches (R-MAT of
# scale 27, eleven lives of DGL and ours) were up to 2.6 % apart in the first, 0.05 of its step, and
# 5.5 % later on, 0.15 of the step.
DRIFT = {"equivalent": 0.1, LATER: 0.15}
# Of the step of the reference: no draw makes a layer move that little, nor any order.
STILL = {
    "identical": 0.5, AGAIN: 0.5, "equivalent": 0.5, REORDERED: 0.05, FIRST: 0.5, PACED: 0.3,
    LATER: 0.1,
}  # fmt: skip
PACE = 0.25  # of what the reference learns in an epoch: so far may draws alone lead ahead or behind
# Over all lives of a comparison, of equivalent work after the first epochs. Chance has no sign, and
# who leaves updates out falls behind by the same share with every epoch. Of 37 comparisons of
# right systems (200 lives) the lag was at most 0.02 of an epoch's progress for each epoch trained,
# but where little is learned, and the losses 0.4 % of the first one apart; median steps 7 %. Of
# small trainings (36 settings, three epochs) with 3/8 of the updates left out after the first one
# 45 of 180 pass in two lives by the bounds above, 25 by these as well; right ones as often as ever.
LAG, SPREAD = 0.1, 0.01  # of the progress for each epoch; of the first loss, by epoch
STRIDE, STRAY = 0.15, 0.3  # of a median step (log); of one epoch's
AROUND = 2  # epochs before and after one that a paced system may be at
WORTH = 0.01  # of the whole step: a layer that moves less may stand still by chance


def losses_fault(
    reference: Life, system: Life, work: str, reordered: bool = False, followed: bool = False
) -> str:
    """Whether a system of the same work learns otherwise than the reference.

    Both are the samples of one life each, warm-up included, in the order in which they were run;
    the epochs must be the same. Other kinds of work have nothing to be held against. Two that are
    ``reordered`` to one another meet as many nodes, but learn less alike. ``followed``: what is
    looked at is a whole training, and who draws otherwise need only keep pace after its first
    epoch, by a loss between those of the ``AROUND`` epochs before and after: right systems are led
    further apart than other draws lead them in a few.
    """
    if work not in LOSS:
        return ""
    for nth, (right, found) in enumerate(zip(reference, system, strict=False)):
        if right["epoch"] != found["epoch"]:
            return ""  # not the same epochs from the start on: nothing to compare
        learning = AGAIN if nth and work == "identical" else work
        if work == "equivalent":
            learning = (PACED if followed else LATER) if nth else (FIRST if followed else work)
        learning = REORDERED if reordered else learning
        near, pace = [right["loss"]], 0.0
        if nth and learning == PACED:
            near = _around(reference, nth)
        if nth and learning == LATER:
            pace = PACE * _progress(reference, nth)
        fault = _nodes_fault(right, found, work) or _steps_fault(right, found, learning)
        if fault := fault or _loss_fault(reference[0], right, near, found, learning, pace):
            return f"epoch {nth + 1} of its process {fault}, but at the gate the work was {work}"
    return ""


def trend_fault(
    lives: Sequence[tuple[Life, Life]], work: str, reordered: bool = False, followed: bool = False
) -> str:
    """Whether all ``lives`` of a comparison together learn slower or faster, or in other steps.

    Each is the reference's and the system's, as in :func:`losses_fault`, which looks at one.
    """
    if work != "equivalent" or reordered or followed or len(lives) < 2:
        return ""
    behind, due, steps = 0.0, 0.0, []
    for reference, system in lives:
        for nth, (right, found) in enumerate(zip(reference, system, strict=False)):
            if right["epoch"] != found["epoch"]:
                break
            losses = right["loss"], found["loss"], reference[0]["loss"]
            moved = [math.hypot(*(r.get("param_moved") or [])) for r in (right, found)]
            if nth == 0 or None in losses or not all(moved):
                continue
            now, theirs, first = losses
            behind += (theirs - now) / abs(first)
            due += nth * _progress(reference, nth) / abs(first)
            steps.append(math.log(moved[1] / moved[0]))
    if not steps:
        return ""
    where = f"over {len(steps)} epochs of {len(lives)} processes"
    if abs(behind) > LAG * due + SPREAD * math.sqrt(len(steps)):
        way = "behind" if behind > 0 else "ahead of"
        return (
            f"{where} its losses are {way} the reference's by {abs(behind) / len(steps):.1%} of the"
            " first one in the mean, but at the gate the work was equivalent"
        )
    stride = statistics.median(steps)
    if abs(stride) > STRIDE + STRAY / math.sqrt(len(steps)):
        return (
            f"{where} its parameters moved {math.exp(stride):.2g} times as far as the reference's,"
            " but at the gate the work was equivalent"
        )
    return ""


def _progress(reference: Life, nth: int) -> float:
    """What the reference learned in the epoch before one: how far its loss changed."""
    before, now = reference[nth - 1]["loss"], reference[nth]["loss"]
    return 0.0 if before is None or now is None else abs(before - now)


def _around(reference: Life, nth: int) -> list[float | None]:
    """The reference's losses of the epochs around one.

    Those that it has not run are taken to fall as the epochs before did: who is ahead of it would
    otherwise be held against nothing.
    """
    losses = [r["loss"] for r in reference[max(0, nth - AROUND) : nth + AROUND + 1]]
    before, now = losses[0], reference[nth]["loss"]
    if nth + AROUND >= len(reference) and before is not None and now is not None:
        losses.append(now - abs(before - now))
    return losses


def _nodes_fault(right: Record, found: Record, work: str) -> str:
    one, other = right["unique_nodes"], found["unique_nodes"]
    if drawn_alike(one, other, work):
        return ""
    return f"met {other} nodes where the reference met {one}"


def _loss_fault(
    first: Record,
    right: Record,
    near: Sequence[float | None],
    found: Record,
    work: str,
    pace: float,
) -> str:
    """Whether a loss is beyond those of the reference that are ``near`` it, by more than may be:
    a share of the first one, or ``pace``."""
    if right["loss"] is None or found["loss"] is None:
        return ""
    losses = [loss for loss in near if loss is not None]
    slack = max(LOSS[work] * abs(first["loss"]), pace)
    if min(losses) - slack <= found["loss"] <= max(losses) + slack:
        return ""
    return f"has a loss of {found['loss']:.4g} where the reference has {right['loss']:.4g}"


def _steps_fault(right: Record, found: Record, work: str) -> str:
    one, other = right.get("param_moved") or [], found.get("param_moved") or []
    if not one or not other:
        return ""
    if len(one) != len(other):
        return f"trained {len(other)} layers where the reference has {len(one)}"
    whole, other_whole = math.hypot(*one), math.hypot(*other)
    for number, (step, other_step) in enumerate(zip(one, other, strict=True), start=1):
        if step > WORTH * whole and other_step < STILL[work] * step:
            return (
                f"moved layer {number} by {other_step:.2g} where the reference moved it by"
                f" {step:.2g}: it is not trained as it should be"
            )
    if abs(other_whole - whole) > STEPS[work] * whole:
        return (
            f"moved the parameters by {other_whole:.3g} where the reference moved them by"
            f" {whole:.3g}"
        )
    norm, other_norm = right.get("param_norm"), found.get("param_norm")
    if norm is None or other_norm is None or not math.isfinite(other_norm + other_whole):
        return "tells no finite norm of the parameters and of their steps"
    if abs(other_norm - norm) > NORM[work] * norm + DRIFT.get(work, 0.0) * whole:
        return f"left parameters of norm {other_norm:.4g} where the reference has {norm:.4g}"
    return ""
