"""Plan the runs of a paper's table or figure; choose the first that this machine can execute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from gnnbench.config.overrides import Overrides
from gnnbench.core import names
from gnnbench.core.errors import MissingError, UsageError
from gnnbench.core.units import binary
from gnnbench.harness.estimate import describe
from gnnbench.harness.launch import make_request
from gnnbench.measure import machine
from gnnbench.reproduction.claim import choose
from gnnbench.reproduction.figures import FigureRun, PaperFigure, find
from gnnbench.reproduction.formulas import FORMULAS
from gnnbench.reproduction.multi_machine import COMMAND


@dataclass(frozen=True)
class RunPlan:
    """Whether a run can be executed here.

    ``reason`` says why not, "" if it can. ``seconds`` is a rough estimate, None if it is unknown.
    ``devices`` are those of the cells that can run.
    """

    run: FigureRun
    reason: str
    seconds: float | None = None
    devices: frozenset[str] = frozenset()


def plans(figure: PaperFigure) -> Iterator[RunPlan]:
    """The plans of a figure's runs, in order.

    A run can also be useless here: claims about GPUs are not measured by its cells on the CPU.
    """
    claims = choose([figure.name])
    for run in figure.runs:
        plan = _plan(run)
        wanted = {c.device for c in claims if f"{run.experiment} {run.profile}" in c.runs}
        if not plan.reason and not wanted & {"", *plan.devices}:
            plan = replace(plan, reason=f"no cell on {' or '.join(sorted(wanted))} can run here")
        yield plan


def first_plan(figure: PaperFigure) -> RunPlan | None:
    """The first run that this machine can execute; None if there is none."""
    return next((plan for plan in plans(figure) if not plan.reason), None)


def why_none(figure: PaperFigure) -> str:
    """Why no run of a figure can be executed here."""
    if figure.runs:
        return next(plans(figure)).reason
    if figure.is_multi_machine:
        return f"needs several machines; '{COMMAND}' measures it, as root"
    if any(claim.measure in FORMULAS for claim in choose([figure.name])):
        return "computed by 'gnnbench verdicts', without a run"
    return "no run measures it"


def run_of(name: str, profile: str = "") -> FigureRun:
    """The run of a figure with this profile; without one the first that this machine can execute.

    Raises ``UsageError`` for an unknown figure or profile and for a figure without a run,
    ``MissingError`` where none of its runs can be executed here.
    """
    figure = find(name)
    known = figure.profiles
    if not known:
        if figure.is_multi_machine:
            raise UsageError(f"'{name}' needs several machines; '{COMMAND}' measures it, as root")
        raise UsageError(f"no run measures '{name}'; 'gnnbench verdicts --paper {name}' says why")
    if profile:
        if profile not in known:
            near = names.nearest(profile, known)
            hint = f"; did you mean '{near}'?" if near else ";"
            raise UsageError(f"unknown profile '{profile}'{hint} '{name}' has {', '.join(known)}")
        return known[profile]
    plan = first_plan(figure)
    if plan is None:
        raise MissingError(
            f"'{name}' cannot run here: {why_none(figure)}; --profile with one of"
            f" {', '.join(known)} shows what is missing"
        )
    return plan.run


@cache
def _plan(run: FigureRun) -> RunPlan:
    request = make_request(run.experiment, Overrides(profile=run.profile), Path())
    if not request.plan.pairs:
        reasons = Counter(f.reason.partition(";")[0] for f in request.plan.failures.values())
        return RunPlan(run, reasons.most_common(1)[0][0])
    estimate = describe(request.plan, request.experiment.measure)
    peak = estimate.peak_bytes or 0
    large = peak > machine.memory_limit_bytes()
    return RunPlan(
        run,
        f"needs {binary(peak)} of memory" if large else "",
        None if estimate.unknown else estimate.time_s,
        frozenset(pair.system.device for pair in request.plan.pairs),
    )
