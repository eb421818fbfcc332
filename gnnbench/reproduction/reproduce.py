"""Plan and execute the runs that measure a set of claims."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from gnnbench.config.overrides import Overrides
from gnnbench.core import names
from gnnbench.core.errors import EXIT_OK, UsageError
from gnnbench.core.units import plural
from gnnbench.harness import campaign, folder
from gnnbench.harness.campaign import Request
from gnnbench.harness.estimate import describe
from gnnbench.harness.launch import make_request
from gnnbench.harness.pairing import Observer
from gnnbench.harness.shared_cache import SharedMemoryCache
from gnnbench.measure import machine
from gnnbench.reproduction.claim import Claim, sizes
from gnnbench.schema import CellRow
from gnnbench.schema.reader import read_csv, read_record
from gnnbench.schema.run_json import RunJson

FINISHED, RESUME, RUN, CANNOT = "finished", "to be continued", "to be run", "cannot run here"


@dataclass(frozen=True)
class RunStep:
    """One run of a plan.

    ``claims`` are the ids of the claims that it measures. ``seconds`` is a rough estimate and
    ``unknown`` the number of pairs without one. ``reason`` says why it cannot run, or may fail.
    ``failed`` counts the cells of a finished run by their status, if not ok. ``exit_code`` is that
    of ``gnnbench run``.
    """

    run: str
    claims: tuple[str, ...]
    state: str
    reason: str
    seconds: float
    unknown: int
    request: Request
    folder: Path | None = None
    failed: Mapping[str, int] = field(default_factory=dict)
    exit_code: int = EXIT_OK

    @property
    def is_pending(self) -> bool:
        """Whether the run is still to be started or continued."""
        return self.state in (RESUME, RUN)

    @property
    def retry_command(self) -> str:
        """The command that measures failed and missing cells again."""
        experiment, _, profile = self.run.partition(" ")
        words = ["gnnbench", "run", experiment, "--profile", profile, "--only-failed"]
        return shlex.join([*words, "--out", str(self.request.out)])

    def finished(self, path: Path, rows: Sequence[CellRow], exit_code: int) -> RunStep:
        """This step after its run has finished."""
        failed = Counter(r["status"] for r in rows if r["status"] not in ("ok", "unsupported"))
        counts = ", ".join(f"{count} {status}" for status, count in failed.items())
        reason = f"{counts} of {plural(len(rows), 'cell')}" if failed else ""
        return replace(
            self, state=FINISHED, reason=reason, seconds=0.0, folder=path, failed=failed,
            exit_code=exit_code,
        )  # fmt: skip


def plan(size: str, claims: Sequence[Claim], out: Path) -> list[RunStep]:
    """The runs of a size that measure the claims, with the state of each in ``out``.

    Raises ``UsageError`` for an unknown size, and where none of its runs measures the claims.
    """
    names.check("profile", size, sizes())
    steps = []
    for run in sizes()[size]:
        if measured := tuple(c.id for c in claims if run in c.runs):
            steps.append(_step(run, measured, out))
    if not steps:
        known = list(dict.fromkeys(r for c in claims for r in c.runs))
        hint = f"; {', '.join(known)} do" if known else ", nor does any other"
        hint += "" if known else "; 'gnnbench verdicts --paper' with their names says why"
        raise UsageError(f"no run of the profile '{size}' measures these claims{hint}")
    return steps


def _step(run: str, claims: tuple[str, ...], out: Path) -> RunStep:
    experiment, _, profile = run.partition(" ")
    request = make_request(experiment, Overrides(profile=profile), out)
    estimate = describe(request.plan, request.experiment.measure)
    large = (estimate.peak_bytes or 0) > machine.memory_limit_bytes()
    reason = "may not fit into this machine's memory" if large else ""
    time_s, unknown = estimate.time_s or 0.0, estimate.unknown
    step = RunStep(run, claims, RUN, reason, time_s, unknown, request)
    if not request.plan.pairs:
        failure = next(iter(request.plan.failures.values()))
        return replace(step, state=CANNOT, reason=failure.reason, seconds=0.0)
    record: RunJson = {**folder.identity(), "environments": request.environments.record()}
    try:
        path = folder.find_to_resume(out, request.experiment, record, force=False)
    except UsageError:  # there is none, or it has other code or is of another machine
        return step
    if read_record(path).get("finished"):
        rows = read_csv(path / "cells.csv", CellRow)
        return step.finished(path, rows, campaign.exit_code(rows))
    resumed = replace(request, resume=True)
    remaining = describe(campaign.unfinished(resumed), request.experiment.measure)
    return replace(
        step, state=RESUME, request=resumed, folder=path,
        seconds=remaining.time_s or 0.0, unknown=remaining.unknown,
    )  # fmt: skip


def execute(
    steps: Sequence[RunStep], observer: Observer, draw: Callable[[Path, Collection[str]], object]
) -> list[RunStep]:
    """Run all pending steps and draw their figures with ``draw``. Returns the finished steps.

    Raises ``campaign.Interrupted``.
    """
    done = []
    with closing(SharedMemoryCache()) as shared_tables:
        for step in steps:
            if not step.is_pending:
                done.append(step)
                continue
            observer.note(f"{step.run}: {step.state}")
            outcome = campaign.run(replace(step.request, wait=True), observer, shared_tables)
            draw(outcome.folder, step.request.experiment.figures)
            done.append(step.finished(outcome.folder, outcome.rows, outcome.exit_code))
    return done
