"""Stages by name, ours and third parties'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnnbench.core import registry
from gnnbench.core.cell import Cell, implementations, settings
from gnnbench.core.errors import GnnbenchError, MissingError, UsageError
from gnnbench.core.stage import Spec


def stage(kind: str, name: str) -> type[Spec]:
    """The spec of a stage.

    Raises ``UsageError`` for an unknown name, for what is no stage and for one that calls itself
    otherwise, ``MissingError`` where a third party's module does not import.

    A sampler of the library is one too: its options become the spec's fields.
    """
    try:
        found = registry.load(kind, name)
    except GnnbenchError:
        raise
    except Exception as error:  # a third party's module may raise anything
        raise MissingError(
            f"{kind} '{name}' does not import ({error}); {registry.remedy(kind, name)}"
        ) from error
    if isinstance(found, type) and issubclass(found, Spec):
        if found.kind != kind:
            raise UsageError(f"'{name}' is registered as a {kind}, but it is a {found.kind}")
        if found.name != name:
            raise UsageError(
                f"{kind} '{name}' calls itself '{found.name}'; register it under its own name"
            )
        return found
    if kind == registry.SAMPLER:
        from gnnbench.sampling.base import Sampler
        from gnnbench.sampling.native import spec_of

        if isinstance(found, type) and issubclass(found, Sampler):
            return spec_of(name, found)
    raise UsageError(
        f"'{name}' of gnnbench.{registry.GROUPS[kind]} is no stage, but {found!r};"
        f" {registry.remedy(kind, name)}"
    )


def from_plain(kind: str, value: Mapping[str, Any], own: Any = None) -> Spec:
    """The stage of a cell's recipe; that of ``own``, a recipe, need not be registered by itself.

    Raises ``UsageError`` where this code has another implementation of it.
    """
    known: Spec | None = getattr(own, kind, None)
    if known is None or known.name != value["name"]:
        made = stage(kind, value["name"])(**settings(value))
    else:
        made = type(known)(**settings(value))
    _check_implementations(kind, dict(value), made.plain())
    return made


def _check_implementations(kind: str, asked: dict[str, Any], made: dict[str, Any]) -> None:
    wanted, have = (implementations({kind: stage}) for stage in (asked, made))
    for path in wanted.keys() | have.keys():
        one, other = wanted.get(path, 1), have.get(path, 1)
        if one != other:
            raise UsageError(
                f"the cell is of implementation {one} of its {path} stage, and this code has"
                f" {other}; run the experiment anew"
            )


def begin(cell: Cell) -> None:
    """Have a schedule of ours start its processes; torch is not imported for that."""
    value = cell.recipe.get(registry.SCHEDULE, {}) if cell.composed else {}
    if value.get("name") in registry.OURS[registry.SCHEDULE]:
        schedule: Any = from_plain(registry.SCHEDULE, value)
        schedule.begin(cell)


def of_cell(cell: Cell) -> dict[str, Spec]:
    """The stages of a cell by kind, as its worker has them."""
    known = cell.system in registry.known(registry.SYSTEM)
    own = registry.load(registry.SYSTEM, cell.system) if known else None
    stages = {kind: value for kind, value in cell.recipe.items() if kind in registry.KINDS}
    return {kind: from_plain(kind, value, own) for kind, value in stages.items()}
