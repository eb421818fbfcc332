"""What kind of comparison two systems allow, judged by their gates' reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

TOLERANCE = 0.01
DRAWN = 0.03  # two samplers, a few batches
MOST = 0.1  # however few nodes there are
DEVIATIONS = 4.0  # of two Poisson numbers: what few seeds may draw apart


def work_class(reference: Mapping[str, Any], system: Mapping[str, Any]) -> str:
    """The class of ``drawn_class``; identical draws are but equivalent work where an update is of
    another number of batches, for then other weights come of them."""
    found = drawn_class(reference, system)
    return "equivalent" if found == "identical" and not same_updates(reference, system) else found


def same_updates(*reports: Mapping[str, Any]) -> bool:
    """Whether an update is of as many batches in all systems, and of as many in all updates."""
    found = {r.get("details", {}).get("batches_an_update", 1) for r in reports}
    return len(found) == 1 and found != {0}


def drawn_class(reference: Mapping[str, Any], system: Mapping[str, Any]) -> str:
    """``identical``, ``equivalent`` or ``different``, by what is drawn and fetched.

    Different, whatever else: rows and arithmetic of another dtype. Identical: equal, non-empty
    digests. Equivalent: the same frontier and inclusion law, and edges and nodes per seed within
    1 % of the reference's, or within four deviations of two Poisson numbers where there are few,
    10 % at most (one deviation of two correct samplers of 20,000 nodes was measured to be 0.5 %,
    and 320 seeds of an R-MAT graph were 3.4 % apart). The arguments are the JSON
    form of ``gnnbench.systems.runtime.system.CheckReport``.
    """
    dtypes = {r["dtype"] for r in (reference, system) if r.get("dtype")}
    if len(dtypes) > 1:
        return "different"
    if reference["digest"] and reference["digest"] == system["digest"]:
        return "identical"
    same_rules = reference["frontier"] == system["frontier"] and reference["law"] == system["law"]
    seeds = reference.get("details", {}).get("seeds", 0)
    if same_rules and all(
        abs(system[key] - reference[key]) <= _tolerance(seeds * reference[key]) * reference[key]
        for key in ("edges_per_seed", "nodes_per_seed")
    ):
        return "equivalent"
    return "different"


def _tolerance(number: float) -> float:
    """Share that two samplers may differ by in ``number`` edges or nodes; 0: nobody told it."""
    chance = DEVIATIONS * math.sqrt(2 / number) if number else 0.0
    return max(TOLERANCE, min(chance, MOST))


def drawn_alike(one: int, other: int, work: str) -> bool:
    """Whether an epoch's numbers of edges or nodes are those of one kind of work.

    Of ``identical`` work they are equal; of ``equivalent`` work they differ by the draws: by 3 %,
    or, where they are small, by no more than chance leads two Poisson numbers apart. Other work has
    nothing in common.
    """
    if work == "identical":
        return one == other
    return work != "equivalent" or abs(other - one) <= max(
        DRAWN * one, DEVIATIONS * math.sqrt(2 * one)
    )
