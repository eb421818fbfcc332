"""Whether the times of a cell are reliable and steady."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gnnbench.analysis.reliability import NO_VERDICT
from gnnbench.core.units import plural
from gnnbench.harness.doubt import own_doubts
from gnnbench.harness.failures import Failure
from gnnbench.harness.reduce.comparison import level, unsteady
from gnnbench.statistics import primary_metric

if TYPE_CHECKING:
    from gnnbench.config.experiment import MeasureLimits
    from gnnbench.core.cell import Cell
    from gnnbench.harness.journal import JournalState
    from gnnbench.harness.plan import CellPair


def cell_doubtful(
    cell: Cell, pair: CellPair | None, journal: JournalState, measure: MeasureLimits
) -> str:
    """Reasons to doubt a row: disturbances, its own worker, and its reference's."""
    doubts = [*journal.pair_doubts(pair.id if pair else cell.id), *own_doubts(cell, pair, journal)]
    if pair is not None and pair.reference is not None:
        reference = pair.reference
        texts = own_doubts(reference, pair, journal)
        doubts += [f"reference '{reference.who}': {text}" for text in texts]
        times = level(journal.by_trial(reference, pair), primary_metric.of(cell.until).value)
        if unsteady(times, measure):
            doubts.append(f"the time of its reference '{reference.who}' is not steady")
    return "; ".join(dict.fromkeys(doubts))


def unreliable(
    cell: Cell, pair: CellPair | None, journal: JournalState, measure: MeasureLimits
) -> Failure | None:
    """``unstable`` where a trial that counts is unreliable, so that there is no verdict.

    For a reference: where all of its trials are. None if the definition gives no verdicts.
    """
    if not measure.rule.gives_verdicts:
        return None
    if pair is not None:
        return _no_verdict(journal.pair_doubts(pair.id))
    doubts = journal.cell_doubts(cell)
    return _no_verdict(doubts) if all(doubts) else None


def _no_verdict(doubts: Sequence[str]) -> Failure | None:
    return Failure("unstable", f"{doubts[0]}; {NO_VERDICT}") if doubts else None


def unstable(
    cell: Cell, pair: CellPair | None, journal: JournalState, measure: MeasureLimits
) -> Failure | None:
    """``unstable`` where the interval of the primary metric is wider than allowed."""
    metric, trials = primary_metric.of(cell.until), journal.by_trial(cell, pair)
    time = level(trials, metric.value)
    if not unsteady(time, measure):
        return None
    longer = "" if any(journal.cell_doubts(cell)) else ", or raise -o pairs and -o time_budget_s"
    return Failure(
        "unstable",
        f"the interval of its {metric.words} is still +-{time.relative_half_width:.0%} after"
        f" {plural(len(trials), 'process')}; make the machine idle{longer}",
    )
