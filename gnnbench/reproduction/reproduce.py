"""Which runs serve the claims, what they take, and carrying them out one after the other."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gnnbench.config.overrides import Overrides
from gnnbench.core import names
from gnnbench.core.errors import EXIT_OK, UsageError
from gnnbench.core.units import plural
from gnnbench.harness import campaign, folder
from gnnbench.harness.campaign import Request
from gnnbench.harness.estimate import describe
from gnnbench.harness.launch import make_request
from gnnbench.harness.pairing import Observer
from gnnbench.harness.shared_cache import Keeper
from gnnbench.measure import machine
from gnnbench.reproduction.claim import Claim, sizes
from gnnbench.schema import CELLS
from gnnbench.schema.reader import read_csv, read_record

FINISHED, GO_ON, RUN, CANNOT = "finished", "to be continued", "to be run", "cannot run here"


@dataclass(frozen=True)
class Step:
    """One run of a plan: ``seconds`` is a rough guess, ``unknown`` counts pairs without one.

    ``reason``: why it cannot run, or may not. ``failed``: how many cells of a finished one that
    were to be measured ended with which other status; ``exit_code``: what ``run`` ends with for
    its rows.
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
    def todo(self) -> bool:
        """Whether there is anything to be run."""
        return self.state in (GO_ON, RUN)

    @property
    def again(self) -> str:
        """The command that measures once more what failed or was missing."""
        experiment, _, profile = self.run.partition(" ")
        words = ["gnnbench", "run", experiment, "--profile", profile, "--only-failed"]
        return shlex.join([*words, "--out", str(self.request.out)])

    def finished(self, path: Path, rows: Sequence[dict[str, Any]], exit_code: int) -> Step:
        """The same once it is run."""
        failed = Counter(r["status"] for r in rows if r["status"] not in ("ok", "unsupported"))
        told = ", ".join(f"{count} {status}" for status, count in failed.items())
        reason = f"{told} of {plural(len(rows), 'cell')}" if failed else ""
        return replace(
            self, state=FINISHED, reason=reason, seconds=0.0, folder=path, failed=failed,
            exit_code=exit_code,
        )  # fmt: skip


def plan(size: str, claims: Sequence[Claim], out: Path) -> list[Step]:
    """The runs of a size that serve the claims, and what is left to do of each in ``out``.

    Raises ``UsageError`` for an unknown size, and where none of its runs serves the claims.
    """
    names.check("profile", size, sizes())
    steps = []
    for run in sizes()[size]:
        if served := tuple(c.id for c in claims if run in c.runs):
            steps.append(_step(run, served, out))
    if not steps:
        wanted = list(dict.fromkeys(r for c in claims for r in c.runs))
        why = "; 'gnnbench verdicts --paper' with their names says why"
        told = f"; {', '.join(wanted)} do" if wanted else f": no run does{why}"
        raise UsageError(f"no run of the profile '{size}' measures these claims{told}")
    return steps


def _step(run: str, served: tuple[str, ...], out: Path) -> Step:
    experiment, _, profile = run.partition(" ")
    request = make_request(experiment, Overrides(profile=profile), out)
    found = describe(request.plan, request.experiment.measure)
    large = (found["estimated_peak_bytes"] or 0) > machine.memory_limit_bytes()
    reason = "may not fit into this machine's memory" if large else ""
    time_s, unknown = found["estimated_time_s"] or 0.0, found["pairs_of_unknown_size"]
    step = Step(run, served, RUN, reason, time_s, unknown, request)
    if not request.plan.pairs:
        failure = next(iter(request.plan.failures.values()))
        return replace(step, state=CANNOT, reason=failure.reason, seconds=0.0)
    record = {**folder.identity(), "environments": request.environments.record()}
    try:
        path = folder.find_to_resume(out, request.experiment, record, force=False)
    except UsageError:  # none, or one of other code or on another machine
        return step
    if read_record(path).get("finished"):
        rows = read_csv(path / "cells.csv", CELLS)
        return step.finished(path, rows, campaign.exit_code(rows))
    again = replace(request, resume=True)
    left = describe(campaign.unfinished(again), request.experiment.measure)
    return replace(
        step, state=GO_ON, request=again, folder=path, seconds=left["estimated_time_s"] or 0.0,
        unknown=left["pairs_of_unknown_size"],
    )  # fmt: skip


def carry_out(
    steps: Sequence[Step], observer: Observer, draw: Callable[[Path, Collection[str]], object]
) -> list[Step]:
    """Run what is left to do; ``draw`` draws the figures of each run. All steps as they are then.

    Raises ``campaign.Interrupted``.
    """
    done = []
    with closing(Keeper()) as keeper:
        for step in steps:
            if not step.todo:
                done.append(step)
                continue
            observer.note(f"{step.run}: {step.state}")
            outcome = campaign.run(replace(step.request, wait=True), observer, keeper)
            draw(outcome.folder, step.request.experiment.figures)
            done.append(step.finished(outcome.folder, outcome.rows, outcome.exit_code))
    return done
