"""The model: work of a batch over rates, phase by phase; a schedule says what lies beside what.

Everything it knows of a graph is in ``Facts``, of a machine in ``Rates``; nothing is fitted. With n
rows of R bytes and e edges a batch, on the device that computes:

- a row that is there: read at random and written, ``R / there``
- a row that is not: ``R / fetch``; of a window's union ``R / fetch_union``
- a look-up of an id: ``LOOKUPS`` random reads of 4 bytes
- sampling: ``e / sample``, a step ``1 / step``, Greedy Reorder ``n / order``

Serial phases add up. Under ``prefetch`` those that hold the same resource do
(``gnnbench.harness.reduce.overlap_bounds``), and the first batch hides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gnnbench.contrib.advisor.facts import DEGREE, PRESC, WINDOW, Facts
from gnnbench.contrib.advisor.rates import Rates
from gnnbench.core.cell import PHASES, Cell
from gnnbench.harness.reduce.overlap_bounds import least
from gnnbench.pipelines.training_step import GRAPH

LOOKUPS = {"cache": 2, "match": 3, "window": 3}  # reads of 4 bytes for an id
SAMPLERS = {"cpu": ("hop-by-hop", "fused-map", "fastsample"), "cuda": ("fused-map", "fastsample")}
# Of equals the first is advised: on a CPU the plainer; on a GPU the one that hides the host's
# launches, which no phase by itself has in its time.
SCHEDULES = {"cpu": ("serial", "prefetch"), "cuda": ("prefetch", "serial")}
STEPS: dict[str, dict[str, str]] = {"cpu": {}, "cuda": {"schedule.step": GRAPH}}
SAMPLE, MEMORY_IO, COMPUTE = PHASES


@dataclass(frozen=True)
class Store:
    """A feature store, with the order that it is for; ``policy`` is its cache's, "" without one."""

    name: str
    order: str = "as-drawn"
    policy: str = ""


STORES = {
    "cpu": (Store("host"), Store("match"), Store("match", "greedy"), Store("window")),
    "cuda": (
        Store("uva"), Store("cache", policy=DEGREE), Store("cache", policy=PRESC),
        Store("match", "greedy"), Store("window"), Store("window", policy=PRESC),
    ),
}  # fmt: skip
IN_DEVICE = (Store("gpu"), Store("uva"), Store("match", "greedy"), Store("window"))


@dataclass(frozen=True)
class Choice:
    """A sampler, a store and a schedule."""

    sampler: str
    store: Store
    schedule: str

    def settings(self, ratio: float, device: str) -> dict[str, Any]:
        """As ``-o SYSTEM.PATH=VALUE`` has them; ``ratio`` is a cache's."""
        store = self.store
        found: dict[str, Any] = {
            "sampler": self.sampler, "features": store.name, "order": store.order,
            "schedule": self.schedule, **STEPS[device],
        }  # fmt: skip
        if store.name == "window":
            found["features.window"] = WINDOW
        if store.policy:
            at = "features"
            if store.name != "cache":
                found["features.table"] = "cache"
                at = "features.table"
            found |= {f"{at}.policy": store.policy, f"{at}.ratio": ratio}
        return found


@dataclass(frozen=True)
class Term:
    """Work of a batch: ``amount`` at ``rate`` a second, in ``unit``."""

    phase: str
    what: str
    amount: float
    unit: str
    rate: float

    @property
    def seconds(self) -> float:
        """A batch."""
        return self.amount / self.rate


@dataclass(frozen=True)
class Estimate:
    """What the model expects: ``phases`` seconds a batch by themselves, ``batch_s`` what a batch
    adds to an epoch, ``first_s`` what its first one adds besides, ``epoch_s`` the epoch."""

    choice: Choice
    terms: tuple[Term, ...]
    phases: dict[str, float]
    batch_s: float
    first_s: float
    epoch_s: float


def choices(facts: Facts, device: str) -> list[Choice]:
    """What is compared, at most 24; of equals the first is advised.

    A GPU whose memory has room for the whole table (``ratio`` 1) takes it; without room for any of
    it (0) there are no caches.
    """
    stores = STORES[device]
    if device == "cuda" and facts.ratio >= 1:
        stores = IN_DEVICE
    elif facts.ratio <= 0:
        stores = tuple(store for store in stores if not store.policy)
    return [
        Choice(sampler, store, schedule)
        for schedule in SCHEDULES[device]
        for store in stores
        for sampler in SAMPLERS[device]
    ]


def terms(choice: Choice, facts: Facts, rates: Rates) -> list[Term]:
    """The work of a mean batch."""
    found = [
        Term(SAMPLE, "edges sampled", facts.edges, "edges", rates.sample[choice.sampler]),
        *_fetching(choice.store, facts, rates),
        Term(COMPUTE, "training steps", 1, "batches", rates.step),
    ]
    return [term for term in found if term.amount > 0]


def _fetching(store: Store, facts: Facts, rates: Rates) -> list[Term]:
    there, lacking, ways = _rows(store, facts)
    size = facts.row_bytes
    fetch = rates.fetch_union if store.name == "window" else rates.fetch
    found = [
        Term(MEMORY_IO, ways, lacking * size, "B", fetch),
        Term(MEMORY_IO, "rows read where they are", there * size, "B", rates.there),
    ]
    if store.name in LOOKUPS:
        reads = LOOKUPS[store.name] * facts.rows
        found.append(Term(MEMORY_IO, "look-ups of ids", reads, "reads", rates.words))
    if store.name == "window" and store.policy:
        reads = LOOKUPS["cache"] * facts.union * facts.rows
        found.append(Term(MEMORY_IO, "look-ups in the cache", reads, "reads", rates.words))
    if store.order == "greedy":
        found.append(Term(MEMORY_IO, "ids put in order", facts.rows, "ids", rates.order))
    return found


def _rows(store: Store, facts: Facts) -> tuple[float, float, str]:
    """Rows of a batch that are read on the device, and those that are fetched, and what these are.

    A window's rows are fetched once, into what every batch's are then copied from.
    """
    n = facts.rows
    if store.name == "gpu":
        return n, 0.0, ""
    if store.name == "cache":
        hit = facts.hits(store.policy)
        return n * hit, n * (1 - hit), "rows that the cache lacks"
    if store.name == "match":
        kept = facts.kept_greedy if store.order == "greedy" else facts.kept_drawn
        return n * kept, n * (1 - kept), "rows that the last batch lacks"
    if store.name == "window":
        once = n * facts.union
        if not store.policy:
            return n, once, "rows of a window, once"
        missed = facts.union_missed
        return n + once * (1 - missed), once * missed, "rows of a window that the cache lacks, once"
    return 0.0, n, "rows"


def estimate(
    choice: Choice, facts: Facts, rates: Rates, device: str, threads: int = 0, cores: int = 1
) -> Estimate:
    """An epoch by a choice on a device; on a CPU of ``threads`` (0: all) of ``cores``."""
    made = terms(choice, facts, rates)
    alone = {p: sum(t.seconds for t in made if t.phase == p) for p in PHASES}
    added = sum(alone.values())
    batch_s = added
    if choice.schedule == "prefetch":
        cell = Cell(
            "advise", "", facts.graph, "", device=device, threads=threads,
            recipe={"sampler": {"name": choice.sampler, "topology": "gpu"}},
        )  # fmt: skip
        bound = least(cell, alone, choice.store.name != "gpu", cores)
        assert bound is not None  # of a whole training, all phases of which take time
        batch_s = bound
    first_s = added - batch_s
    return Estimate(choice, tuple(made), alone, batch_s, first_s, facts.batches * batch_s + first_s)


def ranked(
    facts: Facts, rates: Rates, device: str, threads: int = 0, cores: int = 1
) -> list[Estimate]:
    """All choices, the one that is advised first."""
    found = [estimate(c, facts, rates, device, threads, cores) for c in choices(facts, device)]
    return sorted(found, key=lambda e: e.epoch_s)
