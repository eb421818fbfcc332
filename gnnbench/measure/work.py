"""What kind of comparison two systems allow, judged by their gates' reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TOLERANCE = 0.01


def work_class(reference: Mapping[str, Any], system: Mapping[str, Any]) -> str:
    """``identical``, ``equivalent`` or ``different``.

    Different, whatever else: rows and arithmetic of another dtype. Identical: equal, non-empty
    digests. Equivalent: the same frontier and inclusion law, and edges and nodes per seed within
    1 % of the reference's. The arguments are the JSON form of
    ``gnnbench.composition.system.CheckReport``.
    """
    dtypes = {r["dtype"] for r in (reference, system) if r.get("dtype")}
    if len(dtypes) > 1:
        return "different"
    if reference["digest"] and reference["digest"] == system["digest"]:
        return "identical"
    same_rules = reference["frontier"] == system["frontier"] and reference["law"] == system["law"]
    if same_rules and all(
        abs(system[key] - reference[key]) <= TOLERANCE * abs(reference[key])
        for key in ("edges_per_seed", "nodes_per_seed")
    ):
        return "equivalent"
    return "different"
