"""The public interface as lines of text: what users type and what files contain."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import typer
from pydantic import BaseModel
from typer.models import ArgumentInfo, OptionInfo

from gnnbench import cli, schema
from gnnbench.analysis import metrics
from gnnbench.config.axes import AXES
from gnnbench.config.experiment import Experiment, MeasureLimits, Profile
from gnnbench.core import registry
from gnnbench.core.errors import GnnbenchError
from gnnbench.core.option import Interval
from gnnbench.datasets.generators.recipe import TwinRecipe
from gnnbench.datasets.manifest import Distance, Manifest, Measured, Published, Source
from gnnbench.models.kinds import MODELS
from gnnbench.pipelines.find import stage
from gnnbench.systems.runtime.find import find
from gnnbench.systems.runtime.recipe import DTYPE, NEEDED, Recipe


def current() -> dict[str, list[str]]:
    """Golden text files by name."""
    return {
        "commands.txt": sorted(_commands(cli.app, "gnnbench")),
        "columns.txt": list(_columns()),
        "metrics.txt": sorted(_metrics()),
        "recipe.txt": list(_recipe()),
        "systems.txt": list(_systems()),
        "entry_points.txt": sorted(_entry_points()),
        "definition_keys.txt": list(_definition_keys()),
        "manifest_keys.txt": list(_manifest_keys()),
        "exit_codes.txt": sorted(_exit_codes()),
    }


def _commands(app: typer.Typer, path: str) -> Iterator[str]:
    """Each command, argument and option with its type and default."""
    yield path
    if app.registered_callback:
        yield from _parameters(app.registered_callback.callback, path)
    for known in app.registered_commands:
        name = known.name or known.callback.__name__.replace("_", "-")
        yield f"{path} {name}"
        yield from _parameters(known.callback, f"{path} {name}")
    for group in app.registered_groups:
        yield from _commands(group.typer_instance, f"{path} {group.name}")


def _parameters(callback: Any, path: str) -> Iterator[str]:
    for known in inspect.signature(callback, eval_str=True).parameters.values():
        kind, *more = get_args(known.annotation)
        said = next(m for m in more if isinstance(m, OptionInfo | ArgumentInfo))
        default = "required" if known.default is known.empty else f"default {_value(known.default)}"
        names = known.name
        if isinstance(said, OptionInfo):
            dashed = known.name.replace("_", "-")
            flags = f"--{dashed}/--no-{dashed}" if kind is bool else f"--{dashed}"
            given = [w for w in (said.default, *(said.param_decls or ())) if isinstance(w, str)]
            names = ", ".join(given or [flags])
        yield f"{path} {names} <{_type(kind)}> {default}"


def _type(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return "|".join(map(str, get_args(kind)))
    if get_args(kind):
        return str(kind).replace("typing.", "").replace("pathlib.", "")
    return kind.__name__


def _value(value: Any) -> str:
    return json.dumps(value, default=str)


def _columns() -> Iterator[str]:
    yield f"schema version {schema.VERSION}"
    for table, (_, columns) in (schema.TABLES | schema.ACROSS).items():
        for column in columns:
            yield f"{table} {column.name} {column.dtype} {column.unit or '-'}"
    for title, words in (("status", schema.STATUSES), ("work_class", schema.WORK_CLASSES)):
        for word in words:
            yield f"{title} {word}"


def _metrics() -> Iterator[str]:
    """Names in ``metrics.csv``."""
    for known in metrics.declared():
        yield f"{known.name} {known.unit or '-'}"


def _recipe() -> Iterator[str]:
    """Each stage and each of its fields, with default and legal values."""
    yield f"{DTYPE.name} = {_value(DTYPE.default)}: {_legal(DTYPE.choices)}"
    for kind in NEEDED:
        for name in registry.OURS[kind]:
            spec = stage(kind, name)
            yield f"{kind}={name} devices {','.join(spec.devices)}"
            for known in spec.options().values():
                legal = _legal(known.choices)
                yield f"{kind}={name} {known.name} = {_value(known.default)}: {legal}"


def _legal(choices: Any) -> str:
    if choices is None:
        return "any"
    if isinstance(choices, Interval):
        return f"{choices.low:g} to {choices.high:g}, {_value(choices.words)}"
    if isinstance(choices, range):
        return f"{choices.start} to {choices.stop - 1} by {choices.step}"
    return _value(list(choices))


def _systems() -> Iterator[str]:
    """Each system as it resolves on each device."""
    for name in registry.OURS[registry.SYSTEM]:
        what = find(name).definition
        if not isinstance(what, Recipe):
            yield f"{name} has its own epoch loop"
            continue
        yield f"{name} stand-in {what.stand_in or '-'}"
        for device in ("cpu", "cuda"):
            try:
                settings = json.dumps(what.resolved(device).plain(), sort_keys=True)
            except GnnbenchError:
                settings = "unsupported"
            yield f"{name} {device} {settings}"


def _entry_points() -> Iterator[str]:
    """Groups of entry points, their variables, and the names that ours take."""
    for kind in registry.KINDS:
        yield f"group gnnbench.{registry.GROUPS[kind]} variable {registry.extra_variable(kind)}"
        for name in registry.OURS[kind]:
            yield f"gnnbench.{registry.GROUPS[kind]} {name}"
    for kind, names in registry.RENAMED.items():
        for old, new in names.items():
            yield f"gnnbench.{registry.GROUPS[kind]} {old} is an alias of {new}"
    for name in MODELS:
        yield f"model {name}"


def _definition_keys() -> Iterator[str]:
    yield "definition extends"
    yield from _model("definition", Experiment)
    yield from _model("profile", Profile)
    yield from _model("measure", MeasureLimits)
    for axis in AXES:
        yield f"axis {axis}"


def _manifest_keys() -> Iterator[str]:
    for title, model in (
        ("manifest", Manifest), ("source", Source), ("published", Published),
        ("distance", Distance), ("distance.measured", Measured), ("twin", TwinRecipe),
    ):  # fmt: skip
        yield from _model(title, model)


def _model(title: str, model: type[BaseModel]) -> Iterator[str]:
    for name, known in model.model_fields.items():
        default = "required" if known.is_required() else f"default {_default(known)}"
        yield f"{title} {name} {default}"


def _default(known: Any) -> str:
    value = known.get_default(call_default_factory=True)
    return value.model_dump_json() if isinstance(value, BaseModel) else _value(value)


def _exit_codes() -> Iterator[str]:
    from gnnbench.core import errors

    for name, value in vars(errors).items():
        if name.startswith("EXIT_"):
            yield f"{value} {name.removeprefix('EXIT_').lower()}"
