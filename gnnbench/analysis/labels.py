"""How cells are named wherever people read of them: by what varies between them, and only that."""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from gnnbench.core.cell import Cell, flat
from gnnbench.core.errors import UsageError
from gnnbench.core.toml_value import parse_value
from gnnbench.core.units import plural

Row = Mapping[str, Any]

# Axes in the order in which they are told, with their words.
AXES = {
    "dataset": "{}",
    "until": "until {}",
    "model": "{}",
    "device": "{}",
    "batch_size": "batch {}",
    "fanouts": "fanouts {}",
    "hidden": "hidden {}",
    "learning_rate": "learning rate {}",
    "threads": "{} threads",
    "pick": "pick {}",
    "frontier": "frontier {}",
    "seed": "seed {}",
    "max_batches": "{}",  # a phrase of its own
    "evaluate": "evaluated over {} neighbours",
    "gpus": "{}",  # likewise
}
# What a system may decide for itself: told by its name unless it varies for one of them.
OWN = ("pick", "frontier")
SHORTHAND = {axis: f"sampler.{axis}" for axis in OWN}
# What the machine chose where the definition left it open: told always.
FOUND_HERE = ("sampler.extension",)
# What a recipe leaves out: steps that are launched kernel by kernel, as runs knew no others.
LEFT_OUT = {
    "schedule.step": "eager", "schedule.partition": "none", "schedule.gradients": "flat",
}  # fmt: skip
FIELDS = tuple(f.name for f in fields(Cell))
ITSELF = {"cpu": "cpu", "cuda": "gpu"}  # how a setting says "on the cell's own device"
# What 0 says in a cell.
ZERO = {"hidden": "", "learning_rate": "", "threads": "all"}
UNVERIFIED = " (unverified)"


@dataclass(frozen=True)
class Labels:
    """``axes`` and each system's ``paths`` of its recipe vary; ``common`` is what all rows share.

    ``common`` leaves out what no row has. Values are texts.
    """

    axes: tuple[str, ...]
    paths: Mapping[str, tuple[str, ...]]
    common: Mapping[str, str]

    def system(self, row: Row, separator: str = " ") -> str:
        """``dgl``, or ``dgl sampler.fused=false`` where that varies; says for what it stands in.

        Another environment is told always: ``dgl env=old``.
        """
        recipe, paths = paths_of(row), self.paths.get(row["system"], ())
        told = [f"env={row['env']}"] if row.get("env") else []
        told += [f"{p}={_text(recipe[p])}" for p in paths if p in recipe]
        name = separator.join([row["system"] + UNVERIFIED * unverified(row), *told])
        return name + (f"{separator}(for {row['stand_in_for']})" if row.get("stand_in_for") else "")

    def values(self, row: Row) -> dict[str, str]:
        """What varies of the axes; without those that the row lacks."""
        return {axis: value for axis in self.axes if (value := axis_value(row, axis))}

    def varying(self, row: Row, but: Collection[str] = ()) -> dict[str, str]:
        """The same in words, without those in ``but``."""
        return {a: worded(a, v) for a, v in self.values(row).items() if a not in but}

    def of(self, row: Row, but: Collection[str] = (), separator: str = ", ") -> str:
        """System and all that varies: ``baseline sampler=fused-map, batch 1024``."""
        return separator.join([self.system(row), *self.varying(row, but).values()])

    def title(self, but: Collection[str] = ()) -> str:
        """What all rows share, in words."""
        return ", ".join(worded(a, v) for a, v in self.common.items() if a not in but)


def worded(axis: str, value: str) -> str:
    """A value of an axis in words: ``batch 1024``, ``1 thread``."""
    told = AXES[axis].format(value)
    return told.removesuffix("s") if axis == "threads" and value == "1" else told


def labels(rows: Iterable[Row]) -> Labels:
    """Labels of rows of ``cells.csv``, or of cells as mappings."""
    rows = list(rows)
    values = {axis: [axis_value(r, axis) for r in rows] for axis in AXES}
    axes = tuple(a for a in AXES if _varies(a, rows, values[a]))
    common = {
        axis: found[0]
        for axis in AXES
        if axis not in axes and (found := list(dict.fromkeys(filter(None, values[axis]))))[:1]
        and len(found) == 1
    }  # fmt: skip
    if "max_batches" in common and _whole(rows):
        common["max_batches"] = axis_value({}, "max_batches")
    systems = dict.fromkeys(r["system"] for r in rows)
    paths = {s: _paths([r for r in rows if r["system"] == s], axes) for s in systems}
    return _told_apart(rows, Labels(axes, paths, common))


def _told_apart(rows: Iterable[Row], found: Labels) -> Labels:
    """The same with what sets rows of one label apart: values that some rows have and others lack.

    Rows of equal axes and recipes (equal work, another process) keep one label.
    """
    same: dict[str, list[Row]] = {}
    for row in rows:
        same.setdefault(found.of(row), []).append(row)
    axes, paths = set(found.axes), {system: list(known) for system, known in found.paths.items()}
    for group in same.values():
        axes |= {axis for axis in AXES if len({axis_value(r, axis) for r in group}) > 1}
        recipes = [paths_of(r) for r in group]
        told = paths[group[0]["system"]]
        for path in dict.fromkeys(p for recipe in recipes for p in recipe):
            values = {_text(recipe[path]) if path in recipe else None for recipe in recipes}
            if len(values) > 1 and path not in told and path not in SHORTHAND.values():
                told.append(path)
    return replace(
        found,
        axes=tuple(axis for axis in AXES if axis in axes),
        paths={system: tuple(known) for system, known in paths.items()},
        common={axis: value for axis, value in found.common.items() if axis not in axes},
    )


def _whole(rows: Iterable[Row]) -> bool:
    """Whether a limit of batches cut no epoch: told by rows that know how many one has."""
    known = [
        (r.get("max_batches") or 0, r["epoch_batches"]) for r in rows if r.get("epoch_batches")
    ]
    return bool(known) and all(limit == 0 or limit >= whole for limit, whole in known)


def _varies(axis: str, rows: list[Row], values: list[str]) -> bool:
    """Whether rows that have a value have more than one: of one system where it may decide."""
    found: dict[str, set[str]] = {}
    for row, value in zip(rows, values, strict=True):
        if value:
            found.setdefault(row["system"] if axis in OWN else "", set()).add(value)
    return any(len(v) > 1 for v in found.values())


def _paths(rows: list[Row], axes: Collection[str]) -> tuple[str, ...]:
    """Paths of one system's recipes that are told: where a field varies among the rows of one
    stage's name, and what the machine chose."""
    found: dict[str, dict[str, set[str]]] = {}
    for row in rows:
        recipe = paths_of(row)
        for path, value in recipe.items():
            stage, dot, _ = path.partition(".")
            name = _text(recipe[stage]) if dot and stage in recipe else ""
            itself = value == ITSELF.get(row.get("device", ""))
            found.setdefault(path, {}).setdefault(name, set()).add(
                "its own device" if itself else _text(value)
            )
    told = {SHORTHAND[a] for a in OWN if a in axes}
    return tuple(
        path
        for path, by_name in found.items()
        if path not in told
        and (path in FOUND_HERE or any(len(values) > 1 for values in by_name.values()))
    )


def axis_value(row: Row, axis: str) -> str:
    """An axis of a row as text; empty where the row has none."""
    value = row.get(axis)
    if value is None and axis in OWN:  # a cell that was not run yet
        value = paths_of(row).get(SHORTHAND[axis])
    if axis == "max_batches":
        return f"at most {plural(value, 'batch')}" if value else "whole epochs"
    if axis == "gpus" and value is not None:
        if value > 1:
            return f"{value} GPUs"
        several = {"schedule.ranks", "schedule.trainers"} & set(paths_of(row))
        one = "one GPU a process" if several else "one GPU"
        return one * (row.get("device") == "cuda")
    if value == 0 and axis in ZERO:
        return ZERO[axis]
    if isinstance(value, list | tuple):
        return "/".join(map(str, value))
    return "" if value is None else str(value)


def paths_of(row: Row) -> dict[str, Any]:
    """The recipe of a row or cell by paths."""
    recipe = row.get("recipe") or {}
    return dict(_read(recipe)) if isinstance(recipe, str) else _by_paths(recipe)


@functools.lru_cache(1 << 14)
def _read(recipe: str) -> dict[str, Any]:
    return _by_paths(json.loads(recipe))


def _by_paths(recipe: dict[str, Any]) -> dict[str, Any]:
    """By paths, with what was left out of it."""
    found = flat(recipe)
    left_out = {p: v for p, v in LEFT_OUT.items() if p.partition(".")[0] in found}
    return {**left_out, **found}


def unverified(row: Row) -> bool:
    """Whether nobody but the system itself vouches for its work."""
    return row.get("verified") is False or row.get("composed") is False


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def parse_label(text: str) -> tuple[str, dict[str, Any]]:
    """The system of ``"dgl sampler.fused=false threads=2"`` and what is set.

    A setting is a field of the cell (``env`` among them), ``pick`` or ``frontier`` (of its
    sampler), or a path of the recipe. Raises ``UsageError``.
    """
    system, values = _parsed(text)
    return system, dict(values)


@functools.lru_cache(1 << 12)
def _parsed(text: str) -> tuple[str, dict[str, Any]]:
    if not text.strip():
        raise UsageError("a label is empty; it names a system and what sets it apart")
    system, *settings = text.split()
    values = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key or not value:
            raise UsageError(f"'{setting}' in '{text}' is not of the form key=value")
        values[SHORTHAND.get(key, key)] = parse_value(value)
    return system, values


def fits(cell: Row, label: str) -> bool:
    """Whether a cell (its fields by name, ``recipe`` with them) is what a label names.

    A label that names no ``env`` is of this environment.
    """
    system, values = _parsed(label)
    if cell["system"] != system:
        return False
    known = {name: cell[name] for name in FIELDS if name in cell} | paths_of(cell)
    return all(k in known and _equal(known[k], v) for k, v in {"env": "", **values}.items())


def _equal(known: Any, asked: Any) -> bool:
    if isinstance(known, list | tuple) and isinstance(asked, str):
        known = "/".join(map(str, known))
    return isinstance(known, bool) == isinstance(asked, bool) and bool(known == asked)
