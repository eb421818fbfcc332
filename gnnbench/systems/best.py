"""``best``: the fastest composition of this suite, and from no paper.

On a GPU: Fused-Map, asked ahead so that nobody waits for sizes; the rows of a window's batches read
once, page by page; our fastest aggregation; all three phases beside one another. Where the table
fits the GPU's memory ``features=gpu`` is to be taken. On a CPU keeping rows costs more than it
saves: there FastSample's sampler, a plain gather and ``csr``, prefetched. Samplers and stores, on a
CPU schedules too, were measured one by one (``docs/results.md``); the whole is for a run to judge.
"""

from __future__ import annotations

from gnnbench.composition.recipe import Recipe
from gnnbench.stages.aggregate import Csr, Tuned
from gnnbench.stages.features.spec import Host, Window
from gnnbench.stages.sampler.native import native
from gnnbench.stages.schedule.prefetch import Prefetch

BEST = Recipe(
    name="best",
    summary="the fastest of our own stages together, from no paper: prefetched, pages in order",
    paper="none: put together from the stages of this suite by what was measured",
    sampler=native("fused-map"),
    features=Window(),
    aggregate=Tuned(),
    schedule=Prefetch(),
    on_cpu=(native("fastsample"), Host(), Csr()),
)
