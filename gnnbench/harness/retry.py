"""What ``--only-failed`` measures again, and which results are kept.

A ratio compares two processes that ran alternately. If one side of a comparison failed, both sides
are measured again. Results from other comparisons are kept. Trials of a cell alone are discarded
once its comparison has succeeded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from gnnbench.harness.journal import RunJournal
from gnnbench.harness.plan import CellPair, Plan
from gnnbench.schema import CellRow
from gnnbench.schema.reader import read_csv


@dataclass(frozen=True)
class Again:
    """The comparisons of a run to measure again.

    ``failed``: ids of their cells without the status ``ok``; ``note`` is the message for the user.
    """

    run: str
    pairs: list[CellPair]
    failed: frozenset[str]
    note: str

    def forget(self, journal: RunJournal) -> None:
        """Discard their measurements, and those of cells that failed, alone too."""
        for pair in self.pairs:
            bad = _ids(pair) & self.failed
            journal.retry(bad, {pair.id, *bad})

    def of(self, plan: Plan) -> Plan:
        """Return the plan with these comparisons and their cells only."""
        ids = {one for pair in self.pairs for one in _ids(pair)}
        cells = [cell for cell in plan.cells if cell.id in ids]
        return replace(plan, cells=cells, pairs=self.pairs, notes=[*plan.notes, self.note])

    def settle(self, pair: CellPair, journal: RunJournal) -> None:
        """Discard trials alone of the cells whose comparison has succeeded."""
        alone = {one for one in _ids(pair) - {pair.id} if one in journal.done}
        if alone and pair.id in journal.done:
            journal.retry((), alone)


def again(run: Path, plan: Plan) -> Again:
    """Return the comparisons to measure again, from ``cells.csv`` of a run's folder."""
    table = run / "cells.csv"
    rows = read_csv(table, CellRow) if table.exists() else []
    bad = {r["id"]: r for r in rows if r["status"] != "ok"}
    pairs = [pair for pair in plan.pairs if _ids(pair) & bad.keys()]
    if not pairs:
        return Again(run.name, [], frozenset(), f"nothing to run again in {run.name}")
    hit = [bad[one] for one in bad if any(one in _ids(pair) for pair in pairs)]
    return Again(run.name, pairs, frozenset(bad), _note(run.name, plan, pairs, hit))


def _note(run: str, plan: Plan, pairs: list[CellPair], failed: list[CellRow]) -> str:
    failed_systems = ", ".join(dict.fromkeys(f"{r['system']} ({r['status']})" for r in failed))
    ids = {r["id"] for r in failed}
    companions = [c for p in pairs for c in (p.reference, p.system) if c and c.id not in ids]
    words = f"again of {run}: {failed_systems}, {len(pairs)} of {len(plan.pairs)} comparisons"
    if companions:
        names = ", ".join(dict.fromkeys(c.who for c in companions))
        words += f", with {names} measured again as well: a ratio needs processes that ran together"
    return f"{words}; all else stands"


def _ids(pair: CellPair) -> set[str]:
    return {cell.id for cell in (pair.reference, pair.system) if cell is not None}
