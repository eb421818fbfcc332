"""Find by name what plug-ins may add: systems, samplers, and every other stage of a recipe.

Ours are listed here; others' come through entry points of the group ``gnnbench.<kind>s``
(``gnnbench.systems``, ``gnnbench.samplers``, ``gnnbench.features`` ...), or without installing a
distribution through ``GNNBENCH_EXTRA_<GROUP>="name=module:object,..."``.
"""

from __future__ import annotations

import os
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from gnnbench import names
from gnnbench.errors import UsageError

SYSTEM, SAMPLER, FEATURES, ORDER, AGGREGATE, SCHEDULE = KINDS = (
    "system", "sampler", "features", "order", "aggregate", "schedule",
)  # fmt: skip
GROUPS = {kind: kind if kind.endswith("s") else f"{kind}s" for kind in KINDS}

OURS: dict[str, dict[str, str]] = {
    SYSTEM: {
        "baseline": "gnnbench.systems.baseline:BASELINE",
        "best": "gnnbench.systems.best:BEST",
        "dgl": "gnnbench.systems.dgl:DGL",
        "fastgl": "gnnbench.systems.fastgl:FASTGL",
        "fastsample": "gnnbench.systems.fastsample:FASTSAMPLE",
        "gnnadvisor": "gnnbench.systems.gnnadvisor:GNNADVISOR",
        "gnnlab": "gnnbench.systems.gnnlab:GNNLAB",
        "graphbolt": "gnnbench.systems.graphbolt:GRAPHBOLT",
        "pagraph": "gnnbench.systems.pagraph:PAGRAPH",
        "pgsampler": "gnnbench.systems.pgsampler:PGSAMPLER",
        "pyg": "gnnbench.systems.pyg:PYG",
        "pyg-native-sampler": "gnnbench.systems.pyg_native_sampler:PYG_NATIVE_SAMPLER",
        "tsota": "gnnbench.systems.tsota:TSOTA",
        "wholegraph": "gnnbench.systems.wholegraph:WHOLEGRAPH",
        "zero-copy": "gnnbench.systems.zero_copy:ZERO_COPY",
    },
    SAMPLER: {
        "hop-by-hop": "gnnbench.sampling.hop_by_hop:HopByHop",
        "gnnlab": "gnnbench.sampling.gnnlab:GnnLab",
        "fused-map": "gnnbench.sampling.fused_map:FusedMap",
        "fastsample": "gnnbench.sampling.fastsample:FastSample",
        "pgsampler": "gnnbench.sampling.pgsampler:PgSampler",
        "dgl-fusion": "gnnbench.sampling.pgsampler:DglFusion",
        "pgsampler-as-printed": "gnnbench.sampling.pgsampler:PgSamplerAsPrinted",
        "dgl": "gnnbench.stages.sampler.dgl:DglSampler",
        "graphbolt": "gnnbench.stages.sampler.graphbolt:BoltSampler",
        "pyg": "gnnbench.stages.sampler.pyg:PygSampler",
        "pyg-native": "gnnbench.stages.sampler.pyg:PygNativeSampler",
        "wholegraph": "gnnbench.stages.sampler.wholegraph:WholeGraphSampler",
    },
    FEATURES: {
        "host": "gnnbench.stages.features.spec:Host",
        "uva": "gnnbench.stages.features.spec:Uva",
        "gpu": "gnnbench.stages.features.spec:Gpu",
        "cache": "gnnbench.stages.features.spec:Cache",
        "match": "gnnbench.stages.features.spec:Match",
        "window": "gnnbench.stages.features.spec:Window",
        "dgl": "gnnbench.stages.features.spec:DglGather",
        "graphbolt": "gnnbench.stages.features.spec:BoltGather",
        "pyg": "gnnbench.stages.features.spec:PygFilter",
    },
    ORDER: {
        "as-drawn": "gnnbench.stages.order:AsDrawn",
        "greedy": "gnnbench.stages.greedy:Greedy",
    },
    AGGREGATE: {
        "csr": "gnnbench.stages.aggregate:Csr",
        "dgl": "gnnbench.stages.aggregate:DglLayers",
        "gnnadvisor": "gnnbench.stages.aggregate:GnnAdvisor",
        "memory-aware": "gnnbench.stages.aggregate:MemoryAware",
        "pyg": "gnnbench.stages.aggregate:PygLayers",
        "scatter": "gnnbench.stages.aggregate:Scatter",
        "spmm": "gnnbench.stages.aggregate:Spmm",
        "tuned": "gnnbench.stages.aggregate:Tuned",
    },
    SCHEDULE: {
        "serial": "gnnbench.stages.schedule.serial:Serial",
        "prefetch": "gnnbench.stages.schedule.prefetch:Prefetch",
        "alternate": "gnnbench.stages.schedule.alternate:Alternate",
        "producer-consumer": "gnnbench.stages.schedule.producer_consumer:ProducerConsumer",
    },
}


RENAMED: dict[str, dict[str, str]] = {SAMPLER: {"baseline": "hop-by-hop"}}


def extra_variable(kind: str) -> str:
    """Name of the environment variable that adds to a kind."""
    return f"GNNBENCH_EXTRA_{GROUPS[kind].upper()}"


@lru_cache(maxsize=1)
def _installed() -> Any:
    """Every installed distribution's, read once: there may be hundreds."""
    return entry_points()  # its class differs between Python 3.11 and 3.12; both have `select`


@lru_cache(maxsize=len(KINDS))
def entries(kind: str) -> dict[str, EntryPoint]:
    """What is registered by name, ours first.

    Raises ``UsageError`` for a malformed variable, and for a name that is ours already.
    """
    group = f"gnnbench.{GROUPS[kind]}"
    found = {e.name: e for e in _installed().select(group=group)}
    variable = extra_variable(kind)
    for text in filter(None, os.environ.get(variable, "").split(",")):
        name, _, value = (part.strip() for part in text.partition("="))
        if not name or ":" not in value:
            raise UsageError(
                f"{variable} holds '{text}', which is not of the form name=module:object"
            )
        found[name] = EntryPoint(name, value, group)
    if taken := [e for name, e in found.items() if name in OURS[kind]]:
        raise UsageError(
            f"{taken[0].value} is registered as the {kind} '{taken[0].name}', which is gnnbench's"
            " own; give it another name"
        )
    ours = {name: EntryPoint(name, value, group) for name, value in OURS[kind].items()}
    return {**ours, **dict(sorted(found.items()))}


def packages() -> list[tuple[str, str, str]]:
    """Module, name and version of every installed distribution that adds to a kind.

    What an environment variable adds is of none.
    """
    found = {
        (entry.module.partition(".")[0], entry.dist.name, entry.dist.version)
        for kind in KINDS
        for entry in _installed().select(group=f"gnnbench.{GROUPS[kind]}")
        if entry.dist is not None
    }
    return sorted(found)


def known(kind: str) -> list[str]:
    """All names of a kind, third parties' included."""
    return list(entries(kind))


def load(kind: str, name: str) -> Any:
    """The object of a name. Raises ``UsageError`` for an unknown one and suggests the nearest.

    What a third party's module raises on import is passed on.
    """
    names.check(kind, name, entries(kind), RENAMED.get(kind, {}))
    return entries(kind)[name].load()
