"""``best``: the fastest composition of this suite, and from no paper.

On a GPU: Fused-Map, one batch ahead so that no stage waits for sizes; the rows of a window's
batches read once, page by page; our fastest aggregation; a training step as one CUDA graph; all
three phases at once. A run puts the whole table on the GPU where it fits, else a cache of what fits
below the windows. On a CPU keeping rows costs more than it saves: there FastSample's sampler, a
plain gather and ``csr``, prefetched. Samplers, stores and schedules were measured one by one
(``docs/results.md``).
"""

from __future__ import annotations

from gnnbench.features.fit import table_or_cached_windows
from gnnbench.features.spec import Host, Window
from gnnbench.models.aggregation import FEWEST_BYTES, Csr, Tuned
from gnnbench.pipelines.prefetch import Prefetch
from gnnbench.pipelines.training_step import GRAPH
from gnnbench.sampling.native import native
from gnnbench.systems.runtime.recipe import Recipe

BEST = Recipe(
    name="best",
    summary="our fastest stages together, from no paper: prefetched, training steps as CUDA graphs",
    paper="none: put together from the stages of this suite by what was measured",
    sampler=native("fused-map"),
    features=Window(),
    aggregate=Tuned(linear=FEWEST_BYTES),
    schedule=Prefetch(step=GRAPH),
    on_cpu=(native("fastsample"), Host(), Csr(linear=FEWEST_BYTES), Prefetch()),
    fit=table_or_cached_windows,
)
