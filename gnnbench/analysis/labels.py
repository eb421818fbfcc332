"""Names of cells in tables, figures and messages: the system and the settings that vary."""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace

from gnnbench.core.cell import Cell, flat
from gnnbench.core.errors import UsageError
from gnnbench.core.precision import FLOAT32
from gnnbench.core.toml_value import parse_value
from gnnbench.core.units import plural

CellFields = Mapping[str, object]
"""The fields of a cell by name: a ``CellRow``, a ``RatioRow``, or a cell that was not run yet."""

# Axes in the order in which labels show them, with the format of their values.
AXES = {
    "dataset": "{}",
    "until": "until {}",
    "model": "{}",
    "device": "{}",
    "batch_size": "batch {}",
    "fanouts": "fanouts {}",
    "hidden": "hidden {}",
    "learning_rate": "learning rate {}",
    "dropout": "dropout {}",
    "precision": "{}",
    "threads": "{} threads",
    "pick": "pick {}",
    "frontier": "frontier {}",
    "seed": "seed {}",
    "max_batches": "{}",  # formatted by axis_value
    "evaluate": "evaluated over {} neighbours",
    "gpus": "{}",  # formatted by axis_value
}
# Axes that a sampler fixes. A label shows them only if they vary within one system.
SAMPLER_AXES = ("pick", "frontier")
SHORTHAND = {axis: f"sampler.{axis}" for axis in SAMPLER_AXES}
# Fields that depend on the machine where the definition leaves them open. Labels always show them.
MACHINE_FIELDS = ("sampler.extension",)
# Values of fields that recipes of older runs do not have.
RECIPE_DEFAULTS = {
    "schedule.step": "eager", "schedule.partition": "none", "schedule.gradients": "flat",
}  # fmt: skip
# The same for fields of one sampler, so that labels can name its default next to another value.
SAMPLER_DEFAULTS: Mapping[object, Mapping[str, object]] = {
    "fastsample": {"sampler.kernel": "vectorized"},
}
FIELDS = tuple(f.name for f in fields(Cell))
OWN_DEVICE = {"cpu": "cpu", "cuda": "gpu"}  # the setting that means the device of the cell
# How labels show a value of 0.
ZERO_TEXT = {"hidden": "", "learning_rate": "", "dropout": "", "threads": "all"}
UNVERIFIED = " (unverified)"


@dataclass(frozen=True)
class Labels:
    """The settings by which the labels of some rows differ.

    ``axes`` are the axes that vary, ``paths`` the recipe fields that vary by system, ``common`` the
    values of the axes that all rows share, as text.
    """

    axes: tuple[str, ...]
    paths: Mapping[str, tuple[str, ...]]
    common: Mapping[str, str]

    def system(self, row: CellFields, separator: str = " ") -> str:
        """The system with the recipe fields that vary: ``dgl sampler.fused=false``.

        An environment other than the run's and the system that this row replaces are always named.
        """
        system = str(row["system"])
        recipe, paths = paths_of(row), self.paths.get(system, ())
        settings = [f"env={row['env']}"] if row.get("env") else []
        settings += [f"{p}={_text(recipe[p])}" for p in paths if p in recipe]
        name = separator.join([system + UNVERIFIED * unverified(row), *settings])
        return name + (f"{separator}(for {row['stand_in_for']})" if row.get("stand_in_for") else "")

    def values(self, row: CellFields) -> dict[str, str]:
        """The values of the varying axes that the row has."""
        return {axis: value for axis in self.axes if (value := axis_value(row, axis))}

    def varying(self, row: CellFields, but: Collection[str] = ()) -> dict[str, str]:
        """Phrases of these values by axis, without the axes in ``but``."""
        return {a: phrase(a, v) for a, v in self.values(row).items() if a not in but}

    def of(self, row: CellFields, but: Collection[str] = (), separator: str = ", ") -> str:
        """The full label: ``baseline sampler=fused-map, batch 1024``."""
        return separator.join([self.system(row), *self.varying(row, but).values()])

    def title(self, but: Collection[str] = ()) -> str:
        """The values that all rows share: ``products, sage, batch 1024``."""
        return ", ".join(phrase(a, v) for a, v in self.common.items() if a not in but)


def phrase(axis: str, value: str) -> str:
    """The phrase of an axis and its value: ``batch 1024``, ``1 thread``."""
    text = AXES[axis].format(value)
    return text.removesuffix("s") if axis == "threads" and value == "1" else text


def labels(rows: Iterable[CellFields]) -> Labels:
    """Labels of rows of ``cells.csv``, or of cells as mappings."""
    rows = list(rows)
    values = {axis: [axis_value(r, axis) for r in rows] for axis in AXES}
    axes = tuple(a for a in AXES if _varies(a, rows, values[a]))
    common = {
        axis: distinct[0]
        for axis in AXES
        if axis not in axes
        and len(distinct := list(dict.fromkeys(filter(None, values[axis])))) == 1
        and distinct != [FLOAT32]  # the usual precision, as of older runs
    }
    if "max_batches" in common and _is_whole_epoch(rows):
        common["max_batches"] = axis_value({}, "max_batches")
    systems = dict.fromkeys(str(r["system"]) for r in rows)
    paths = {s: _paths([r for r in rows if r["system"] == s], axes) for s in systems}
    return _made_distinct(rows, Labels(axes, paths, common))


def _made_distinct(rows: Iterable[CellFields], labels: Labels) -> Labels:
    """Labels that also show values which only some rows of one label have.

    Rows of equal axes and recipes (equal work, another process) keep one label.
    """
    by_label: dict[str, list[CellFields]] = {}
    for row in rows:
        by_label.setdefault(labels.of(row), []).append(row)
    axes, paths = set(labels.axes), {system: list(own) for system, own in labels.paths.items()}
    for group in by_label.values():
        axes |= {axis for axis in AXES if len({axis_value(r, axis) for r in group}) > 1}
        recipes = [paths_of(r) for r in group]
        shown = paths[str(group[0]["system"])]
        for path in dict.fromkeys(p for recipe in recipes for p in recipe):
            values = {_text(recipe[path]) if path in recipe else None for recipe in recipes}
            if len(values) > 1 and path not in shown and path not in SHORTHAND.values():
                shown.append(path)
    return replace(
        labels,
        axes=tuple(axis for axis in AXES if axis in axes),
        paths={system: tuple(own) for system, own in paths.items()},
        common={axis: value for axis, value in labels.common.items() if axis not in axes},
    )


def _is_whole_epoch(rows: Iterable[CellFields]) -> bool:
    """Whether no epoch was cut by the limit of batches, by the rows that know their epoch."""
    limits = [
        (integer(r.get("max_batches") or 0), integer(r["epoch_batches"]))
        for r in rows
        if r.get("epoch_batches")
    ]
    return bool(limits) and all(limit == 0 or limit >= whole for limit, whole in limits)


def _varies(axis: str, rows: list[CellFields], values: list[str]) -> bool:
    """Whether rows have several values of an axis; of a sampler's axis, rows of one system."""
    distinct: dict[str, set[str]] = {}
    for row, value in zip(rows, values, strict=True):
        if value:
            system = str(row["system"]) if axis in SAMPLER_AXES else ""
            distinct.setdefault(system, set()).add(value)
    return any(len(v) > 1 for v in distinct.values())


def _paths(rows: list[CellFields], axes: Collection[str]) -> tuple[str, ...]:
    """Recipe fields that labels of one system show.

    These vary among rows whose stage has the same name, or are chosen by the machine.
    """
    by_path: dict[str, dict[str, set[str]]] = {}
    for row in rows:
        recipe = paths_of(row)
        for path, value in recipe.items():
            stage, dot, _ = path.partition(".")
            name = _text(recipe[stage]) if dot and stage in recipe else ""
            on_own_device = value == OWN_DEVICE.get(str(row.get("device", "")))
            by_path.setdefault(path, {}).setdefault(name, set()).add(
                "own device" if on_own_device else _text(value)
            )
    shown = {SHORTHAND[a] for a in SAMPLER_AXES if a in axes}
    return tuple(
        path
        for path, by_name in by_path.items()
        if path not in shown
        and (path in MACHINE_FIELDS or any(len(values) > 1 for values in by_name.values()))
    )


def axis_value(row: CellFields, axis: str) -> str:
    """The value of an axis as text; "" where the row has none."""
    value = row.get(axis)
    if value is None and axis in SAMPLER_AXES:  # a cell that was not run yet
        value = paths_of(row).get(SHORTHAND[axis])
    if axis == "precision":
        return str(value or FLOAT32) if row.get("model") else ""
    if axis == "max_batches":
        return f"at most {plural(integer(value), 'batch')}" if value else "whole epochs"
    if axis == "gpus" and value is not None:
        if integer(value) > 1:
            return f"{value} GPUs"
        several = {"schedule.ranks", "schedule.trainers"} & set(paths_of(row))
        one = "one GPU a process" if several else "one GPU"
        return one * (row.get("device") == "cuda")
    if value == 0 and axis in ZERO_TEXT:
        return ZERO_TEXT[axis]
    if isinstance(value, list | tuple):
        return "/".join(map(str, value))
    return "" if value is None else str(value)


def paths_of(row: CellFields) -> dict[str, object]:
    """The recipe of a row or cell as values by path: ``{"sampler.pick": "node"}``."""
    recipe = row.get("recipe") or {}
    if isinstance(recipe, str):
        return dict(_parse_recipe(recipe))
    assert isinstance(recipe, Mapping)
    return _by_path(recipe)


@functools.lru_cache(1 << 14)
def _parse_recipe(recipe: str) -> dict[str, object]:
    return _by_path(json.loads(recipe))


def _by_path(recipe: Mapping[str, object]) -> dict[str, object]:
    values = flat(dict(recipe))
    defaults = {p: v for p, v in RECIPE_DEFAULTS.items() if p.partition(".")[0] in values}
    return {**defaults, **SAMPLER_DEFAULTS.get(values.get("sampler"), {}), **values}


def integer(value: object) -> int:
    """A field that holds a whole number. Raises ``TypeError`` for anything else."""
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is not a whole number")
    return value


def unverified(row: CellFields) -> bool:
    """Whether a system runs its own epoch loop, so that its work cannot be verified."""
    return row.get("verified") is False or row.get("composed") is False


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def parse_label(text: str) -> tuple[str, dict[str, object]]:
    """Parse ``"dgl sampler.fused=false threads=2"`` into the system and its settings by key.

    A key is a field of the cell (also ``env``), ``pick`` or ``frontier`` of the sampler, or a path
    of the recipe. Raises ``UsageError`` for an empty label or a setting that is not ``key=value``.
    """
    system, values = _parsed(text)
    return system, dict(values)


@functools.lru_cache(1 << 12)
def _parsed(text: str) -> tuple[str, dict[str, object]]:
    if not text.strip():
        raise UsageError("a label is empty; give a system and settings, as 'dgl threads=2'")
    system, *settings = text.split()
    values: dict[str, object] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key or not value:
            raise UsageError(f"'{setting}' in '{text}' is not of the form key=value")
        values[SHORTHAND.get(key, key)] = parse_value(value)
    return system, values


def fits(cell: CellFields, label: str) -> bool:
    """Whether a cell (its fields by name, with ``recipe``) matches a label.

    A label without ``env`` matches cells of the run's own environment.
    """
    system, values = _parsed(label)
    if cell["system"] != system:
        return False
    wanted = {"env": "", **values}
    own = wanted.keys() & FIELDS & cell.keys()
    if not all(_equal(_field(cell, k), wanted[k]) for k in own):
        return False
    paths = paths_of(cell) if len(own) < len(wanted) else {}
    return all(k in paths and _equal(paths[k], wanted[k]) for k in wanted.keys() - own)


def _field(cell: CellFields, name: str) -> object:
    """The value of a field; tables have none for float32."""
    return (cell[name] or FLOAT32) if name == "precision" else cell[name]


def _equal(value: object, expected: object) -> bool:
    if isinstance(value, list | tuple) and isinstance(expected, str):
        value = "/".join(map(str, value))
    return isinstance(value, bool) == isinstance(expected, bool) and value == expected
