"""Describe one experiment: its profiles, axes, systems and figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from pydantic import JsonValue

from gnnbench.config import experiment as definitions
from gnnbench.config import manual
from gnnbench.config.experiment import Experiment
from gnnbench.core import registry
from gnnbench.harness import available
from gnnbench.harness.doctor import settings
from gnnbench.harness.failures import Failure


class ProfileEntry(TypedDict):
    """A profile; ``default`` marks the one that runs when none is named."""

    name: str
    default: bool
    description: str


class AxisEntry(TypedDict):
    """An axis: its values in the profile, its legal values and its meaning."""

    axis: str
    values: list[JsonValue]
    legal: str
    meaning: str


class SystemEntry(TypedDict):
    """A system: its settings by path, or the reason why it is ``missing``."""

    name: str
    summary: str
    missing: str
    settings: Mapping[str, Mapping[str, object]]


class ExperimentEntry(TypedDict):
    """An experiment with the axis values of ``profile``.

    ``systems`` are those of the profile, ``others`` the other registered ones.
    """

    name: str
    title: str
    profile: str
    profiles: list[ProfileEntry]
    axes: list[AxisEntry]
    systems: list[SystemEntry]
    others: list[str]
    figures: list[str]
    sources: list[str]


def about(name_or_path: str, profile: str = "") -> ExperimentEntry:
    """Describe an experiment with the values of ``profile``, the default profile for "".

    Raises ``UsageError`` for an unknown experiment or profile.
    """
    loaded = definitions.load(name_or_path)
    resolved = definitions.resolve(loaded, profile)
    return {
        "name": loaded.name,
        "title": loaded.title,
        "profile": profile or loaded.default_profile,
        "profiles": [
            {
                "name": name, "default": name == loaded.default_profile,
                "description": value.description,
            }
            for name, value in loaded.profiles.items()
        ],
        "axes": _axes(resolved),
        "systems": [_system(name) for name in resolved.names("system")],
        "others": sorted(set(registry.known(registry.SYSTEM)) - set(resolved.names("system"))),
        "figures": loaded.figures,
        "sources": loaded.sources,
    }  # fmt: skip


def _axes(resolved: Experiment) -> list[AxisEntry]:
    """The experiment's axes, then the recipe paths that it varies, then the unused axes."""
    known = {name.strip("`"): (value, meaning) for name, value, meaning in manual.axes()}
    own = [axis for axis in known if resolved.axis(axis)]
    rest = [axis for axis in known if axis not in own]
    entries: list[AxisEntry] = []
    for axis in [*own, *dict.fromkeys(resolved.paths()), *rest]:
        legal, meaning = known.get(axis, ("", "a path into one system's recipe"))
        values = resolved.axis(axis)
        entries.append({"axis": axis, "values": values, "legal": legal, "meaning": meaning})
    return entries


def _system(name: str) -> SystemEntry:
    system = available.system(name)
    if isinstance(system, Failure):
        return {"name": name, "summary": "", "missing": system.reason, "settings": {}}
    return {
        "name": name, "summary": system.summary, "missing": "", "settings": settings(system),
    }  # fmt: skip
