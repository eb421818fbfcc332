"""Systems by name: recipes, and classes with an epoch loop of their own, asked alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gnnbench.core import registry
from gnnbench.core.cell import Cell, Until
from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.core.missing import Missing
from gnnbench.core.option import Option
from gnnbench.core.stage import Spec
from gnnbench.features.spec import StoreSpec
from gnnbench.pipelines.find import stage
from gnnbench.systems.runtime.recipe import NEEDED, Recipe, from_plain
from gnnbench.systems.runtime.system import System

if TYPE_CHECKING:
    from gnnbench.datasets.graph import Graph


class NotASystemError(TypeError):
    """What is registered as a system is none."""


@dataclass(frozen=True)
class Resolved:
    """What a cell holds of a system's settings, and why it cannot run as asked ("": it can).

    ``lacks``: what some models need and its aggregation does not do (``AggregateSpec.lacks``).
    """

    recipe: dict[str, Any]
    unsupported: str = ""
    composed: bool = True
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Named:
    """A registered system, whichever kind it is of; ``what`` is the recipe or the class."""

    name: str
    what: Recipe | type[System]

    @property
    def composed(self) -> bool:
        """Whether it is a recipe, whose work the suite's own gate vouches for."""
        return isinstance(self.what, Recipe)

    @property
    def summary(self) -> str:
        """A line of description."""
        return self.what.summary

    @property
    def stand_in(self) -> str:
        """The system to run instead where this one is missing and was not named, or ""."""
        return self.what.stand_in

    @property
    def devices(self) -> tuple[str, ...]:
        """Devices that it runs on as it is registered."""
        return self.what.devices

    @property
    def needs_graph(self) -> bool:
        """Whether a worker opens the dataset."""
        return isinstance(self.what, Recipe) or self.what.needs_graph

    def missing(self, device: str, until: Until = Until.SAMPLE) -> Missing | None:
        """What it needs and is not there."""
        if isinstance(self.what, Recipe):
            return self.what.missing(device, until)
        return self.what.missing(device)

    def options(self, given: Mapping[str, Any] | None = None) -> dict[str, Option]:
        """What ``-o SYSTEM.PATH=VALUE`` may set, with the stages that ``given`` names."""
        if isinstance(self.what, Recipe):
            return self.what.staged(given or {}).options()
        return dict(self.what.options)

    def resolved(self, given: Mapping[str, Any], device: str, until: Until) -> Resolved:
        """What a cell holds. Raises ``UsageError`` for a setting that is not one."""
        if not isinstance(self.what, Recipe):
            own = {k: v for k, v in given.items() if k not in ("sampler.pick", "sampler.frontier")}
            return Resolved(self.what.resolved(own), composed=False)
        recipe = self.what.changed(given)
        lacks = () if recipe.aggregate is None else recipe.aggregate.lacks
        try:
            return Resolved(recipe.resolved(device, until).plain(until), lacks=lacks)
        except UnsupportedError as error:
            return Resolved(recipe.plain(until), str(error), lacks=lacks)

    def shared(self, cell: Cell) -> tuple[str, ...]:
        """Arrays of the graph that a run holds for all lives of the cell's workers."""
        if not isinstance(self.what, Recipe):
            return ()
        return from_plain(cell.system, cell.recipe, self.what).shared(cell.device)

    def store(self, cell: Cell) -> StoreSpec | None:
        """The feature store of a cell; None where it has none, or nobody can tell."""
        if not isinstance(self.what, Recipe):
            return None
        return from_plain(cell.system, cell.recipe, self.what).features

    def build(self, cell: Cell, graph: Graph) -> System:
        """The object that a worker drives."""
        if isinstance(self.what, Recipe):
            from gnnbench.systems.runtime.runner import SystemRunner

            return SystemRunner(cell, graph, from_plain(cell.system, cell.recipe, self.what))
        return self.what(cell, graph)


def check_stage_names(recipe: Recipe) -> None:
    """Raise ``UsageError`` for a stage that carries the name of another, registered stage.

    Cells keep stages by name, so such a stage would never run. This holds for a stage that is a
    field of another one, too.
    """
    for spec in (*(getattr(recipe, kind) for kind in NEEDED), *recipe.on_cpu):
        for one in [] if spec is None else _with_inner(spec):
            if one.name not in registry.known(one.kind):
                continue
            # A derived class is another stage, too: it has the name by inheritance.
            if type(one) is not stage(one.kind, one.name):
                ours = one.name in registry.OURS[one.kind]
                owner = "gnnbench's own" if ours else "another, registered stage"
                raise UsageError(
                    f"recipe '{recipe.name}': {one.kind} '{one.name}' is a name of {owner};"
                    f" give the class {type(one).__name__} another 'name'"
                )


def _with_inner(spec: Spec) -> Iterator[Spec]:
    """A stage and the stages that are fields of it, at any depth."""
    yield spec
    for name in spec.options():
        inner = getattr(spec, name)
        if isinstance(inner, Spec):
            yield from _with_inner(inner)


def find(name: str) -> Named:
    """A registered system. Raises ``UsageError`` for an unknown name, ``TypeError`` for none.

    What a third party's module raises on import is passed on.
    """
    found = registry.load(registry.SYSTEM, name)
    if isinstance(found, Recipe):
        check_stage_names(found)
    if isinstance(found, Recipe) or (isinstance(found, type) and issubclass(found, System)):
        return Named(name, found)
    raise NotASystemError(f"{found!r} is neither a Recipe nor a class derived from System")
