"""The correctness gate, before anything of a trial is timed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnnbench.certification.lookup import standing_of
from gnnbench.core.cell import Cell
from gnnbench.harness.protocol import CHECK, CHECK_FIRST_BATCH
from gnnbench.harness.trial_context import TrialContext
from gnnbench.harness.trial_workers import TrialWorkers

if TYPE_CHECKING:
    from gnnbench.schema.reports import CheckAnswer


def run_gate(context: TrialContext, workers: TrialWorkers) -> None:
    """Check cells that have not passed the gate yet. Raises ``CellFailed``."""

    def has_passed(cell: Cell) -> bool:
        return bool(context.journal.reports[cell.id].get("check", {"ok": False})["ok"])

    unchecked = [(cell, worker) for cell, worker in workers if not has_passed(cell)]
    for cell, _ in unchecked:
        context.show_progress(cell, "checking", 0.0)
    for cell, _, check in workers.run_untimed(CHECK, unchecked):
        _add_certificate(context, cell, check)
        context.journal.record("report", cell=cell.id, report={"check": check})
        if not check["ok"]:
            context.fail_if(cell, check["reason"])


def _add_certificate(context: TrialContext, cell: Cell, check: CheckAnswer) -> None:
    """Add to the gate's details which certificate the sampler has, and what it fails."""
    versions = context.journal.reports[cell.id].get("setup", {}).get("versions", {})
    standing = standing_of(cell, check["law"], versions)
    if standing is not None:
        check["details"]["certificate"] = standing.text
        if standing.reason:
            check["details"]["uncertified"] = standing.reason


def check_first_batches(context: TrialContext, workers: TrialWorkers) -> None:
    """Check the gate's first batch in every trial: its edges must be those of the first trial.

    Raises ``CellFailed``.
    """
    answers = []
    for cell, answer in workers.broadcast(CHECK_FIRST_BATCH, "checking"):
        context.report_once(cell, {} if answer["reason"] else {"glance": answer})
        answers.append((cell, answer))
    for cell, answer in answers:
        fault = answer["reason"]
        if not fault and answer["digest"] != context.journal.reports[cell.id]["glance"]["digest"]:
            fault = "the gate's first seeds have other edges than in its first trial"
        if fault:
            context.fail_if(cell, f"in trial {context.number + 1}: {fault}")
