"""Two lives that start from the same weights and see the same epochs: do they learn alike?

Systems of the same work have losses, steps of the parameters and numbers of nodes in common, epoch
by epoch since their start. What is left out of an epoch's work shows here, whatever it is. A system
that computes another's answers beside its own is beyond this, but then it has done the work.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]
Life = Sequence[Record]

# Of the loss of the first epoch. Identical draws differ by float32 sums in another order;
# equivalent ones by the draws: DGL and PyG beside ours were within 1.1 % over 12 epochs.
# Reordered: the same batches, run in another order within an epoch. How far an epoch leads from
# where it began is then a matter of its last batches (measured on R-MAT of scale 10 in windows of
# 8 and of 32: steps up to 37 and 94 % apart, losses 0.2 %, norms 0.7 %).
REORDERED = "reordered"
LOSS = {"identical": 1e-3, "equivalent": 0.03, REORDERED: 0.03}
# How far an epoch moves the parameters, all together.
STEPS = {"identical": 0.02, "equivalent": 0.2, REORDERED: math.inf}
NORM = {"identical": 1e-3, "equivalent": 0.02, REORDERED: 0.02}
NODES = {"identical": 0.0, "equivalent": 0.03}
# Of the step of the reference: no draw makes a layer move that little, nor any order.
STILL = {"identical": 0.5, "equivalent": 0.5, REORDERED: 0.05}
WORTH = 0.01  # of the whole step: a layer that moves less may stand still by chance


def losses_fault(
    reference: Life, system: Life, work: str, reordered: bool = False, followed: bool = False
) -> str:
    """Whether a system of the same work learns otherwise than the reference.

    Both are the samples of one life each, warm-up included, in the order in which they were run;
    the epochs must be the same. Other kinds of work have nothing to be held against. Two that are
    ``reordered`` to one another meet as many nodes, but learn less alike. ``followed``: what is
    looked at is a whole training, and who draws otherwise need only keep pace after its first
    epoch, by a loss between those of the epochs around: right systems are led further apart than
    other draws lead them in a few (measured on Amazon Computers: losses up to 13 % of the first
    one's, steps of a layer 54 %, norms 0.7 %).
    """
    if work not in NODES:
        return ""
    for nth, (right, found) in enumerate(zip(reference, system, strict=False)):
        if right["epoch"] != found["epoch"]:
            return ""  # not the same epochs from the start on: nothing to compare
        paced = followed and work == "equivalent" and nth > 0
        learning = REORDERED if reordered or paced else work
        near = reference[nth - 1 : nth + 2] if paced else [right]
        fault = _nodes_fault(right, found, work) or _steps_fault(right, found, learning)
        if fault := fault or _loss_fault(reference[0], right, near, found, learning):
            return f"epoch {found['epoch']} {fault}, but at the gate the work was {work}"
    return ""


def _nodes_fault(right: Record, found: Record, work: str) -> str:
    one, other = right["unique_nodes"], found["unique_nodes"]
    if abs(other - one) <= NODES[work] * one:
        return ""
    return f"met {other} nodes where the reference met {one}"


def _loss_fault(first: Record, right: Record, near: Life, found: Record, work: str) -> str:
    """Whether a loss is beyond those of the reference's epochs ``near`` it."""
    if right["loss"] is None or found["loss"] is None:
        return ""
    losses = [r["loss"] for r in near if r["loss"] is not None]
    slack = LOSS[work] * abs(first["loss"])
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
    if abs(other_norm - norm) > NORM[work] * norm:
        return f"left parameters of norm {other_norm:.4g} where the reference has {norm:.4g}"
    return ""
