"""Numbers of Samplers and Trainers, and when a Sampler switches to training (GNNLab, section 5.3).

``schedule=factored`` uses these formulas. On one GPU the first gives no Trainer and by the second
the Sampler switches, which is ``schedule=alternate``. The paper does not number its
equations; both are in its section "Flexible Scheduling".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# What the profit counts: mini-batches in the queue and Trainers alone, as published, or all
# mini-batches that are in no step yet, and standby Trainers that are awake.
PUBLISHED, ALL_BATCHES = "published", "all-batches"
TIE = 1e-9  # GPUs; times are measured, and a ratio of floats may miss a whole number by a bit


@dataclass(frozen=True)
class Allocation:
    """GPUs of each kind."""

    samplers: int
    trainers: int


def allocate(gpus: int, sample_s: float, train_s: float) -> Allocation:
    """N_s = ceil(N_g / (K + 1)) with K = T_t / T_s, and N_t = N_g - N_s.

    ``sample_s`` and ``train_s``: seconds that a Sampler and a Trainer take for a mini-batch,
    measured in an epoch. Extracting is hidden behind training by a pipeline: where it takes longer,
    it is the Trainer's time (section 7.3). No Trainer may be left; then Samplers switch. Raises
    ``ValueError`` for no GPU and for times that are not above 0.
    """
    if gpus < 1:
        raise ValueError(f"{gpus} GPUs cannot be allocated; give 1 or more")
    _check(sample_s=sample_s, train_s=train_s)
    samplers = math.ceil(gpus / (train_s / sample_s + 1) - TIE)
    return Allocation(samplers, gpus - samplers)


def profit(remaining: int, trainers: int, train_s: float, standby_s: float) -> float:
    """P = M_r T_t / N_t - T_t, seconds; infinite where there is no Trainer.

    ``remaining``: mini-batches in the queue (M_r); ``trainers``: N_t; ``train_s``: what one of them
    takes for a mini-batch; ``standby_s``: what the standby Trainer takes, whose cache is smaller.
    The equation as printed calls both T_t. Above 0 the standby Trainer can do one mini-batch before
    the others have done all. Raises ``ValueError`` for negative numbers and for times that are not
    above 0.
    """
    if remaining < 0 or trainers < 0:
        raise ValueError(f"{remaining} mini-batches and {trainers} Trainers must not be negative")
    _check(train_s=train_s, standby_s=standby_s)
    return remaining * train_s / trainers - standby_s if trainers else math.inf


def switches(remaining: int, trainers: int, train_s: float, standby_s: float) -> bool:
    """Whether a standby Trainer is to fetch a task now. Raises as ``profit``."""
    return remaining > 0 and profit(remaining, trainers, train_s, standby_s) > 0


def _check(**times: float) -> None:
    for name, seconds in times.items():
        if not (math.isfinite(seconds) and seconds > 0):
            raise ValueError(f"{name} must be a time above 0, it is {seconds}")
