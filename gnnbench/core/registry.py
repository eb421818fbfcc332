"""Registry of systems, samplers and the other stages of a recipe, by name.

Built-in ones are listed here; plug-ins use entry points of the group ``gnnbench.<kind>s``
(``gnnbench.systems``, ``gnnbench.samplers``, ``gnnbench.features`` ...), or without installing a
distribution through ``GNNBENCH_EXTRA_<GROUP>="name=module:object,..."``.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from gnnbench.core import names
from gnnbench.core.errors import UsageError

SYSTEM, SAMPLER, FEATURES, ORDER, AGGREGATE, SCHEDULE = KINDS = (
    "system", "sampler", "features", "order", "aggregate", "schedule",
)  # fmt: skip
GROUPS = {kind: kind if kind.endswith("s") else f"{kind}s" for kind in KINDS}


def _read_only(tables: Mapping[str, Mapping[str, str]]) -> Mapping[str, Mapping[str, str]]:
    """Tables that plug-ins cannot add to: gnnbench's own stages are trusted with more."""
    return MappingProxyType({kind: MappingProxyType(dict(t)) for kind, t in tables.items()})


OURS: Mapping[str, Mapping[str, str]] = _read_only(
    {
        SYSTEM: {
            "baseline": "gnnbench.systems.baseline:BASELINE",
            "best": "gnnbench.systems.best:BEST",
            "cugraph-pyg": "gnnbench.systems.cugraph_pyg:CUGRAPH_PYG",
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
            "fused-map-by-hop": "gnnbench.sampling.hop_by_hop:FusedMapByHop",
            "fastsample": "gnnbench.sampling.fastsample:FastSample",
            "pgsampler": "gnnbench.sampling.pgsampler:PgSampler",
            "dgl-fusion": "gnnbench.sampling.pgsampler:DglFusion",
            "pgsampler-as-published": "gnnbench.sampling.pgsampler_published:PgSamplerAsPublished",
            "dgl-fusion-as-published": "gnnbench.sampling.pgsampler_published:DglFusionAsPublished",
            "pgsampler-as-printed": "gnnbench.sampling.pgsampler:PgSamplerAsPrinted",
            "cugraph-pyg": "gnnbench.sampling.cugraph_pyg:CuGraphSampler",
            "dgl": "gnnbench.sampling.dgl:DglSampler",
            "graphbolt": "gnnbench.sampling.graphbolt:BoltSampler",
            "pyg": "gnnbench.sampling.pyg:PygSampler",
            "pyg-native": "gnnbench.sampling.pyg:PygNativeSampler",
            "wholegraph": "gnnbench.sampling.wholegraph:WholeGraphSampler",
        },
        FEATURES: {
            "host": "gnnbench.features.spec:Host",
            "uva": "gnnbench.features.spec:Uva",
            "row-copies": "gnnbench.features.spec:RowCopies",
            "row-copies-together": "gnnbench.features.spec:RowCopiesTogether",
            "gpu": "gnnbench.features.spec:Gpu",
            "cache": "gnnbench.features.spec:Cache",
            "sharded": "gnnbench.features.sharded_spec:Sharded",
            "match": "gnnbench.features.spec:Match",
            "window": "gnnbench.features.spec:Window",
            "dgl": "gnnbench.features.foreign_spec:DglGather",
            "graphbolt": "gnnbench.features.foreign_spec:BoltGather",
            "pyg": "gnnbench.features.foreign_spec:PygFilter",
            "wholegraph": "gnnbench.features.foreign_spec:WholeGraphGather",
        },
        ORDER: {
            "as-drawn": "gnnbench.pipelines.order:AsDrawn",
            "greedy": "gnnbench.pipelines.greedy:Greedy",
        },
        AGGREGATE: {
            "csr": "gnnbench.models.aggregation:Csr",
            "dgl": "gnnbench.models.aggregation:DglLayers",
            "gnnadvisor": "gnnbench.models.aggregation:GnnAdvisor",
            "memory-aware": "gnnbench.models.aggregation:MemoryAware",
            "memory-aware-warp": "gnnbench.models.aggregation:MemoryAwareWarp",
            "pyg": "gnnbench.models.aggregation:PygLayers",
            "scatter": "gnnbench.models.aggregation:Scatter",
            "spmm": "gnnbench.models.aggregation:Spmm",
            "tuned": "gnnbench.models.aggregation:Tuned",
        },
        SCHEDULE: {
            "serial": "gnnbench.pipelines.serial:Serial",
            "prefetch": "gnnbench.pipelines.prefetch:Prefetch",
            "alternate": "gnnbench.pipelines.alternate:Alternate",
            "producer-consumer": "gnnbench.distributed.producer_consumer:ProducerConsumer",
            "data-parallel": "gnnbench.distributed.data_parallel:DataParallel",
            "factored": "gnnbench.distributed.factored:Factored",
        },
    }
)


# Systems whose published design keeps features, samples or aggregates on a GPU. On a CPU they run
# with stages that replace those of the GPU.
GPU_DESIGNS = frozenset(
    (
        "cugraph-pyg",
        "fastgl",
        "gnnadvisor",
        "gnnlab",
        "pagraph",
        "pgsampler",
        "tsota",
        "wholegraph",
        "zero-copy",
    )
)
RENAMED: dict[str, dict[str, str]] = {SAMPLER: {"baseline": "hop-by-hop"}}

_import_plugins = True


def extra_variable(kind: str) -> str:
    """Name of the environment variable that adds to a kind."""
    return f"GNNBENCH_EXTRA_{GROUPS[kind].upper()}"


class _EntryPoints(Protocol):
    def select(self, *, group: str) -> Iterable[EntryPoint]: ...


@lru_cache(maxsize=1)
def installed() -> _EntryPoints:
    """Entry points of all installed distributions, read once: there may be hundreds."""
    return entry_points()  # its class differs between Python 3.11 and 3.12; both have `select`


@lru_cache(maxsize=len(KINDS))
def entries(kind: str) -> dict[str, EntryPoint]:
    """Registered entry points by name, the built-in ones first.

    Raises ``UsageError`` for a malformed variable, and for a name that is already built in.
    """
    group = f"gnnbench.{GROUPS[kind]}"
    plugins = {e.name: e for e in installed().select(group=group)}
    variable = extra_variable(kind)
    for text in filter(None, os.environ.get(variable, "").split(",")):
        name, _, value = (part.strip() for part in text.partition("="))
        if not name or ":" not in value:
            raise UsageError(
                f"{variable} holds '{text}', which is not of the form name=module:object"
            )
        plugins[name] = EntryPoint(name, value, group)
    if taken := [e for name, e in plugins.items() if name in OURS[kind]]:
        raise UsageError(
            f"{taken[0].value} is registered as the {kind} '{taken[0].name}', which is gnnbench's"
            f" own; give it another name in {_package(taken[0]) or variable}"
        )
    ours = {name: EntryPoint(name, value, group) for name, value in OURS[kind].items()}
    return {**ours, **dict(sorted(plugins.items()))}


def remedy(kind: str, name: str) -> str:
    """How to repair a name that fails: names its package or environment variable."""
    entry = entries(kind).get(name)
    if entry is None or name in OURS[kind]:
        return "mend or remove it"
    if entry.dist is None:
        return f"mend it, or take it out of {extra_variable(kind)}"
    return f"mend {_package(entry)}, or uninstall it"


def _package(entry: EntryPoint) -> str:
    return f"the package {entry.dist.name} {entry.dist.version}" if entry.dist else ""


def packages() -> list[tuple[str, str, str]]:
    """Module, name and version of every installed distribution that adds to a kind.

    Entries of an environment variable belong to none.
    """
    distributions = {
        (entry.module.partition(".")[0], entry.dist.name, entry.dist.version)
        for kind in KINDS
        for entry in installed().select(group=f"gnnbench.{GROUPS[kind]}")
        if entry.dist is not None
    }
    return sorted(distributions)


def source_digest(kind: str, name: str) -> tuple[str, str] | None:
    """Origin of a plug-in as text, and SHA-256 (16 hex digits) of its current sources.

    The sources are the file of the module that is registered, or all Python files of its package;
    the digest is ``""`` where there are no sources. None for a built-in or unknown name.
    """
    entry = entries(kind).get(name)
    if entry is None or name in OURS[kind]:
        return None
    top = entry.module.partition(".")[0]
    digest, files = hashlib.sha256(), _sources(top)
    for file in files:
        digest.update(file.name.encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return _package(entry) or f"the module '{top}'", digest.hexdigest()[:16] if files else ""


def _sources(module: str) -> list[Path]:
    try:
        spec = find_spec(module)
    except ValueError:  # imported by hand, so that it does not say where it is from
        origin = getattr(sys.modules[module], "__file__", None)
        return [Path(origin)] if origin else []
    if spec is None:
        return []
    if spec.submodule_search_locations is not None:
        folders = map(Path, spec.submodule_search_locations)
        return sorted(file for folder in folders for file in folder.rglob("*.py"))
    return [Path(spec.origin)] if spec.has_location and spec.origin else []


def known(kind: str) -> list[str]:
    """All names of a kind, plug-ins included."""
    return list(entries(kind))


def plugins() -> list[str]:
    """Names of all plug-ins, of every kind."""
    return sorted({name for kind in KINDS for name in entries(kind) if name not in OURS[kind]})


def has_plugin(system: str, stages: Mapping[str, object]) -> bool:
    """Whether a system or one of its ``stages`` (kind -> name, or a stage's plain values) is a
    plug-in.
    """
    named = [(SYSTEM, system)]
    for kind in KINDS:
        stage = stages.get(kind)
        name = stage.get("name") if isinstance(stage, Mapping) else stage
        named.append((kind, str(name)))
    return any(name in entries(kind) and name not in OURS[kind] for kind, name in named)


@contextmanager
def without_plugins() -> Iterator[None]:
    """Make ``load`` raise ``RuntimeError`` for a plug-in within the block."""
    global _import_plugins
    before, _import_plugins = _import_plugins, False
    try:
        yield
    finally:
        _import_plugins = before


def load(kind: str, name: str) -> object:
    """Load the object of a name. Raises ``UsageError`` for an unknown one and suggests the nearest.

    Exceptions from importing a third-party module propagate.
    """
    names.check(kind, name, entries(kind), RENAMED.get(kind, {}))
    if not _import_plugins and name not in OURS[kind]:
        raise RuntimeError(f"the {kind} '{name}' is a plug-in, which this process must not import")
    return entries(kind)[name].load()
