"""From what the user asked to a request that ``campaign.run`` carries out."""

from __future__ import annotations

from pathlib import Path

from gnnbench import experiment as definitions
from gnnbench import names
from gnnbench.overrides import Overrides, as_definition
from gnnbench.plots import FIGURES
from gnnbench.results.labels import parse_label
from gnnbench.runner import environment
from gnnbench.runner.campaign import Request
from gnnbench.runner.plan import make_plan


def make_request(
    definition: str,
    over: Overrides,
    out: Path,
    resume: bool = False,
    force: bool = False,
    only_failed: bool = False,
    keep_going: bool = True,
) -> Request:
    """Load, resolve and plan; raises ``UsageError`` for anything that cannot be run as asked.

    ``only_failed`` continues the last run, as ``resume`` does, with its failed cells alone.
    """
    loaded = definitions.load(definition)
    for system in over.systems:
        environment.check_names([system], [])
    raw = as_definition(over, loaded, environment.options_to_set)
    resolved = definitions.resolve(loaded, over.profile, raw)
    systems = resolved.axis("system")
    environment.check_names(systems, [])
    for label in [resolved.reference, *(one for couple in resolved.compare for one in couple)]:
        environment.check_names([parse_label(label)[0]], [])
    environment.check_options(resolved.systems)
    environment.check_picks(systems, resolved.axis("pick"))
    for figure in resolved.figures:
        names.check("figure", figure, FIGURES)
    cells = definitions.expand(resolved, environment.known_options)
    environment.check_option_values(cells)
    plan = make_plan(
        cells,
        resolved.reference,
        over.systems,
        environment.availability,
        environment.dataset_state,
        resolved.compare,
    )
    environment.check_names([], resolved.axis("model"))  # by now the systems are imported
    return Request(
        resolved,
        plan,
        out,
        profile=over.profile or loaded.default_profile,
        resume=resume or only_failed,
        force=force,
        only_failed=only_failed,
        keep_going=keep_going,
        named_systems=frozenset(over.systems),
        named_datasets=frozenset(over.datasets),
    )
