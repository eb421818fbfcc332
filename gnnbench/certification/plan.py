"""Sizes and levels of a certificate's tests."""

from __future__ import annotations

from dataclasses import dataclass

# False alarms of a whole certificate of a correct sampler: at most 8 x 2.5e-5 + 7 x 1e-4 = 9e-4.
EXACT_LEVEL = 2.5e-5  # of each test of counts with known probabilities
PAIR_LEVEL = 1e-4  # of each test of independence; random tables give at least 1 / 20,001


@dataclass(frozen=True)
class Plan:
    """Batches and rows that are drawn.

    ``copies``: hubs of each degree in a batch. ``calls``: batches. ``hub_copies``, ``hub_calls``:
    the same for rows of thousands. ``pairs``: hubs whose picks are paired; ``epochs`` and
    ``batches`` of these. ``wide``: whether a graph of 2^24 nodes is sampled, which takes 0.5 GB.
    ``ranks``: whether two processes are started, and with ``workers`` a loader with workers.
    """

    copies: int = 128
    calls: int = 80
    hub_copies: int = 4
    hub_calls: int = 60
    pairs: int = 512
    epochs: int = 6
    batches: int = 6
    wide: bool = True
    ranks: bool = True
    workers: bool = True
    quick: bool = False


FULL = Plan()
QUICK = Plan(
    copies=64, calls=40, hub_copies=2, hub_calls=20, pairs=256, epochs=4, batches=6, wide=False,
    ranks=False, quick=True,
)  # fmt: skip
