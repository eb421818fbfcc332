"""One experiment: its profiles, axes, systems and figures, as plain values."""

from __future__ import annotations

from typing import Any

from gnnbench.config import experiment as definitions
from gnnbench.config import manual
from gnnbench.config.experiment import Experiment
from gnnbench.core import registry
from gnnbench.harness import available
from gnnbench.harness.doctor import settings
from gnnbench.harness.failures import Failure

Entry = dict[str, Any]


def about(name_or_path: str, profile: str = "") -> Entry:
    """``name``, ``title``, ``profile``, ``profiles``, ``axes`` (with the values of ``profile``, the
    default one for ""), ``systems`` (of that profile), ``others`` (registered ones that it may be
    asked for), ``figures``, ``sources``. Raises ``UsageError``."""
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
        "systems": [_system(name) for name in resolved.axis("system")],
        "others": sorted(set(registry.known(registry.SYSTEM)) - set(resolved.axis("system"))),
        "figures": loaded.figures,
        "sources": loaded.sources,
    }  # fmt: skip


def _axes(resolved: Experiment) -> list[Entry]:
    """Axes that the experiment has first, then paths that it varies, then those left out."""
    known = {name.strip("`"): (value, meaning) for name, value, meaning in manual.axes()}
    own = [axis for axis in known if resolved.axis(axis)]
    rest = [axis for axis in known if axis not in own]
    found = []
    for axis in [*own, *dict.fromkeys(resolved.paths()), *rest]:
        legal, meaning = known.get(axis, ("", "a path into one system's recipe"))
        values = resolved.axis(axis)
        found.append({"axis": axis, "values": values, "legal": legal, "meaning": meaning})
    return found


def _system(name: str) -> Entry:
    found = available.system(name)
    if isinstance(found, Failure):
        return {"name": name, "summary": "", "missing": found.reason, "settings": {}}
    return {
        "name": name, "summary": found.summary, "missing": "", "settings": settings(found),
    }  # fmt: skip
