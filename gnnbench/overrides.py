"""Options of the command line as a partial definition laid over an experiment."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from gnnbench import names
from gnnbench.errors import UsageError
from gnnbench.experiment import AXES, Experiment, Measure, Raw, merge

OPTION = "options."  # begins the name of an axis that varies an option


@dataclass(frozen=True)
class Overrides:
    """What the user typed; empty means not given."""

    profile: str = ""
    systems: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    device: str = ""
    pick: str = ""
    seed: int | None = None
    repeats: int = 0
    options: tuple[str, ...] = ()


def as_definition(
    over: Overrides, experiment: Experiment, known_options: Callable[[str], Collection[str]]
) -> Raw:
    """Partial definition for ``gnnbench.experiment.resolve``.

    ``key=value`` may set an axis, a field of ``[measure]``, ``reference``, ``system.option`` or an
    option of every selected system that knows it. An option that the chosen profile varies takes
    the value, or the list of values, in place of its axis. Raises ``UsageError`` for an unknown
    key, and for one system's option where the axis is other systems' as well.
    """
    axes: Raw = {
        "system": list(over.systems),
        "dataset": list(over.datasets),
        "model": list(over.models),
        "device": [over.device] if over.device else [],
        "pick": [over.pick] if over.pick else [],
        "seed": [] if over.seed is None else [over.seed],
    }
    raw: Raw = {"axes": {k: v for k, v in axes.items() if v}}
    if over.repeats:
        raw["measure"] = {"min_rounds": over.repeats, "max_rounds": over.repeats}
    systems = list(over.systems) or _systems(experiment)
    varied = _varied_options(experiment, over.profile or experiment.default_profile)
    for text in over.options:
        raw = merge(raw, _option(text, systems, known_options, varied))
    return raw


def _varied_options(experiment: Experiment, profile: str) -> set[str]:
    """Options that are axes of an experiment or of its profile."""
    tables = [experiment.axes, experiment.zip]
    if (chosen := experiment.profiles.get(profile)) is not None:
        tables += [chosen.axes, chosen.zip]
    return {axis[len(OPTION) :] for table in tables for axis in table if axis.startswith(OPTION)}


def _systems(experiment: Experiment) -> list[str]:
    found = dict.fromkeys(experiment.axis("system"))
    for profile in experiment.profiles.values():
        found |= dict.fromkeys([*profile.axes.get("system", []), *profile.zip.get("system", [])])
    return list(found)


def parse_value(text: str) -> Any:
    """A TOML value, else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _option(
    text: str,
    systems: list[str],
    known_options: Callable[[str], Collection[str]],
    varied: Collection[str],
) -> Raw:
    key, equals, right = text.partition("=")
    key = key.strip()
    if not equals or not key:
        raise UsageError(f"'{text}' is not of the form key=value")
    value = parse_value(right.strip())
    key = key.removeprefix("measure.").removeprefix("axes.")
    if key in AXES:
        return {"axes": {key: _axis_values(key, value)}}
    if key in Measure.model_fields:
        return {"measure": {key: value}}
    if key == "reference":
        return {"reference": value}
    system, dot, option = key.partition(".")
    if dot and system in systems:
        known = known_options(system)
        if option not in known:
            raise UsageError(
                f"system '{system}' has no option '{option}'; {names.suggestion(option, known)}"
            )
        if option not in varied:
            return {"systems": {system: {option: value}}}
        if others := [s for s in systems if s != system and option in known_options(s)]:
            raise UsageError(
                f"'{option}' varies for {', '.join(others)} as well as for {system}; set it for"
                f" all: -o {option}={right.strip()}"
            )
        return {"axes": {OPTION + option: _axis_values(option, value)}}
    knowing = [s for s in systems if key in known_options(s)]
    if not knowing:
        known = {*AXES, *Measure.model_fields, "reference"}
        known |= {o for s in systems for o in known_options(s)}
        raise UsageError(f"unknown option '{key}'; {names.suggestion(key, known)}")
    if key in varied:
        return {"axes": {OPTION + key: _axis_values(key, value)}}
    return {"systems": {s: {key: value} for s in knowing}}


def _axis_values(axis: str, value: Any) -> list[Any]:
    if axis == "fanouts":
        if isinstance(value, int):
            value = [value]
        elif isinstance(value, str) and re.fullmatch(r"\d+([,/]\d+)*", value):
            value = [int(part) for part in re.split("[,/]", value)]  # as tables and papers have it
        nested = isinstance(value, list) and value and isinstance(value[0], list)
        return value if nested else [value]
    return value if isinstance(value, list) else [value]
