"""Subjects by name: frameworks, samplers of gnnbench, and plug-ins."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata

from gnnbench.certification.stages import StageSubject
from gnnbench.certification.subject import Subject
from gnnbench.core import names, registry
from gnnbench.core.errors import MissingError, UsageError
from gnnbench.pipelines.find import stage
from gnnbench.sampling.stage import SamplerSpec
from gnnbench.systems.runtime.find import find
from gnnbench.systems.runtime.recipe import Recipe
from gnnbench.version import __version__

# Packages whose versions a certificate of a peer is about, the peer's own first.
PACKAGES = {
    "cugraph-pyg": ("cugraph-pyg-cu13", "cugraph-pyg-cu12", "cugraph-pyg", "torch-geometric"),
    "dgl": ("dgl",),
    "graphbolt": ("dgl",),
    "wholegraph": ("pylibwholegraph-cu13", "pylibwholegraph-cu12", "pylibwholegraph"),
    "pyg": ("torch-geometric",),
    "pyg-native": ("torch-geometric",),
}
# Options that are certified in addition to the default ones.
VARIANTS: dict[str, tuple[dict[str, object], ...]] = {
    "dgl": ({"id_type": "int32"}, {"fused": False}, {"fused": False, "id_type": "int32"}),
    "pyg": ({"extension": "torch-sparse"},),
}


def known_names() -> list[str]:
    """Names that can be certified: all samplers and all systems with a sampler of their own."""
    return sorted({*registry.entries(registry.SAMPLER), *registry.plugins()})


def subject_of(name: str, device: str, options: Mapping[str, object]) -> Subject:
    """Return the subject of a name.

    ``options``: options of the sampler, as ``-o SYSTEM.sampler.KEY=VALUE`` sets them. Raises
    ``UsageError`` for an unknown name or option, ``MissingError`` where it is not installed, and
    ``UnsupportedError`` for a device that it does not have.
    """
    spec = _spec(name)
    for key, value in options.items():
        spec = spec.changed(key, value)
    missing = spec.missing(device)
    if missing is not None:
        raise MissingError(f"'{name}' cannot be certified: {missing.reason}; {missing.fix}")
    packages = versions_of(name, spec, device)
    if spec.name == "dgl":
        from gnnbench.certification.dgl_subject import DglSubject

        return DglSubject(name, spec, device, options, packages)
    if spec.name == "pyg":
        from gnnbench.certification.pyg_subject import PygSubject

        return PygSubject(name, spec, device, options, packages)
    if spec.name == "graphbolt":
        from gnnbench.certification.graphbolt_subject import GraphBoltSubject

        return GraphBoltSubject(name, spec, device, options, packages)
    if spec.name == "wholegraph":
        from gnnbench.certification.wholegraph_subject import WholeGraphSubject

        return WholeGraphSubject(name, spec, device, options, packages)
    if spec.name == "cugraph-pyg":
        from gnnbench.certification.cugraph_subject import CuGraphSubject

        return CuGraphSubject(name, spec, device, options, packages)
    return StageSubject(name, spec, device, options, packages)


def _spec(name: str) -> SamplerSpec:
    if name in registry.entries(registry.SAMPLER):
        made = stage(registry.SAMPLER, name)()
        assert isinstance(made, SamplerSpec)
        return made
    if name not in registry.entries(registry.SYSTEM):
        hint = names.suggestion(name, known_names())
        raise UsageError(f"there is no sampler or system '{name}' to certify; {hint}")
    definition = find(name).definition
    if not isinstance(definition, Recipe) or not isinstance(definition.sampler, SamplerSpec):
        raise UsageError(f"system '{name}' has its own epoch loop, whose sampler cannot be called")
    return definition.sampler


def versions_of(name: str, spec: SamplerSpec, device: str) -> dict[str, str]:
    """Versions of the packages that decide what a sampler draws, the sampler's own first.

    Of a plug-in that no distribution installs, the digest of its sources takes the place of a
    version.
    """
    versions = {p: version for p in PACKAGES.get(spec.name, ()) if (version := _version(p))}
    if extension := getattr(spec.resolved(device), "extension", ""):
        versions[str(extension)] = _version(str(extension))
    versions |= _plugin(name)
    if not versions:
        versions["gnnbench"] = __version__
    versions["torch"] = _version("torch")
    return versions


def _plugin(name: str) -> dict[str, str]:
    """The distribution of a plug-in and its version, or its name and the digest of its sources."""
    for kind in (registry.SAMPLER, registry.SYSTEM):
        entry = registry.entries(kind).get(name)
        if entry is None or name in registry.OURS[kind]:
            continue
        if entry.dist is not None:
            return {entry.dist.name: entry.dist.version}
        origin = registry.source_digest(kind, name)
        return {name: origin[1] if origin else ""}
    return {}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
