"""What more ranks would do: a model of a step, by counts and ceilings; all else is a forecast.

A step of N ranks that share one batch (strong scaling) takes

    T(N) = sum over phases of (f + s W(N)) + x(N) + r(N) + o

``W``: the work of the rank that has most of it: edges to sample and to compute on (a destination
has as many as its fanout, so that rows of inner layers go with them), rows to fetch. They are
counted, not foretold (``gnnbench.stages.schedule.outlook``): halves of a batch share most of their
nodes, so that a rank's work does not halve. ``f``: what a phase of a batch of one seed takes,
measured; ``s``: seconds for a piece of work beyond that, as one of 2 ranks had it.

``x``: all-to-alls. A round takes what one by itself takes, and as much for each other rank as the
first other one added to it; bytes that a rank sends are counted, too, and take the rate of large
ones. ``r``: an all-reduce takes what one by itself takes, 2 log2 N times what a hop to another rank
adds (a tree), and the gradients' bytes 2 (N - 1) / N at the rate of large ones (a ring). Both rates
and both latencies are measured, by 1 and by 2 ranks. ``o``: what the step of 2 ranks took beyond
all this, for instance for waiting.

Where ranks share a machine each doubling slows every rank's work as the first one did, and on a CPU
by 2 once there are more ranks than cores. Ranks beyond those measured are taken to run two a
machine, on machines like the one that was measured; links between these are taken to be as good as
within it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

FITTED = (1, 2)
AHEAD = (16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class Split:
    """A batch that so many ranks share: ``most`` has by phase the work of the rank with most,
    ``mean`` that of all over their number; ``sent`` bytes that a rank sends by all-to-alls, the
    mean over ranks."""

    most: Mapping[str, float]
    mean: Mapping[str, float]
    sent: float


@dataclass(frozen=True)
class Measured:
    """A step of so many ranks: means over an epoch's steps and over ranks.

    ``step_s``: the epoch's wall time over its steps; ``own_s``: by phase a rank's time less what it
    exchanges and reduces; ``calls``: all-to-alls, small ones among them; ``sent``: bytes that a
    rank sends by them; ``reduced``: bytes of gradients. ``reduce_latency_s``,
    ``exchange_latency_s``: those of one call by itself.
    """

    ranks: int
    steps: float
    step_s: float
    own_s: Mapping[str, float]
    calls: float
    sent: float
    reduced: float
    reduce_latency_s: float = 0.0
    exchange_latency_s: float = 0.0


@dataclass(frozen=True)
class Ceilings:
    """By 2 ranks: bytes a second in large all-reduces and all-to-alls (0: none are needed), and by
    phase the seconds of a batch of one seed."""

    reduce_rate: float
    exchange_rate: float
    floor_s: Mapping[str, float]


@dataclass(frozen=True)
class Model:
    """The formula above."""

    one: Measured
    two: Measured
    ceilings: Ceilings
    splits: Mapping[int, Split]
    cores: float  # of the machine that ranks share; infinite where they compute on GPUs

    def step_s(self, ranks: int, shared: bool) -> float:
        """Seconds of a step of 2 ranks or more; ``shared``: on the one machine."""
        return self._known_s(ranks, shared) + max(self.two.step_s - self._known_s(2, False), 0.0)

    def sent(self, ranks: int) -> float:
        """Bytes that a rank sends by all-to-alls in a step."""
        counted = self.splits[2].sent
        return self.two.sent * self.splits[ranks].sent / counted if counted else 0.0

    def _known_s(self, ranks: int, shared: bool) -> float:
        own = sum(self._own_s(phase, ranks, shared) for phase in self.two.own_s)
        return own + self._exchange_s(ranks) + self._reduce_s(ranks)

    def _own_s(self, phase: str, ranks: int, shared: bool) -> float:
        slope = self._slope(self.two, phase)
        slower = self._slower(phase, ranks) if shared else 1.0
        return slower * (self._floor(phase) + slope * self.splits[ranks].most[phase])

    def _slower(self, phase: str, ranks: int) -> float:
        """How much more time a rank takes for its work than one of 2 on the same machine."""
        alone, beside = (self._slope(few, phase) for few in (self.one, self.two))
        first = max(beside / alone, 1.0) if alone else 1.0
        doublings = (2.0**n for n in range(2, round(math.log2(ranks)) + 1))
        return math.prod(first if few <= self.cores else 2.0 for few in doublings)

    def _floor(self, phase: str) -> float:
        return min(self.ceilings.floor_s[phase], self.two.own_s[phase])

    def _slope(self, measured: Measured, phase: str) -> float:
        beyond = max(measured.own_s.get(phase, 0.0) - self._floor(phase), 0.0)
        return beyond / self.splits[measured.ranks].mean[phase]

    def _exchange_s(self, ranks: int) -> float:
        if not self.two.calls or not self.ceilings.exchange_rate:
            return 0.0
        alone = self.one.exchange_latency_s
        peer = max(self.two.exchange_latency_s - alone, 0.0)
        rounds = self.two.calls * (alone + (ranks - 1) * peer)
        return rounds + self.sent(ranks) / self.ceilings.exchange_rate

    def _reduce_s(self, ranks: int) -> float:
        if not self.two.reduced or not self.ceilings.reduce_rate:
            return 0.0
        alone = self.one.reduce_latency_s
        hop = max(self.two.reduce_latency_s - alone, 0.0) / 2
        carried = 2 * (1 - 1 / ranks) * self.two.reduced / self.ceilings.reduce_rate
        return alone + 2 * math.log2(ranks) * hop + carried
