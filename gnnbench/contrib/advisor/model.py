"""The cost model: work of a batch divided by rates, phase by phase, combined by the schedule.

Its only inputs are ``Facts`` of the graph and ``Rates`` of the machine; nothing is fitted. For n
rows of R bytes and e edges per batch, on the device that computes:

- a row in device memory (random read, then write): ``R / there``
- a row elsewhere: ``R / fetch``; in the union of a window ``R / fetch_union``
- a lookup of an id: ``LOOKUPS`` random reads of 4 bytes
- sampling: ``e / sample``, a step ``1 / step``, Greedy Reorder ``n / order``

Serial phases add up. Under ``prefetch`` only phases that use the same resource add up
(``gnnbench.harness.reduce.overlap_bounds``), and the first batch overlaps with nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from gnnbench.contrib.advisor.facts import DEGREE, PRESC, WINDOW, Facts
from gnnbench.contrib.advisor.rates import Rates
from gnnbench.core.cell import PHASES, Cell
from gnnbench.harness.reduce.overlap_bounds import least
from gnnbench.pipelines.training_step import GRAPH

LOOKUPS = {"cache": 2, "match": 3, "window": 3}  # random 4-byte reads per id
SAMPLERS = {"cpu": ("hop-by-hop", "fused-map", "fastsample"), "cuda": ("fused-map", "fastsample")}
# Of equal estimates the first is advised: on a CPU the simpler schedule; on a GPU the one that
# hides the host's kernel launches, which the time of a single phase does not include.
SCHEDULES = {"cpu": ("serial", "prefetch"), "cuda": ("prefetch", "serial")}
STEPS: dict[str, dict[str, str]] = {"cpu": {}, "cuda": {"schedule.step": GRAPH}}
SAMPLE, MEMORY_IO, COMPUTE = PHASES
OptionValue = str | int | float  # of an option ``-o SYSTEM.PATH=VALUE``


@dataclass(frozen=True)
class Store:
    """A feature store and the batch order to use with it; ``policy`` "": without a cache."""

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

    def settings(self, ratio: float, device: str) -> dict[str, OptionValue]:
        """Options by path, as for ``-o SYSTEM.PATH=VALUE``; ``ratio`` is the size of a cache."""
        store = self.store
        options: dict[str, OptionValue] = {
            "sampler": self.sampler, "features": store.name, "order": store.order,
            "schedule": self.schedule, **STEPS[device],
        }  # fmt: skip
        if store.name == "window":
            options["features.window"] = WINDOW
        if store.policy:
            prefix = "features"
            if store.name != "cache":
                options["features.table"] = "cache"
                prefix = "features.table"
            options |= {f"{prefix}.policy": store.policy, f"{prefix}.ratio": ratio}
        return options


@dataclass(frozen=True)
class Term:
    """Work of a batch: ``amount`` of ``unit`` at ``rate`` per second."""

    phase: str
    what: str
    amount: float
    unit: str
    rate: float

    @property
    def seconds(self) -> float:
        """Seconds per batch."""
        return self.amount / self.rate


@dataclass(frozen=True)
class Estimate:
    """Estimated times of a choice, in seconds.

    ``phases``: each phase of a batch, run serially. ``batch_s``: an epoch's time per batch.
    ``first_s``: additional time of the first batch. ``epoch_s``: the whole epoch.
    """

    choice: Choice
    terms: tuple[Term, ...]
    phases: dict[str, float]
    batch_s: float
    first_s: float
    epoch_s: float


def choices(facts: Facts, device: str) -> list[Choice]:
    """List the choices to compare, at most 24; the first of equal estimates is advised.

    ``ratio`` 1 puts the whole feature table in GPU memory; ``ratio`` 0 excludes caches.
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
    """List the work of a mean batch."""
    batch_terms = [
        Term(SAMPLE, "edges sampled", facts.edges, "edges", rates.sample[choice.sampler]),
        *_fetching(choice.store, facts, rates),
        Term(COMPUTE, "training steps", 1, "batches", rates.step),
    ]
    return [term for term in batch_terms if term.amount > 0]


def _fetching(store: Store, facts: Facts, rates: Rates) -> list[Term]:
    on_device, fetched, description = _rows(store, facts)
    size = facts.row_bytes
    fetch = rates.fetch_union if store.name == "window" else rates.fetch
    io_terms = [
        Term(MEMORY_IO, description, fetched * size, "B", fetch),
        Term(MEMORY_IO, "rows read from memory", on_device * size, "B", rates.there),
    ]
    if store.name in LOOKUPS:
        reads = LOOKUPS[store.name] * facts.rows
        io_terms.append(Term(MEMORY_IO, "lookups of ids", reads, "reads", rates.words))
    if store.name == "window" and store.policy:
        reads = LOOKUPS["cache"] * facts.union * facts.rows
        io_terms.append(Term(MEMORY_IO, "lookups in the cache", reads, "reads", rates.words))
    if store.order == "greedy":
        io_terms.append(Term(MEMORY_IO, "ids reordered", facts.rows, "ids", rates.order))
    return io_terms


def _rows(store: Store, facts: Facts) -> tuple[float, float, str]:
    """Rows per batch read from device memory, rows per batch fetched, and a label of the latter.

    A window's rows are fetched once into a buffer; each batch's rows are copied from it.
    """
    n = facts.rows
    if store.name == "gpu":
        return n, 0.0, ""
    if store.name == "cache":
        hit = facts.hits(store.policy)
        return n * hit, n * (1 - hit), "cache misses"
    if store.name == "match":
        kept = facts.kept_greedy if store.order == "greedy" else facts.kept_drawn
        return n * kept, n * (1 - kept), "rows not in the previous batch"
    if store.name == "window":
        once = n * facts.union
        if not store.policy:
            return n, once, "rows of a window, fetched once"
        missed = facts.union_missed
        return n + once * (1 - missed), once * missed, "cache misses of a window, fetched once"
    return 0.0, n, "rows"


def estimate(
    choice: Choice, facts: Facts, rates: Rates, device: str, threads: int = 0, cores: int = 1
) -> Estimate:
    """Estimate an epoch of a choice; on a CPU with ``threads`` (0: all) of ``cores``."""
    batch_terms = terms(choice, facts, rates)
    serial_s = {p: sum(t.seconds for t in batch_terms if t.phase == p) for p in PHASES}
    serial_sum_s = sum(serial_s.values())
    batch_s = serial_sum_s
    if choice.schedule == "prefetch":
        cell = Cell(
            "advise", "", facts.graph, "", device=device, threads=threads,
            recipe={"sampler": {"name": choice.sampler, "topology": "gpu"}},
        )  # fmt: skip
        bound = least(cell, serial_s, choice.store.name != "gpu", cores)
        assert bound is not None  # all phases of a training take time
        batch_s = bound
    first_s = serial_sum_s - batch_s
    return Estimate(
        choice, tuple(batch_terms), serial_s, batch_s, first_s, facts.batches * batch_s + first_s
    )


def ranked(
    facts: Facts, rates: Rates, device: str, threads: int = 0, cores: int = 1
) -> list[Estimate]:
    """All choices, sorted by estimated epoch time."""
    estimates = [estimate(c, facts, rates, device, threads, cores) for c in choices(facts, device)]
    return sorted(estimates, key=lambda e: e.epoch_s)
