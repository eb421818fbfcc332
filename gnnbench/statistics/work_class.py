"""The work class of two systems, from the reports of their correctness gates."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gnnbench.core.precision import FLOAT32

if TYPE_CHECKING:
    from gnnbench.schema.reports import CheckAnswer

TOLERANCE = 0.01
DRAWN = 0.03  # two samplers, a few batches
MOST = 0.1  # upper limit of the tolerance, for few nodes
DEVIATIONS = 4.0  # standard deviations by which two Poisson counts may differ


def work_class(reference: CheckAnswer, system: CheckAnswer) -> str:
    """Return the class of the sampled edges; at most ``equivalent`` if updates differ.

    An update over another number of batches leads to other weights, even from identical samples.
    """
    drawn = drawn_class(reference, system)
    return "equivalent" if drawn == "identical" and not same_updates(reference, system) else drawn


def same_updates(*reports: CheckAnswer) -> bool:
    """Whether every update of every system covers the same number of batches."""
    batches = {r.get("details", {}).get("batches_an_update", 1) for r in reports}
    return len(batches) == 1 and batches != {0}


def drawn_class(reference: CheckAnswer, system: CheckAnswer) -> str:
    """Return ``identical``, ``equivalent`` or ``different``, for what is sampled and gathered.

    Different dtypes of rows and different precisions of matrix products are always ``different``,
    and so is a sampler whose certificate fails. Equal, non-empty digests are ``identical``.
    ``equivalent`` requires the same frontier and inclusion law, and edges and nodes per seed within
    1 % of the reference's. For small counts the tolerance is four standard deviations of the
    difference of two Poisson counts, at most 10 %. (Measured: one deviation of two correct samplers
    of 20,000 nodes is 0.5 %; 320 seeds of an R-MAT graph differed by 3.4 %.)
    """
    if any(r.get("details", {}).get("uncertified") for r in (reference, system)):
        return "different"
    dtypes = {r["dtype"] for r in (reference, system) if r.get("dtype")}
    precisions = {r.get("details", {}).get("precision", FLOAT32) for r in (reference, system)}
    if len(dtypes) > 1 or len(precisions) > 1:
        return "different"
    if reference["digest"] and reference["digest"] == system["digest"]:
        return "identical"
    same_rules = reference["frontier"] == system["frontier"] and reference["law"] == system["law"]
    seeds = reference.get("details", {}).get("seeds", 0)
    pairs = (
        (reference["edges_per_seed"], system["edges_per_seed"]),
        (reference["nodes_per_seed"], system["nodes_per_seed"]),
    )
    if same_rules and all(abs(b - a) <= _tolerance(seeds * a) * a for a, b in pairs):
        return "equivalent"
    return "different"


def _tolerance(number: float) -> float:
    """Return the permitted relative difference of ``number`` edges or nodes; 0 means unknown."""
    chance = DEVIATIONS * math.sqrt(2 / number) if number else 0.0
    return max(TOLERANCE, min(chance, MOST))


def drawn_alike(one: int, other: int, work: str) -> bool:
    """Whether two epochs' numbers of edges or nodes agree with a work class.

    ``identical`` work has equal numbers. ``equivalent`` work may differ by 3 %, or for small
    numbers by the random spread of two Poisson counts. Any numbers agree with ``different`` work.
    """
    if work == "identical":
        return one == other
    return work != "equivalent" or abs(other - one) <= max(
        DRAWN * one, DEVIATIONS * math.sqrt(2 * one)
    )
