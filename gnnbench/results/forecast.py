"""What more ranks would do: a model of an epoch, fitted on 1 and 2 ranks; all else is a forecast.

An epoch of N ranks that share one batch (strong scaling) takes

    T(N) = i (w(N) + x(N) + r(N))

``w``: a rank's own work in all phases. A doubling multiplies it by what the first one did, w(2) /
w(1): halves of a batch share nodes, so it is more than a half, and where ranks share cores far
more. ``x``: all-to-alls, the bytes that a rank sends over the rate that 2 ranks had. Rows that
ranks fetch together grow by a doubling as by the first; of a rank's rows the share that it has
itself falls with each doubling by the factor of the first (1/2 each, for nodes dealt by lot).
``r``: all-reduces, of a ring: 2 (N - 1) / N of the gradients' bytes cross a link. ``i``: how much
longer the epoch of 2 ranks took than these three together, for ranks are uneven. What a round waits
for is not in it: latency grows with N and is as good as nothing within one machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

FITTED = (1, 2)
AHEAD = (16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class Measured:
    """An epoch of so many ranks.

    ``epoch_s`` its wall time; ``own_s`` a rank's time in all phases less what it waits and sends,
    the mean over ranks; ``exchange_s`` and ``reduce_s`` the least of any rank in all-to-alls and in
    all-reduces, for the last to come waits for nobody; ``rows`` fetched by all ranks; ``away`` the
    share of them that another rank had; ``sent`` bytes by all-to-alls, the mean over ranks.
    """

    ranks: int
    epoch_s: float
    own_s: float
    exchange_s: float
    reduce_s: float
    rows: float
    away: float
    sent: float


@dataclass(frozen=True)
class Model:
    """The formula above, of what 1 and 2 ranks were measured to take."""

    one: Measured
    two: Measured

    def epoch_s(self, ranks: int) -> float:
        """Seconds of an epoch of 2 ranks or more."""
        one, two = self.one, self.two
        own = one.own_s * (two.own_s / one.own_s) ** math.log2(ranks)
        exchange = two.exchange_s * self.sent(ranks) / two.sent if two.sent else 0.0
        reduce = two.reduce_s * 2 * (ranks - 1) / ranks
        uneven = two.epoch_s / (two.own_s + two.exchange_s + two.reduce_s)
        return uneven * (own + exchange + reduce)

    def sent(self, ranks: int) -> float:
        """Bytes that a rank sends by all-to-alls in an epoch."""
        if not self.two.sent:
            return 0.0
        of_two = self._fetched(2) * self._away(2)
        return self.two.sent * self._fetched(ranks) * self._away(ranks) / of_two

    def _fetched(self, ranks: int) -> float:
        """Rows of a rank."""
        doubling = self.two.rows / self.one.rows
        return self.one.rows * doubling ** math.log2(ranks) / ranks

    def _away(self, ranks: int) -> float:
        """The share of them that others have."""
        return 1 - (1 - self.two.away) ** math.log2(ranks)
