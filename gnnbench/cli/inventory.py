"""``gnnbench list`` and ``gnnbench doctor``."""

from __future__ import annotations

from typing import Annotated

import typer

from gnnbench.cli.common import Json, print_json, print_table, sized
from gnnbench.errors import UsageError

KINDS = ("experiments", "systems", "models", "datasets")
# Long texts, those told last in a table the first to go below it.
INFO = (
    "title", "paper", "summary", "description", "profiles", "missing", "stand-in", "get",
    "settings",
)  # fmt: skip


def list_(
    experiment: Annotated[
        str, typer.Argument(help="One experiment alone: its profiles, axes, systems, figures.")
    ] = "",
    profile: Annotated[str, typer.Option(help="Of which profile the axes' values are.")] = "",
    json: Json = False,
) -> None:
    """Experiments, systems, models and datasets; what is missing and how to get it.

    With the name or file of an experiment what that one may be asked for: 'gnnbench list
    breakdown'. 'gnnbench list systems' (models, datasets, experiments) lists these alone.
    """
    kind = experiment if experiment in KINDS else ""
    if experiment and not kind:
        _one(experiment, profile, json)
        return
    if profile:
        raise UsageError("--profile belongs to an experiment; name one, or leave it out")
    from gnnbench.doctor import inventory

    found = inventory()
    if kind:
        found = {kind: found[kind]}
    if json:
        print_json(found)
        return
    for kind, entries in found.items():
        print_table(kind, sized(entries), INFO)


def _one(experiment: str, profile: str, json: bool) -> None:
    from gnnbench.about import about
    from gnnbench.option import plain_text

    found = about(experiment, profile)
    if json:
        print_json(found)
        return
    print(f"{found['name']}: {found['title']}\n")
    print_table("profiles (--profile NAME)", found["profiles"], ("description",))
    axes = [
        {**axis, "values": ", ".join(plain_text(v) for v in axis["values"])}
        for axis in found["axes"]
    ]
    of = f" of profile {found['profile']}" if found["profile"] else ""
    print_table(f"axes (-o AXIS=VALUE), values{of}", axes, ("values", "legal", "meaning"))
    title = "systems (--systems NAME), settings (-o SYSTEM.SETTING=VALUE)"
    print_table(title, found["systems"], INFO)
    print(f"figures: {', '.join(found['figures'])}")
    if found["sources"]:
        print(f"after: {', '.join(found['sources'])}")


def doctor(json: Json = False) -> None:
    """What this machine can run, why not, and the exact fix."""
    from gnnbench.doctor import examine

    found = examine()
    if json:
        print_json(found)
        return
    print_table("checks", found["checks"], ("fix", "found"))
    print_table("systems", found["systems"], INFO)
