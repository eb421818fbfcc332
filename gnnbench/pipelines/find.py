"""Finds stages by name: gnnbench's and third parties'."""

from __future__ import annotations

from collections.abc import Mapping

from gnnbench.core import registry
from gnnbench.core.cell import Cell, implementations, settings
from gnnbench.core.errors import GnnbenchError, MissingError, UsageError
from gnnbench.core.stage import Spec


def stage(kind: str, name: str) -> type[Spec]:
    """Return the spec class of a stage.

    A library sampler counts as one: its options become the spec's fields.

    Raises ``UsageError`` for an unknown name, for an object that is not a stage and for a stage
    with another name, ``MissingError`` if a third party's module does not import.
    """
    try:
        registered = registry.load(kind, name)
    except GnnbenchError:
        raise
    except Exception as error:  # a third party's module may raise anything
        raise MissingError(
            f"{kind} '{name}' does not import ({error}); {registry.remedy(kind, name)}"
        ) from error
    if isinstance(registered, type) and issubclass(registered, Spec):
        if registered.kind != kind:
            raise UsageError(f"'{name}' is registered as a {kind}, but it is a {registered.kind}")
        if registered.name != name:
            raise UsageError(
                f"{kind} '{name}' calls itself '{registered.name}'; register it under its own name"
            )
        return registered
    if kind == registry.SAMPLER:
        from gnnbench.sampling.base import Sampler
        from gnnbench.sampling.native import spec_of

        if isinstance(registered, type) and issubclass(registered, Sampler):
            return spec_of(name, registered)
    raise UsageError(
        f"'{name}' of gnnbench.{registry.GROUPS[kind]} is no stage, but {registered!r};"
        f" {registry.remedy(kind, name)}"
    )


def from_plain(kind: str, value: Mapping[str, object], own: object = None) -> Spec:
    """Return the stage of a cell's recipe from its plain values.

    A stage of ``own``, a recipe, need not be registered. Raises ``UsageError`` if the cell has
    another implementation of the stage than this code.
    """
    known: Spec | None = getattr(own, kind, None)
    if known is None or known.name != value["name"]:
        made = stage(kind, str(value["name"]))(**settings(value))
    else:
        made = type(known)(**settings(value))
    _check_implementations(kind, dict(value), made.plain())
    return made


def _check_implementations(
    kind: str, cell_stage: Mapping[str, object], known_stage: Mapping[str, object]
) -> None:
    in_cell, here = (implementations({kind: stage}) for stage in (cell_stage, known_stage))
    for path in in_cell.keys() | here.keys():
        one, other = in_cell.get(path, 1), here.get(path, 1)
        if one != other:
            raise UsageError(
                f"the cell is of implementation {one} of its {path} stage, and this code has"
                f" {other}; run the experiment anew"
            )


def of_cell(cell: Cell) -> dict[str, Spec]:
    """Return the stages of a cell by kind, as its worker builds them."""
    is_registered = cell.system in registry.known(registry.SYSTEM)
    own = registry.load(registry.SYSTEM, cell.system) if is_registered else None
    stages = {kind: cell.stage(kind) for kind in cell.recipe if kind in registry.KINDS}
    return {k: from_plain(k, stage, own) for k, stage in stages.items() if stage is not None}
