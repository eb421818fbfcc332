"""Check that two systems of the same work train alike.

Both sides of a comparison start from the same weights and run the same epochs. Their losses,
parameter updates, and counts of edges and nodes then differ only by the random draws (equivalent
work) or by float32 rounding (identical work). How far these lead correct systems apart depends on
the model, the graph and the number of epochs, so it is measured: by further trainings of the
reference itself (``gnnbench.harness.retraining``). A difference is an excess where it is larger
than
a fixed tolerance and than the spread of those trainings allows.

The caller repeats a trial that has an excess. Only an excess that ``REPEATS`` fresh trials repeat,
in the same quantity and direction, is a fault.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gnnbench.schema.samples import EpochSample
from gnnbench.statistics.estimates import t_quantile
from gnnbench.statistics.work_class import DEVIATIONS, DRAWN

Number = Callable[[EpochSample], float | None]
Training = Sequence[EpochSample]  # the epochs of one process, warm-up included, in order
Trial = tuple[Training, Training]  # of the reference and of the system
Floats = npt.NDArray[np.float64]

RETRAININGS = 8  # trainings of the reference that estimate its spread
CONFIDENCE = 0.999  # of one quantity in one trial
REPEATS = 2  # further trials that must have the same excess before it is a fault
TINY = 1e-30


@dataclass(frozen=True)
class Tolerance:
    """Differences that are never an excess, for one class of work.

    ``loss`` is relative to the first epoch's loss of the reference, ``step`` and ``layer`` are
    natural logarithms of a ratio (of an epoch's parameter movement; of one layer's, where it is
    less than the reference's), ``norm`` is relative. The ``mean_`` values apply to means over the
    epochs of all trials.
    """

    loss: float
    step: float
    layer: float
    norm: float
    mean_loss: float = math.inf
    mean_step: float = math.inf


# Identical work agrees to rounding in its first epoch; training amplifies rounding afterwards.
IDENTICAL_FIRST = Tolerance(loss=1e-3, step=0.02, layer=math.log(2), norm=1e-3)
IDENTICAL = Tolerance(loss=5e-3, step=0.2, layer=math.log(2), norm=5e-3)
EQUIVALENT = Tolerance(
    loss=0.03, step=0.2, layer=math.log(2), norm=3e-3, mean_loss=0.02, mean_step=0.07
)
# The last batches of an epoch decide how far it moves the parameters, so another order of the same
# batches may move them by any distance but a small one.
REORDERED = Tolerance(loss=0.03, step=math.inf, layer=math.log(20), norm=0.02)

_NAMES = {
    "loss": "losses", "updates": "parameter updates", "nodes": "numbers of nodes",
    "edges": "numbers of edges",
}  # fmt: skip
LEAST_SHARE = 0.01  # of a step: a layer that moves less may stand still by chance


@dataclass(frozen=True)
class Excess:
    """A difference beyond tolerance and spread.

    ``quantity`` names what differs and in which direction: ``updates-`` for parameters that move
    less than the reference's, ``loss+``, ``nodes+`` and so on. ``text`` is a clause for a message.
    """

    quantity: str
    text: str


@dataclass(frozen=True)
class _Quantity:
    """One number of an epoch, and how far it may be from the reference's whatever the spread."""

    name: str
    of: Number
    allowed: float
    text: Callable[[float, float], str]  # of the system's value and the reference's
    only_less: bool = False


def tolerance_of(work: str, nth: int, reordered: bool) -> Tolerance:
    """The fixed tolerances in the ``nth`` epoch of a training."""
    if reordered:
        return REORDERED
    if work == "identical":
        return IDENTICAL if nth else IDENTICAL_FIRST
    return EQUIVALENT


def find_excess(
    trials: Sequence[Trial],
    spread: Sequence[Training],
    work: str,
    reordered: bool = False,
    same_updates: bool = True,
) -> Excess | None:
    """The first difference of the last trial, or of the means of all trials, that is an excess.

    Parameters
    ----------
    trials
        Reference's and system's epochs of each trial; the last one is checked epoch by epoch.
    spread
        Trainings of the reference that differ from it as a correct system may. Without at least
        two the fixed tolerances decide alone.
    work
        ``identical`` or ``equivalent``; other classes have nothing to compare.
    reordered
        Whether the two sides run the same batches in another order.
    same_updates
        Whether both make the same updates; if not, only edges and nodes are compared.
    """
    if work not in ("identical", "equivalent") or not trials:
        return None
    reference, system = trials[-1]
    known = [t for t in spread if len(t) >= len(reference)]
    for nth, (right, own) in enumerate(zip(reference, system, strict=False)):
        if right.epoch != own.epoch:
            return None  # the two did not run the same epochs
        scale = tolerance_of(work, nth, reordered)
        quantities = [*_counts(right)]
        if same_updates:
            quantities += _learned(reference[0], right, own, scale)
        for quantity in quantities:
            if result := _compare(quantity, right, own, [t[nth] for t in known]):
                return Excess(result.quantity, f"epoch {nth + 1} of its process {result.text}")
    if work == "equivalent" and not reordered and same_updates:
        return _mean_excess(trials, known)
    return None


def excess_doubt(excesses: Sequence[str]) -> str:
    """A doubt for excesses that were not repeated often enough for a fault, by their quantities."""
    if not excesses:
        return ""
    names = ", ".join(dict.fromkeys(_NAMES[quantity[:-1]] for quantity in excesses))
    return (
        f"in {len(excesses)} of its trials its {names} differed from the reference's by more than"
        " correct systems usually do"
    )


def structural_fault(reference: Training, system: Training, work: str) -> str:
    """What no random draw explains: another number of nodes for identical work, or of layers."""
    for nth, (right, own) in enumerate(zip(reference, system, strict=False)):
        where = f"epoch {nth + 1} of its process"
        one, other = right.param_moved, own.param_moved
        if right.epoch != own.epoch:
            return ""
        if work == "identical" and right.unique_nodes != own.unique_nodes:
            return (
                f"{where} met {own.unique_nodes} nodes where the reference met"
                f" {right.unique_nodes}, but at the gate the work was identical"
            )
        if one and other and len(one) != len(other):
            return f"{where} trained {len(other)} layers where the reference has {len(one)}"
    return ""


def divergence(training: Training) -> str:
    """Whether the training itself diverged: its first epoch whose loss is no finite number."""
    for nth, record in enumerate(training):
        if record.loss is not None and not math.isfinite(record.loss):
            return (
                f"its training diverged: the loss of epoch {nth + 1} of its process is"
                f" {record.loss}; take a lower learning_rate or smaller features"
            )
    return ""


def _whole(record: EpochSample) -> float:
    return math.hypot(*record.param_moved)


def _counts(right: EpochSample) -> Iterator[_Quantity]:
    """Numbers that depend on the draws: 3 %, or four deviations of two Poisson numbers."""
    numbers: tuple[tuple[str, Number, str], ...] = (
        ("nodes", lambda r: r.unique_nodes, "met"), ("edges", lambda r: r.sampled_edges, "drew"),
    )  # fmt: skip
    for name, of, verb in numbers:
        if (value := of(right)) is not None:
            allowed = max(DRAWN * value, DEVIATIONS * math.sqrt(2 * value))
            text = f"{verb} {{:.0f}} {name} where the reference {verb} {{:.0f}}"
            yield _Quantity(name, of, allowed, text.format)


def _learned(
    first: EpochSample, right: EpochSample, own: EpochSample, scale: Tolerance
) -> Iterator[_Quantity]:
    """What an epoch's training led to; ``first`` is the reference's first epoch."""
    one, other = right.param_moved, own.param_moved
    if one and other:
        for nth, step in enumerate(one):
            if step > LEAST_SHARE * _whole(right):
                yield _layer(nth, scale)
        yield _Quantity(
            "updates", lambda r: math.log(max(_whole(r), TINY)), scale.step,
            lambda a, b: f"moved the parameters by {math.exp(a):.3g} where the reference moved"
            f" them by {math.exp(b):.3g}",
        )  # fmt: skip
        yield _Quantity(
            "updates", lambda r: r.param_norm, scale.norm * abs(right.param_norm or 0.0),
            lambda a, b: f"left parameters of norm {a:.4g} where the reference has {b:.4g}",
        )  # fmt: skip
    if first.loss is not None:
        yield _Quantity(
            "loss", lambda r: r.loss, scale.loss * abs(first.loss),
            lambda a, b: f"has a loss of {a:.4g} where the reference has {b:.4g}",
        )  # fmt: skip


def _layer(nth: int, scale: Tolerance) -> _Quantity:
    return _Quantity(
        "updates", lambda r: math.log(max(r.param_moved[nth], TINY)), scale.layer,
        lambda a, b: f"moved layer {nth + 1} by {_shown(a)} where the reference moved it by"
        f" {_shown(b)}: it is not trained as it should be",
        only_less=True,
    )  # fmt: skip


def _shown(logarithm: float) -> str:
    return "0" if logarithm <= math.log(TINY) else f"{math.exp(logarithm):.2g}"


def _compare(
    quantity: _Quantity, right: EpochSample, own: EpochSample, spread: Sequence[EpochSample]
) -> Excess | None:
    """Whether one quantity of one epoch is an excess."""
    one, other = quantity.of(right), quantity.of(own)
    if one is None or other is None or (quantity.only_less and other > one):
        return None
    others = np.array([v for r in spread if (v := quantity.of(r)) is not None])
    if _within(np.array([one]), np.array([other]), others, quantity.allowed):
        return None
    return Excess(quantity.name + ("+" if other > one else "-"), quantity.text(other, one))


def _within(right: Floats, own: Floats, spread: Floats, allowed: float) -> bool:
    """Whether the mean of ``own`` is within ``allowed`` of that of ``right``, or within what
    ``spread``, values of the reference's trainings, explains.

    ``right`` and ``own`` hold a value for each trial. Positive values may be explained on a linear
    or on a logarithmic scale: losses of a training that hardly converges have a long upper tail.
    """
    near = abs(float(np.mean(own) - np.mean(right)))
    if near <= allowed:
        return True
    if len(spread) < 2 or not math.isfinite(near):
        return False
    if _explained(right, own, spread):
        return True
    positive = min(right.min(), own.min(), spread.min()) > 0
    return positive and _explained(np.log(right), np.log(own), np.log(spread))


def _explained(right: Floats, own: Floats, spread: Floats) -> bool:
    """Whether Student's t of the reference's trainings explains the distance of the means.

    The distance is from the trials' own reference or from all trainings of the reference,
    whichever is less.
    """
    pool = np.concatenate([spread, right])
    near = min(abs(float(np.mean(own) - np.mean(other))) for other in (right, pool))
    error = float(np.std(pool, ddof=1)) * math.sqrt(1 / len(own) + 1 / len(pool))
    return near <= t_quantile(CONFIDENCE, len(pool) - 1) * error


def _mean_excess(trials: Sequence[Trial], spread: Sequence[Training]) -> Excess | None:
    """Whether the system learns slower or faster in the mean of all epochs of all trials."""
    first = trials[-1][0][0].loss
    epochs = sum(len(reference) for reference, _ in trials)
    where = f"over {epochs} epochs of {len(trials)} processes"
    if first is not None:
        result = _means(trials, spread, lambda r: r.loss)
        if result and not _within(*result, EQUIVALENT.mean_loss * abs(first)):
            more = float(np.mean(result[1]) - np.mean(result[0]))
            way = "above" if more > 0 else "below"
            return Excess(
                f"loss{'+' if more > 0 else '-'}",
                f"{where} its losses are {way} the reference's by {abs(more) / abs(first):.1%} of"
                " the first one in the mean",
            )
    moved = _means(trials, spread, lambda r: math.log(w) if (w := _whole(r)) > 0 else None)
    if moved and not _within(*moved, EQUIVALENT.mean_step):
        more = float(np.mean(moved[1]) - np.mean(moved[0]))
        return Excess(
            f"updates{'+' if more > 0 else '-'}",
            f"{where} its parameters moved {math.exp(more):.2g} times as far as the reference's in"
            " the mean",
        )
    return None


def _means(
    trials: Sequence[Trial], spread: Sequence[Training], of: Number
) -> tuple[Floats, Floats, Floats] | None:
    """Means over the epochs of each training: of the reference, the system and ``spread``."""

    def mean(training: Training, length: int) -> float | None:
        values = [of(record) for record in training[:length]]
        return None if None in values or not values else float(np.mean(values))  # type: ignore[arg-type]

    length = min(len(side) for trial in trials for side in trial)
    result = [[mean(t, length) for t in side] for side in (*zip(*trials, strict=True), spread)]
    if any(value is None for side in result for value in side):
        return None
    right, own, others = (np.array(side, dtype=np.float64) for side in result)
    return right, own, others
