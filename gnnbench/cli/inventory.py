"""``gnnbench list`` and ``gnnbench doctor``."""

from __future__ import annotations

from gnnbench.cli.common import Json, print_json, print_table


def list_(json: Json = False) -> None:
    """Experiments, systems, models and datasets; what is missing and how to get it."""
    from gnnbench.doctor import inventory

    found = inventory()
    if json:
        print_json(found)
        return
    for kind, entries in found.items():
        print_table(kind, entries)


def doctor(json: Json = False) -> None:
    """What this machine can run, why not, and the exact fix."""
    from gnnbench.doctor import examine

    found = examine()
    if json:
        print_json(found)
        return
    print_table("checks", found["checks"])
    print_table("systems", found["systems"])
