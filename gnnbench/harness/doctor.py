"""What this machine can run, why not, and the fix. Returns plain values; prints nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypedDict

from gnnbench.core.cgroups import cpu_limit
from gnnbench.core.errors import GnnbenchError, MissingError, UsageError
from gnnbench.core.missing import Missing
from gnnbench.measure import machine

if TYPE_CHECKING:
    from gnnbench.systems.runtime.find import Named

DEVICES = ("cpu", "cuda")


class CheckEntry(TypedDict):
    """A check: its value ``found``, whether it is ``ok``, and how to fix it."""

    what: str
    ok: bool
    found: str
    fix: str


class DefinitionEntry(TypedDict):
    """A shipped definition; ``profiles`` are descriptions by name."""

    name: str
    title: str
    default: str
    profiles: dict[str, str]


class SettingEntry(TypedDict):
    """An option of a system."""

    default: object
    legal: str
    help: str


SystemEntry = TypedDict(
    "SystemEntry",
    {
        "name": str,
        "summary": str,
        "runs on": list[str],
        "missing": str,
        "stand-in": str,
        "settings": dict[str, SettingEntry],
    },
)


class ModelEntry(TypedDict):
    """A model and the paper that published it."""

    name: str
    paper: str


class DatasetEntry(TypedDict):
    """A dataset; sizes are None where they are unknown. ``get``: how to get it, if missing."""

    name: str
    state: str
    nodes: int | None
    edges: int | None
    features: int | None
    train: int | None
    disk_bytes: int | None
    description: str
    get: str


class Examination(TypedDict):
    """Checks of this machine, systems and datasets."""

    checks: list[CheckEntry]
    systems: list[SystemEntry]
    datasets: list[DatasetEntry]


def _entry(what: str, ok: bool, value: str, fix: str = "") -> CheckEntry:
    return {"what": what, "ok": ok, "found": value, "fix": "" if ok else fix}


def examine() -> Examination:
    """Return ``checks`` (name, ok, value, fix), ``systems`` and ``datasets``."""
    checks = [
        _installed(),
        _threads(),
        _memory(),
        _shared_memory(),
        _noise(),
        *_native(),
        _gpu(),
        *_packages(),
        _store(),
        _real_data(),
    ]
    return {"checks": checks, "systems": systems(), "datasets": _datasets_or_none()}


def _datasets_or_none() -> list[DatasetEntry]:
    """As ``datasets``; None if they cannot be listed, which ``checks`` reports."""
    try:
        return datasets()
    except UsageError:
        return []


def _installed() -> CheckEntry:
    from gnnbench.core import registry
    from gnnbench.harness import same_name

    if others := same_name.other_packages():
        return _entry(
            "gnnbench",
            False,
            f"another package of this name is in {', '.join(map(str, others))}",
            "use another environment or folder for it: a program that says 'import gnnbench' may"
            " get either",
        )
    if same_name.is_replaced():
        return _entry(
            "gnnbench",
            False,
            "pip has installed another distribution named gnnbench, and this one runs from source",
            "pip uninstall gnnbench, then make install",
        )
    return _entry(
        "gnnbench", True, f"installed, {len(registry.known(registry.SYSTEM))} systems registered"
    )


def _threads() -> CheckEntry:
    cores = machine.usable_cores()
    quota = cpu_limit()
    limited = "" if quota is None else f" (a CPU quota of {quota:g} cores)"
    return _entry(
        "threads",
        True,
        f"{cores} usable {'core' if cores == 1 else 'cores'} of {machine.cpu_model()}{limited}",
    )


def _memory() -> CheckEntry:
    free = machine.free_memory_bytes() / 2**30
    return _entry(
        "memory",
        free >= 2,
        f"{free:.1f} GiB free of {machine.memory_limit_bytes() / 2**30:.1f} GiB",
        "close other programs: the laptop profile wants 2 GiB",
    )


def _shared_memory() -> CheckEntry:
    from gnnbench.core import pages
    from gnnbench.datasets import shared_memory

    size = 2 * pages.HUGE_BYTES

    def fill(part: memoryview, start: int) -> None:
        part[:] = bytes(len(part))

    descriptor = shared_memory.create_shared("doctor", size, fill)
    try:
        huge = pages.huge_bytes(descriptor)
    finally:
        os.close(descriptor)
    return _entry(
        "shared tables",
        huge == size,
        f"in pages of {'2 MiB' if huge == size else '4 KiB, which cores read more slowly'}",
        "use Linux 6.1 or later, with /sys/kernel/mm/transparent_hugepage/shmem_enabled not 'deny'",
    )


def _noise() -> CheckEntry:
    from gnnbench.core.units import plural
    from gnnbench.statistics import noise

    try:
        known = noise.load(machine.fingerprint(machine.record()))
    except MissingError as error:
        reason, _, fix = str(error).rpartition("; ")
        return _entry("noise floor", False, reason, fix)
    levels = [
        f"{c.name}, {plural(c.threads, 'thread')}:"
        f" {c.spreads['wall_s'].s_life:.1%} between lives ({c.at})"
        for c in known
    ]
    return _entry(
        "noise", bool(known), "; ".join(levels) or "never calibrated", "gnnbench calibrate"
    )


def _native() -> list[CheckEntry]:
    """Return the state of the native libraries, in the words of a run."""
    try:
        from gnnbench.kernels.missing import library_missing, native_missing

        missing = library_missing()
    except ImportError as error:
        return [_entry("native CPU library", False, str(error), "install torch: 'make install'")]
    cpu = _needed("native CPU library", missing, "loaded")
    if cpu["ok"]:
        from gnnbench.kernels.library import load_native

        try:
            load_native()
        except GnnbenchError as error:
            reason, _, fix = str(error).partition("; ")
            cpu = _entry("native CPU library", False, reason, fix)
    built = _needed("native CUDA library", library_missing("cuda"), "built, torch can load it")
    if not built["ok"] and (first := native_missing("cuda")) is not None:
        built["fix"] = first.fix  # without a GPU a library would not help
    return [cpu, built]


def _needed(what: str, missing: Missing | None, found: str) -> CheckEntry:
    if missing is None:
        return _entry(what, True, found)
    return _entry(what, False, missing.reason, missing.fix)


def _gpu() -> CheckEntry:
    from gnnbench.kernels.missing import NO_GPU

    devices = machine.gpus()
    if devices:
        names = ", ".join(f"{g['name']} ({g['memory_bytes'] / 2**30:.0f} GiB)" for g in devices)
        return _entry("GPU", True, names)
    return _entry("GPU", False, NO_GPU.reason, NO_GPU.fix)


def _packages() -> list[CheckEntry]:
    from gnnbench.kernels.dgl_import import dgl_missing
    from gnnbench.kernels.pyg_import import EXTENSIONS, extensions, how_to_get, pyg_missing

    versions = machine.versions()
    entries = []
    for name, missing in (
        ("torch", Missing("", "make install")),
        ("dgl", dgl_missing()),
        ("torch-geometric", pyg_missing()),
        ("ogb", Missing("", "pip install ogb")),
    ):
        fix = missing.fix if missing else ""
        entries.append(
            _entry(name, versions[name] is not None, versions[name] or "not installed", fix)
        )
    here = [f"{name} {versions[name] or ''}".strip() for name in extensions()]
    best = next(iter(EXTENSIONS))
    entries.append(
        _entry(
            "PyG sampling extension",
            best in extensions(),
            ", ".join(here) or "none is installed; until then 'pyg-native-sampler' stands in",
            how_to_get(best),
        )
    )
    return entries


def _store() -> CheckEntry:
    from gnnbench.datasets.paths import data_root, store_problem

    problem, _, fix = store_problem().partition("; ")
    return _entry("store", not problem, problem or f"{data_root()} can be written", fix)


def _real_data() -> CheckEntry:
    try:
        ready = [d["name"] for d in datasets() if d["state"] in ("prepared", "source")]
        real_graphs = [name for name in ready if "~twin" not in name]
    except UsageError as error:
        why, _, fix = str(error).partition("; ")
        return _entry("real data", False, why, fix)
    return _entry(
        "real data",
        bool(real_graphs),
        ", ".join(real_graphs) or "no real graph is on this machine",
        "twins need none; 'gnnbench data list' says how to get each, and GNNBENCH_REAL_DATA names"
        " a folder of .npz graphs",
    )


def experiments() -> list[DefinitionEntry]:
    """Return the shipped definitions."""
    from gnnbench.config import experiment

    entries: list[DefinitionEntry] = []
    for name in experiment.shipped():
        value = experiment.load(name)
        profiles = {p: value.profiles[p].description for p in value.profiles}
        entries.append(
            {
                "name": name, "title": value.title, "default": value.default_profile,
                "profiles": profiles,
            }
        )  # fmt: skip
    return entries


def systems() -> list[SystemEntry]:
    """Return registered systems, runnable ones first: their devices, and why they do not run on
    others.
    """
    from gnnbench.core import registry

    entries: list[SystemEntry] = []
    for name in registry.known(registry.SYSTEM):
        entries.append(system(name))
    return sorted(entries, key=lambda entry: not entry["runs on"])


def system(name: str) -> SystemEntry:
    """Return one registered system as a row of ``systems``."""
    from gnnbench.harness import available

    try:
        return _system(name)
    except Exception as error:  # a third party's may raise anything, whatever it is asked
        return {**_NO_SYSTEM, "name": name, "missing": available.broken(name, error).reason}


def settings(system: Named) -> dict[str, SettingEntry]:
    """Return the options of a registered system by path: default, legal values, help."""
    return {
        path: {"default": option.default, "legal": option.legal, "help": option.help}
        for path, option in system.options().items()
    }


_NO_SYSTEM: SystemEntry = {
    "name": "", "summary": "", "runs on": [], "missing": "", "stand-in": "", "settings": {},
}  # fmt: skip


def _system(name: str) -> SystemEntry:
    from gnnbench.harness import available
    from gnnbench.harness.failures import Failure

    system = available.system(name)
    if isinstance(system, Failure):
        return {**_NO_SYSTEM, "name": name, "missing": system.reason}
    states = {d: available.availability(name, d, "sample").failure for d in DEVICES}
    able = [d for d, failure in states.items() if failure is None]
    # Of devices that it could run on: that it is no system for the others needs no mending.
    problem = next((f for d, f in states.items() if f and d in system.devices), None)
    return {
        "name": name, "summary": system.summary, "runs on": able,
        "missing": "" if able or problem is None else problem.reason,
        "stand-in": available.availability(name, "cpu", "sample").stand_in,
        "settings": settings(system),
    }  # fmt: skip


def models() -> list[ModelEntry]:
    """Return the values of ``--models``, and where each was published."""
    from gnnbench.models.kinds import MODELS

    return [{"name": kind.name, "paper": kind.paper} for kind in MODELS.values()]


def datasets() -> list[DatasetEntry]:
    """Return the known datasets and their state, present ones first."""
    from gnnbench.datasets import catalog

    return [
        {
            "name": d.name, "state": d.state, "nodes": d.num_nodes or None,
            "edges": d.num_edges or None, "features": d.feature_dim or None,
            "train": d.train_size or None, "disk_bytes": d.disk_bytes or None,
            "description": d.description,
            "get": d.get if not d.available else "",
        }
        for d in sorted(catalog.list_datasets(), key=lambda d: not d.available)
    ]  # fmt: skip
