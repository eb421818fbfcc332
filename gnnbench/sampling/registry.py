"""Samplers of the library by name (``gnnbench.core.registry`` says where they come from)."""

from __future__ import annotations

from dataclasses import dataclass, field

from gnnbench.core import names, registry
from gnnbench.core.errors import UsageError
from gnnbench.sampling.base import Sampler

# Samplers of other frameworks are stages of recipes, not samplers of the library.
RECIPES_ONLY = frozenset({"dgl", "graphbolt", "pyg", "pyg-native", "wholegraph"})


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


def sampler_names() -> list[str]:
    """Names of all samplers of the library, ours first."""
    return [name for name in registry.entries(registry.SAMPLER) if name not in RECIPES_ONLY]


def sampler_class(name: str | type[Sampler]) -> type[Sampler]:
    """Class of a sampler, or the one that is given.

    Raises ``UsageError`` for an unknown name, with the nearest, and for an abstract class.
    """
    if isinstance(name, type) and issubclass(name, Sampler):
        if left := sorted(name.__abstractmethods__):
            raise UsageError(f"the sampler class {name.__name__} does not implement {left[0]}")
        return name
    names.check("sampler", name, sampler_names(), registry.RENAMED[registry.SAMPLER])
    loaded = registry.load(registry.SAMPLER, name)
    if not (isinstance(loaded, type) and issubclass(loaded, Sampler)):
        raise UsageError(f"sampler '{name}' is no gnnbench.Sampler; it serves in recipes only")
    return loaded


def samplers() -> list[SamplerInfo]:
    """All samplers that ``gnnbench.build_sampler`` knows, ours first."""
    found = []
    for name in sampler_names():
        try:
            found.append(_info(name, sampler_class(name)))
        except Exception as error:  # a third party's module may fail in any way
            found.append(SamplerInfo(name, problem=f"{type(error).__name__}: {error}"))
    return found


def _info(name: str, cls: type[Sampler]) -> SamplerInfo:
    return SamplerInfo(
        name,
        cls.summary,
        cls.devices,
        {device: cls.picks_on(device) for device in cls.devices},
        cls.frontiers,
        {o.name: f"{o.help}; {o.legal}" for o in cls.options.values()},
    )
