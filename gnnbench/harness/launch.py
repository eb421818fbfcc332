"""Turn the user's options into a request for ``campaign.run``."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from pydantic import JsonValue

from gnnbench.analysis.labels import parse_label
from gnnbench.analysis.plots import FIGURES
from gnnbench.config import experiment as definitions
from gnnbench.config import grid
from gnnbench.config.experiment import Experiment
from gnnbench.config.overrides import Overrides, as_definition, spelled
from gnnbench.config.positions import placed
from gnnbench.core import names, registry
from gnnbench.core.cell import Until
from gnnbench.core.errors import UsageError, setting
from gnnbench.core.option import plain_text
from gnnbench.datasets import names as names_of_data
from gnnbench.harness import available, environment, feature_choice
from gnnbench.harness.campaign import Request
from gnnbench.harness.environment_pairs import add_environments
from gnnbench.harness.plan import ALONE, Plan, ReferenceOverrides, make_plan
from gnnbench.harness.plugin_process import plugin_process
from gnnbench.harness.remote_environment import (
    NO_REMOTE_ENVIRONMENTS,
    RemoteEnvironments,
    open_environments,
)

BASELINE = "baseline"  # the reference where that of a definition is not installed


def make_request(
    definition: str,
    over: Overrides,
    out: Path,
    resume: bool = False,
    force: bool = False,
    only_failed: bool = False,
    keep_going: bool = True,
) -> Request:
    """Load, resolve and plan an experiment. Raises ``UsageError`` if it cannot run as requested.

    ``only_failed`` continues the last run, as ``resume`` does, with its failed cells only.
    """
    loaded = definitions.load(definition)
    with plugin_process(), open_environments(over.environments) as others:
        for kind in registry.KINDS:
            registry.known(kind)  # a malformed variable is nobody else's fault
        over = spelled(over, loaded, [*registry.known(registry.SYSTEM), *others.systems])
        for system in over.systems:
            environment.check_names([system], [], others.systems)
        raw = as_definition(over, loaded, others.known_paths)
        profile = over.profile or loaded.default_profile
        with placed(definition, profile, raw):
            resolved, plan = _planned(loaded, over, raw, others)
    return Request(
        resolved,
        plan,
        out,
        profile=profile,
        resume=resume or only_failed,
        force=force,
        only_failed=only_failed,
        keep_going=keep_going,
        named_systems=frozenset(() if over.every_system else over.systems),
        named_datasets=frozenset(over.datasets),
        environments=others.environments,
    )


def _planned(
    loaded: Experiment, over: Overrides, raw: dict[str, JsonValue], others: RemoteEnvironments
) -> tuple[Experiment, Plan]:
    """Return the definition with ``raw`` merged over it, and its plan. Raises ``UsageError``."""
    resolved = definitions.resolve(loaded, over.profile, raw)
    note = ""
    if "reference" not in raw:
        resolved, note = _with_installed_reference(resolved)
    systems = resolved.names("system")
    with setting("system"):
        environment.check_names(systems, [], others.systems)
    environment.check_names(resolved.systems, [], others.systems)
    for path in resolved.paths():
        with setting(path):
            environment.check_names([path.partition(".")[0]], [], others.systems)
    for system in systems:  # what a package raises is its own fault, not a value's
        environment.facts(system)
    with setting("model"):
        environment.check_names(systems, resolved.names("model"), others.systems)
    with setting("dataset"):
        for dataset in resolved.names("dataset"):
            names_of_data.resolve(dataset)
    with setting("reference"):
        if resolved.reference != ALONE:
            _check_label(resolved.reference, others)
    for label in [*resolved.references.values(), *(one for c in resolved.compare for one in c)]:
        _check_label(label, others)
    environment.check_names(resolved.references, [], others.systems)
    _check_constraints(resolved, others)
    with setting("pick"):
        environment.check_picks(
            systems, resolved.names("pick"), resolved.names("device") or ["cpu"]
        )
    with setting("figures"):
        for figure in resolved.figures:
            names.check("figure", figure, FIGURES)
    resolved, choices = feature_choice.choose(resolved)
    plan = plan_of(resolved, over.systems, others)
    if not plan.cells:
        raise UsageError(
            f"the constraints of '{resolved.name}' leave no combination of its axes; change one"
        )
    for cell in plan.cells:  # so that the run has the answers of the plug-ins
        environment.facts(cell.system), environment.cell_facts(cell)
    plan.notes += [*filter(None, [note]), *choices, *_changed(resolved)]
    return resolved, plan


def _with_installed_reference(resolved: Experiment) -> tuple[Experiment, str]:
    """Replace a reference whose package is not installed by ``baseline``; returns also a note.

    Only for a reference that the user did not name.
    """
    missing = resolved.reference
    if missing not in registry.OURS[registry.SYSTEM]:
        return resolved, ""
    until = str(next(iter(resolved.axis("until")), Until.COMPUTE.word))
    failure = available.availability(missing, "cpu", until).failure
    if failure is None or failure.status != "missing_dep":
        return resolved, ""
    references = {s: BASELINE if r == missing else r for s, r in resolved.references.items()}
    changed = resolved.model_copy(update={"reference": BASELINE, "references": references})
    return changed, f"{failure.reason.partition(';')[0]}, so {BASELINE} is the reference"


def _check_label(label: str, others: RemoteEnvironments) -> None:
    """Raise ``UsageError`` for a label with an unknown system or stage."""
    system, settings = parse_label(label)
    environment.check_names([system], [], others.systems)
    for kind in registry.KINDS[1:]:
        if kind in settings:
            names.check(kind, str(settings[kind]), registry.known(kind))


def _check_constraints(resolved: Experiment, others: RemoteEnvironments) -> None:
    """Raise ``UsageError`` for a constraint on unknown names, which would never apply."""
    for constraint in resolved.constraints:
        for axis, value in (constraint.include or constraint.exclude or {}).items():
            alternatives = value if isinstance(value, list) else [value]
            values = [one for one in alternatives if isinstance(one, str)]
            if axis == "system" or "." in axis:
                systems = values if axis == "system" else [axis.partition(".")[0]]
                environment.check_names(systems, [], others.systems)
            elif axis == "model":
                environment.check_names(resolved.names("system"), values, others.systems)
            elif axis == "dataset":
                for dataset in values:
                    names_of_data.resolve(dataset)


def _changed(resolved: Experiment) -> list[str]:
    """Return the settings that all cells of a system share and that differ from the registered
    ones.

    Labels name only what varies between cells.
    """
    return [
        f"{system} runs with " + ", ".join(f"{k}={plain_text(v)}" for k, v in settings.items())
        for system, settings in resolved.systems.items()
        if settings and system in resolved.names("system")
    ]


def plan_of(
    resolved: Experiment,
    named: Collection[str] = (),
    others: RemoteEnvironments = NO_REMOTE_ENVIRONMENTS,
) -> Plan:
    """Return cells and pairs of a resolved definition, in all environments. Raises
    ``UsageError``.
    """
    here = grid.expand(resolved, environment.resolve, known=others.known_paths)
    there = {
        name: (grid.expand(resolved, other.resolve, name, others.known_paths), other.state)
        for name, other in others.by_name.items()
    }
    couples = resolved.compare
    if named:  # of systems that were left out on purpose nothing needs saying
        kept = set(resolved.names("system"))
        couples = [c for c in couples if {parse_label(label)[0] for label in c} <= kept]
    plan = make_plan(
        here,
        resolved.reference,
        named,
        environment.state,
        environment.dataset_state,
        environment.stand_in,
        couples,
        ReferenceOverrides(resolved.references, environment.variant),
        lambda plan: add_environments(plan, here, there, resolved.reference),
    )
    plan.notes += others.notes()
    return plan
