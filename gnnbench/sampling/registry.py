"""Find samplers by name: ours, and others' through the entry point ``gnnbench.samplers``.

``GNNBENCH_EXTRA_SAMPLERS="name=module:Class,..."`` adds more without installing a distribution.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

from gnnbench import names
from gnnbench.errors import UsageError
from gnnbench.sampling.base import Sampler

EXTRA = "GNNBENCH_EXTRA_SAMPLERS"
GROUP = "gnnbench.samplers"
OURS = {
    "hop-by-hop": "gnnbench.sampling.hop_by_hop:HopByHop",
    "gnnlab": "gnnbench.sampling.gnnlab:GnnLab",
    "fused-map": "gnnbench.sampling.fused_map:FusedMap",
    "fastsample": "gnnbench.sampling.fastsample:FastSample",
    "pgsampler": "gnnbench.sampling.pgsampler:PgSampler",
    "dgl-fusion": "gnnbench.sampling.pgsampler:DglFusion",
    "pgsampler-as-printed": "gnnbench.sampling.pgsampler:PgSamplerAsPrinted",
}

RENAMED = {"baseline": "hop-by-hop"}  # a system and the reference are called baseline


@dataclass(frozen=True)
class SamplerInfo:
    """What ``gnnbench.samplers()`` tells of one sampler.

    ``picks`` has the default first for each device of ``devices``; ``options`` maps the sampler's
    own options to a line of help. ``problem`` says why a third party's cannot be loaded; everything
    else is empty then.
    """

    name: str
    summary: str = ""
    devices: tuple[str, ...] = ()
    picks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    frontiers: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    problem: str = ""


@lru_cache(maxsize=1)
def _entries() -> dict[str, EntryPoint]:
    found = {e.name: e for e in entry_points(group=GROUP)}
    for text in filter(None, os.environ.get(EXTRA, "").split(",")):
        name, _, value = (part.strip() for part in text.partition("="))
        if not name or ":" not in value:
            raise UsageError(f"{EXTRA} holds '{text}', which is not of the form name=module:Class")
        found[name] = EntryPoint(name, value, GROUP)
    ours = {name: EntryPoint(name, value, GROUP) for name, value in OURS.items()}
    return {**ours, **dict(sorted(found.items()))}


def sampler_names() -> list[str]:
    """Names of all samplers, ours first."""
    return list(_entries())


def sampler_class(name: str) -> type[Sampler]:
    """Class of a sampler. Raises ``UsageError`` for an unknown name and suggests the nearest."""
    names.check("sampler", name, _entries(), RENAMED)
    loaded: type[Sampler] = _entries()[name].load()
    return loaded


def samplers() -> list[SamplerInfo]:
    """All samplers that ``gnnbench.build_sampler`` knows, ours first."""
    found = []
    for name in sampler_names():
        try:
            cls = sampler_class(name)
        except Exception as error:  # a third party's module may fail in any way
            found.append(SamplerInfo(name, problem=f"{type(error).__name__}: {error}"))
            continue
        found.append(
            SamplerInfo(
                name,
                cls.summary,
                cls.devices,
                {device: cls.picks_on(device) for device in cls.devices},
                cls.frontiers,
                dict(cls.options),
            )
        )
    return found
