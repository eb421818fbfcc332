"""Options of the command line as a partial definition laid over an experiment."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from pydantic import JsonValue

from gnnbench.config.axes import AXES, CHOICES
from gnnbench.config.experiment import Experiment, MeasureLimits
from gnnbench.config.merge import merge, subtable
from gnnbench.core import names, registry
from gnnbench.core.errors import UsageError
from gnnbench.core.toml_value import parse_value
from gnnbench.models.kinds import MODELS

ALL_SYSTEMS = "all"


@dataclass(frozen=True)
class Overrides:
    """What the user typed; empty means not given.

    ``every_system``: all systems were requested, so that one that cannot run here is no failure.
    """

    profile: str = ""
    systems: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    device: str = ""
    pick: str = ""
    seed: int | None = None
    repeats: int = 0
    options: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    every_system: bool = False


# Of a system with the stages that are set for it: words among the legal values, by path.
Known = Callable[[str, Mapping[str, object]], Mapping[str, Collection[str]]]


def spelled(over: Overrides, experiment: Experiment, systems: Collection[str]) -> Overrides:
    """The same with the names of profile, systems, models, device and pick as they are known, which
    users may type in any case. ``all`` stands for all of ``systems``.
    """
    every = any(name.lower() == ALL_SYSTEMS for name in over.systems)
    chosen = dict.fromkeys(systems) if every else over.systems
    return replace(
        over,
        profile=names.known_spelling(over.profile, experiment.profiles),
        systems=tuple(names.known_spelling(name, systems) for name in chosen),
        every_system=every,
        models=tuple(names.known_spelling(name, MODELS) for name in over.models),
        device=_name_spelling("device", over.device),
        pick=_name_spelling("pick", over.pick),
    )


def _axis_spelling(axis: str, value: JsonValue) -> JsonValue:
    """The value of an axis as it is known, however it is capitalised; any other as it is."""
    return _name_spelling(axis, value) if isinstance(value, str) else value


def _name_spelling(axis: str, value: str) -> str:
    if not value:
        return value
    if axis == "pick":
        from gnnbench.kernels.picks import PICKS  # which imports torch

        return names.known_spelling(value, ["default", *PICKS, *registry.known(registry.SAMPLER)])
    if axis == "system":
        return names.known_spelling(value, registry.known(registry.SYSTEM))
    return names.known_spelling(value, MODELS if axis == "model" else CHOICES.get(axis, ()))


def as_definition(over: Overrides, experiment: Experiment, known: Known) -> dict[str, JsonValue]:
    """Partial definition for ``gnnbench.config.experiment.resolve``.

    ``key=value`` may set an axis, a field of ``[measure]``, ``reference``, or a path of a system's
    recipe: ``system.path``, or ``path`` alone where one system only is selected. A path that the
    chosen profile varies takes the value, or the list of values, in place of its axis. ``known``
    gives the paths of a system, with the stages that are set for it. Raises ``UsageError`` for an
    unknown key.
    """
    axes: dict[str, JsonValue] = {
        "system": list(over.systems),
        "dataset": list(over.datasets),
        "model": list(over.models),
        "device": [over.device] if over.device else [],
        "pick": [over.pick] if over.pick else [],
        "seed": [] if over.seed is None else [over.seed],
    }
    raw: dict[str, JsonValue] = {"axes": {k: v for k, v in axes.items() if v}}
    if over.repeats:
        raw["measure"] = {"pairs": [over.repeats]}
    systems = list(over.systems) or _systems(experiment)
    varied = _varied(experiment, over.profile or experiment.default_profile)
    # A stage first: its fields are known then.
    given = _flags(over, raw)
    for text in sorted(over.options, key=lambda o: o.partition("=")[0].count(".")):
        option = _option(text, raw, systems, known, varied)
        key, value = text.partition("=")[0].strip(), text.partition("=")[2].strip()
        before = given.setdefault(_leaf(option), f"-o {text}")
        if before != f"-o {text}" or over.options.count(text) > 1:
            # Neither the last alone nor all combinations: the one drops what was typed, the other
            # multiplies what is run.
            mend = f"give one, or a list to run them all: -o '{key}=[..., {value}]'"
            if not option.keys() & {"axes", "systems"}:
                mend = "give one"
            raise UsageError(f"'{key}' is given twice, by '{before}' and '-o {text}'; {mend}")
        raw = merge(raw, option)
    return raw


def _flags(over: Overrides, raw: Mapping[str, JsonValue]) -> dict[str, str]:
    """What options of their own set, by key; each as it is typed."""
    typed = {
        "system": "--systems", "dataset": "--datasets", "model": "--models", "pick": "--pick",
        "device": "--device", "seed": "--seed",
    }  # fmt: skip
    flags = {key: flag for key, flag in typed.items() if key in subtable(raw, "axes")}
    return flags | ({"pairs": "--repeats"} if over.repeats else {})


def _leaf(definition: Mapping[str, JsonValue]) -> str:
    """The one key that a partial definition of one option sets."""
    (value,) = definition.values()
    if not isinstance(value, dict):
        return next(iter(definition))
    key = next(iter(value))
    return ".".join([key, *subtable(value, key)]) if "systems" in definition else key


def _varied(experiment: Experiment, profile: str) -> dict[str, list[JsonValue]]:
    """Paths that are axes of an experiment or of its profile, with their values."""
    tables = experiment.tables()
    if (chosen := experiment.profiles.get(profile)) is not None:
        tables += [chosen.axes, chosen.zip, *chosen.sweeps.values()]
    return {axis: v for table in tables for axis, v in table.items() if "." in axis}


def _systems(experiment: Experiment) -> list[str]:
    systems = experiment.names("system")
    for profile in experiment.profiles.values():
        of_profile = [*profile.axes.get("system", []), *profile.zip.get("system", [])]
        systems += [system for system in of_profile if isinstance(system, str)]
    return list(dict.fromkeys(systems))


def _option(
    text: str,
    raw: Mapping[str, JsonValue],
    systems: list[str],
    known: Known,
    varied: Mapping[str, list[JsonValue]],
) -> dict[str, JsonValue]:
    key, equals, right = text.partition("=")
    key = key.strip()
    if not equals or not key:
        raise UsageError(f"'{text}' is not of the form key=value; give -o {key or 'KEY'}=VALUE")
    value = parse_value(right.strip())
    key = key.removeprefix("measure.").removeprefix("axes.")
    if key in AXES:
        values = _axis_values(key, value)
        if key == "threads":
            _check_threads(values)
        return {"axes": {key: [_axis_spelling(key, value) for value in values]}}
    if key in MeasureLimits.model_fields:
        return {"measure": {key: value}}
    if key == "reference":
        return {"reference": _spelled_label(value)}
    system, dot, path = key.partition(".")
    system = names.known_spelling(system, systems)
    if dot and system not in systems and system in registry.known(registry.SYSTEM):
        raise UsageError(f"system '{system}' is not selected; add it, or leave '{key}' out")
    if not (dot and system in systems):
        if len(systems) != 1 or ("." not in key and key not in known(systems[0], {})):
            raise UsageError(_unknown(key, systems, known))
        system, path = systems[0], key
    given = subtable(subtable(raw, "systems"), system)
    # Of the stages that axes vary any may know the path: it goes to those that do (``grid``).
    axes = {**varied, **subtable(raw, "axes")}
    paths: dict[str, Collection[str]] = {}
    for stages in _stages_varied(axes, system, path):
        paths |= known(system, {**given, **stages})
    if path not in paths:
        hint = _meant(path, system, given, known)
        raise UsageError(f"system '{system}' has no setting '{path}'; {hint}")
    spelled = partial(_word_spelling, words=paths[path])
    if isinstance(value, list) or f"{system}.{path}" in varied:
        values = value if isinstance(value, list) else [value]
        return {"axes": {f"{system}.{path}": [spelled(one) for one in values]}}
    return {"systems": {system: {path: spelled(value)}}}


def _word_spelling(value: JsonValue, words: Collection[str]) -> JsonValue:
    """One of an option's words as it is known, however it is capitalised."""
    return names.known_spelling(value, words) if isinstance(value, str) else value


def _spelled_label(label: JsonValue) -> JsonValue:
    """A label whose system is spelled as it is registered."""
    if not isinstance(label, str) or not label.strip():
        return label
    system, *settings = label.split()
    return " ".join([names.known_spelling(system, registry.known(registry.SYSTEM)), *settings])


def _check_threads(values: list[JsonValue]) -> None:
    """Raise ``UsageError`` for more threads than this machine lends."""
    from gnnbench.measure import machine

    cores = machine.usable_cores()
    if too_many := [n for n in values if isinstance(n, int) and n > cores]:
        raise UsageError(
            f"threads={too_many[0]} is more than the {cores} cores that this process may use; give"
            f" {cores} or fewer, or 0 for all of them"
        )


def _stages_varied(
    axes: Mapping[str, JsonValue], system: str, path: str
) -> list[dict[str, JsonValue]]:
    """What axes make of the stages of a system that ``path`` leads through: all combinations."""
    inner = {axis.partition(".")[2]: v for axis, v in axes.items() if axis.startswith(f"{system}.")}
    above = {s: v for s, v in inner.items() if path.startswith(f"{s}.") and isinstance(v, list)}
    return [dict(zip(above, values, strict=True)) for values in product(*above.values())]


def _owners(path: str, system: str, given: Mapping[str, object], known: Known) -> str:
    """Which other stages on the way to a path would have it, the fewest, in words; or ""."""
    parts = path.split(".")
    way = [".".join(parts[:depth]) for depth in range(1, len(parts))]
    ours = registry.OURS.get(parts[0], {})
    for changed in (way[at:] for at in reversed(range(len(way)))):
        owners: list[dict[str, str]] = []
        for choice in product(ours, repeat=len(changed)):
            stages = dict(zip(changed, choice, strict=True))
            with suppress(UsageError):
                if path in known(system, {**given, **stages}):
                    owners.append(stages)
        if owners:
            last = " or ".join(dict.fromkeys(stages[changed[-1]] for stages in owners))
            add = " ".join(f"-o {system}.{stage}={name}" for stage, name in owners[0].items())
            return f"{changed[-1]}={last} has it: add {add}"
    return ""


def _meant(path: str, system: str, given: Mapping[str, object], known: Known) -> str:
    """Which setting of a system may be meant by a path that is none, and what it takes, in words.

    The stage is compared first, then the setting's own name with those of that stage, also those
    that it has with another choice: ``features.rati`` means ``features.ratio`` of a cache.
    """
    paths = list(known(system, given))
    kind, dot, rest = path.partition(".")
    kinds = [p for p in paths if "." not in p]
    near = kind if kind in kinds else names.nearest(kind, kinds)
    if not dot or not near:
        return names.suggestion(path, paths)
    path = f"{near}.{rest}"
    if path in paths:
        return f"did you mean '{path}'?"
    if owners := _owners(path, system, given, known):
        return f"did you mean '{path}'? {owners}" if near != kind else owners
    added = _with_another_stage(near, system, given, known)
    by_name: dict[str, str] = {}
    parent = path.rpartition(".")[0]
    inside = [p for p in [*paths, *added] if p.startswith(f"{near}.")]
    for one in sorted(inside, key=lambda p: p.rpartition(".")[0] != parent):
        by_name.setdefault(one.rpartition(".")[2], one)
    if not (nearest := names.nearest(path.rpartition(".")[2], by_name)):
        return f"known are {', '.join(sorted(p for p in inside if p not in added) or [near])}"
    meant = by_name[nearest]
    add = f" {added[meant]} has it: add -o {system}.{added[meant]}" if meant in added else ""
    return f"did you mean '{meant}'?{add}"


def _with_another_stage(
    kind: str, system: str, given: Mapping[str, object], known: Known
) -> dict[str, str]:
    """Paths that a system lacks and has with one other stage, each with ``STAGE=NAME``.

    The innermost stages come first: they change least.
    """
    paths = list(known(system, given))
    by_name: dict[str, str] = {}
    for stage in sorted(paths, key=lambda p: -p.count(".")):
        if stage != kind and not stage.startswith(f"{kind}."):
            continue
        for choice in registry.OURS.get(kind, {}):
            with suppress(UsageError):
                for path in known(system, {**given, stage: choice}):
                    if path not in paths:
                        by_name.setdefault(path, f"{stage}={choice}")
    return by_name


def _unknown(key: str, systems: list[str], known: Known) -> str:
    """Why a key without a system's name is none."""
    owners = [s for s in systems if key in known(s, {})]
    if owners:
        return f"'{key}' is a setting of {', '.join(owners)}; say whose: {owners[0]}.{key}=..."
    every = {*AXES, *MeasureLimits.model_fields, "reference"}
    every |= {f"{s}.{path}" for s in systems for path in known(s, {})}
    return f"unknown option '{key}'; {names.suggestion(key, every)}"


def _axis_values(axis: str, value: JsonValue) -> list[JsonValue]:
    if axis == "fanouts":
        if isinstance(value, int):
            return [[value]]
        if isinstance(value, str) and re.fullmatch(r"-?\d+([,/]-?\d+)*", value):
            # As tables and papers have them: 10/5, or several, 10/5,15/10/5; without strokes 10,5.
            hops = value.split(",") if "/" in value else [value.replace(",", "/")]
            return [[int(part) for part in one.split("/")] for one in hops]
        nested = isinstance(value, list) and value and isinstance(value[0], list)
        return value if isinstance(value, list) and nested else [value]
    return value if isinstance(value, list) else [value]
