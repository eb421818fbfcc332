"""What the pairs of a comparison say, as the columns that stand wherever a ratio does."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gnnbench.measure import machine
from gnnbench.statistics import noise, primary_metric
from gnnbench.statistics.estimates import Estimate, exponential, geometric_interval, mean_interval

if TYPE_CHECKING:
    from gnnbench.config.experiment import Measure
    from gnnbench.harness.journal import JournalState, Record
    from gnnbench.harness.plan import Pair
    from gnnbench.statistics.noise import Calibration

Row = dict[str, Any]
Value = Callable[["Record"], float | None]
THESE_PAIRS = "these pairs"


def logs(journal: JournalState, pair: Pair, value: Value | None = None) -> list[float]:
    """d of every life that counts: the median over its rounds of log(reference / system).

    Of a system alone the median logarithm of its time. ``value`` of a sample, the judged time if
    not given; rounds in which it is not above 0 on every side do not take part.
    """
    return [statistics.median(life) for life in round_logs(journal, pair, value)]


def round_logs(journal: JournalState, pair: Pair, value: Value | None = None) -> list[list[float]]:
    """The same round by round, for every life that has any."""
    of = value or primary_metric.of(pair.system.until).value
    lives: list[list[tuple[Record, ...]]]
    if pair.reference is None:
        lives = [[(s,) for s in life] for life in journal.by_trial(pair.system, pair)]
    else:
        lives = [[*life] for life in journal.rounds(pair)]
    found = []
    for life in lives:
        numbers = [[of(s) or 0.0 for s in sides] for sides in life]
        found.append([_log(n) for n in numbers if min(n) > 0])
    return [life for life in found if life]


def _log(sides: Sequence[float]) -> float:
    return math.log(sides[0]) if len(sides) == 1 else math.log(sides[0] / sides[1])


def level(lives: Sequence[Sequence[Record]], value: Value) -> Estimate:
    """A time over lives: geometric mean of each life's median, with its interval (s)."""
    medians = [[v for s in life if (v := value(s)) is not None] for life in lives]
    return geometric_interval([statistics.median(m) for m in medians if m])


def ratio(journal: JournalState, pair: Pair, value: Value) -> Estimate:
    """Reference over system by any number of a sample, with a 95 % interval over pairs."""
    found = mean_interval(logs(journal, pair, value))
    return exponential(found) if found.n else found


def unsteady(found: Estimate, measure: Measure) -> bool:
    """Whether a time is known less well than is asked for; one without an interval may pass."""
    width = found.relative_half_width
    return 0 < measure.unstable_half_width < width < math.inf


def steady(journal: JournalState, pair: Pair, measure: Measure) -> bool:
    """Whether the judged times of both sides of a pair are known as well as is asked for."""
    by = primary_metric.of(pair.system.until)
    sides = [journal.by_trial(c, pair) for c in (pair.reference, pair.system) if c is not None]
    return not any(unsteady(level(lives, by.value), measure) for lives in sides)


def compared(
    journal: JournalState,
    pair: Pair,
    measure: Measure,
    calibrations: Sequence[Calibration],
    value: Value | None = None,
    doubtful: bool = False,
) -> Row:
    """Columns of a comparison by ``value``, by default the judged time.

    There is no verdict where the comparison is not finished, a side is not steady, or a pair that
    counts is in doubt or ``doubtful`` by anything else: then the ratio is to be shown with a mark.
    """
    rounds = round_logs(journal, pair, value)
    d = [statistics.median(life) for life in rounds]
    system = pair.system
    known = noise.exact(calibrations, system, machine.resolve_threads(system.threads))
    spread = None
    if known is not None and len(d) > 1:
        spread = known.spreads.get(primary_metric.of(system.until).key)
    per_life = statistics.mean(len(life) for life in rounds) if rounds else 0
    rule = measure.rule
    found = rule.judge(d, None if spread is None else spread.of_pair(max(round(per_life), 1)))
    within = [statistics.variance(life) for life in rounds if len(life) > 1]
    doubtful = doubtful or bool(journal.pair_doubts(pair.id)) or not steady(journal, pair, measure)
    row = {
        "ratio": number(found.ratio.value),
        "ratio_ci_low": number(found.ratio.low),
        "ratio_ci_high": number(found.ratio.high),
        "pairs": len(d),
        "rounds": sum(map(len, rounds)),
        "sd_pair": number(found.sd_pair),
        "sd_round": math.sqrt(statistics.mean(within)) if within else None,
        "noise_floor": number(found.noise_floor),
        "floor_from": "" if len(d) < 2 else known.name if known and spread else THESE_PAIRS,
        "detectable": number(found.detectable),
        "pairs_needed": found.pairs_needed,
        "verdict": found.verdict,
    }
    if doubtful or pair.id not in journal.done:
        row |= {"pairs_needed": None, "verdict": ""}
    return row


def number(value: float) -> float | None:
    """None for what is not known."""
    return None if math.isnan(value) or math.isinf(value) else value
