"""Samplers of the library by name; ``gnnbench.core.registry`` loads them."""

from __future__ import annotations

from dataclasses import dataclass, field

from gnnbench.core import names, registry
from gnnbench.core.errors import UsageError
from gnnbench.sampling.base import Sampler

# Samplers of other frameworks are stages of recipes, not samplers of the library.
RECIPES_ONLY = frozenset({"cugraph-pyg", "dgl", "graphbolt", "pyg", "pyg-native", "wholegraph"})


@dataclass(frozen=True)
class SamplerInfo:
    """Description of one sampler, from ``gnnbench.samplers()``.

    ``picks``: by device, the default first. ``options``: a line of help for each of the sampler's
    options. ``problem``: why a third-party sampler cannot be loaded; all else is empty then.
    """

    name: str
    summary: str = ""
    devices: tuple[str, ...] = ()
    picks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    frontiers: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    problem: str = ""


def sampler_names() -> list[str]:
    """Names of all samplers of the library, third-party ones last."""
    return [name for name in registry.entries(registry.SAMPLER) if name not in RECIPES_ONLY]


def sampler_class(name: str | type[Sampler]) -> type[Sampler]:
    """Return the class of a sampler by name; a class is returned after a check.

    Raises ``UsageError`` for an unknown name and for an abstract class.
    """
    if isinstance(name, type) and issubclass(name, Sampler):
        if missing := sorted(name.__abstractmethods__):
            raise UsageError(f"the sampler class {name.__name__} does not implement {missing[0]}")
        return name
    names.check("sampler", name, sampler_names(), registry.RENAMED[registry.SAMPLER])
    loaded = registry.load(registry.SAMPLER, name)
    if not (isinstance(loaded, type) and issubclass(loaded, Sampler)):
        raise UsageError(f"sampler '{name}' is no gnnbench.Sampler; it serves in recipes only")
    return loaded


def samplers() -> list[SamplerInfo]:
    """Describe all samplers of ``gnnbench.build_sampler``, third-party ones last."""
    infos = []
    for name in sampler_names():
        try:
            infos.append(_info(name, sampler_class(name)))
        except Exception as error:  # a third party's module may fail in any way
            infos.append(SamplerInfo(name, problem=f"{type(error).__name__}: {error}"))
    return infos


def _info(name: str, cls: type[Sampler]) -> SamplerInfo:
    return SamplerInfo(
        name,
        cls.summary,
        cls.devices,
        {device: cls.picks_on(device) for device in cls.devices},
        cls.frontiers,
        {o.name: f"{o.help}; {o.legal}" for o in cls.options.values()},
    )
