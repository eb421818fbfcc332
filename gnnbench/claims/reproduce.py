"""Which runs serve the claims, what they take, and carrying them out one after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from gnnbench import names
from gnnbench.claims.claim import Claim, sizes
from gnnbench.errors import UsageError
from gnnbench.measure import machine
from gnnbench.overrides import Overrides
from gnnbench.results.reader import read_record
from gnnbench.runner import campaign, folder
from gnnbench.runner.campaign import Outcome, Request
from gnnbench.runner.estimate import describe
from gnnbench.runner.keeper import Keeper
from gnnbench.runner.launch import make_request
from gnnbench.runner.pairing import Observer

FINISHED, GO_ON, RUN, CANNOT = "finished", "to be continued", "to be run", "cannot run here"


@dataclass(frozen=True)
class Step:
    """One run of a plan: ``seconds`` is a rough guess, ``unknown`` counts pairs without one.

    ``reason``: why it cannot run, or may not.
    """

    run: str
    claims: tuple[str, ...]
    state: str
    reason: str
    seconds: float
    unknown: int
    request: Request
    folder: Path | None = None

    @property
    def todo(self) -> bool:
        """Whether there is anything to be run."""
        return self.state in (GO_ON, RUN)


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
        told = f"; {', '.join(wanted)} do" if wanted else ": no run does"
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
        return replace(step, state=FINISHED, reason="", seconds=0.0, folder=path)
    again = replace(request, resume=True)
    return replace(step, state=GO_ON, request=again, folder=path)


def carry_out(
    steps: Sequence[Step], observer: Observer, draw: Callable[[Path, Collection[str]], object]
) -> list[Outcome]:
    """Run what is left to do; ``draw`` draws the figures of each run.

    Raises ``campaign.Interrupted``.
    """
    outcomes = []
    with closing(Keeper()) as keeper:
        for step in (step for step in steps if step.todo):
            observer.note(f"{step.run}: {step.state}")
            outcome = campaign.run(step.request, observer, keeper)
            draw(outcome.folder, step.request.experiment.figures)
            outcomes.append(outcome)
    return outcomes
