"""Systems by name: recipes and classes with their own epoch loop, behind one interface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
    """The registered object is no system."""


@dataclass(frozen=True)
class Resolved:
    """The recipe of a cell as plain values, and why it is unsupported ("": it is supported).

    ``lacks``: features that its aggregation does not support (``AggregateSpec.lacks``).
    """

    recipe: dict[str, object]
    unsupported: str = ""
    composed: bool = True
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Named:
    """A registered system: a recipe, or a class with its own epoch loop."""

    name: str
    definition: Recipe | type[System]

    @property
    def composed(self) -> bool:
        """Whether it is a recipe, so that the suite's own gate checks its work."""
        return isinstance(self.definition, Recipe)

    @property
    def summary(self) -> str:
        """A line of description."""
        return self.definition.summary

    @property
    def stand_in(self) -> str:
        """The system to run instead if this one is missing and was not named, or ""."""
        return self.definition.stand_in

    @property
    def devices(self) -> tuple[str, ...]:
        """Devices that it runs on with its default settings."""
        return self.definition.devices

    @property
    def needs_graph(self) -> bool:
        """Whether a worker opens the dataset."""
        return isinstance(self.definition, Recipe) or self.definition.needs_graph

    def missing(self, device: str, until: Until = Until.SAMPLE) -> Missing | None:
        """The first thing that it lacks on this machine, or None."""
        if isinstance(self.definition, Recipe):
            return self.definition.missing(device, until)
        return self.definition.missing(device)

    def options(self, given: Mapping[str, object] | None = None) -> dict[str, Option]:
        """The paths that ``-o SYSTEM.PATH=VALUE`` may set, with the stages that ``given`` names."""
        if isinstance(self.definition, Recipe):
            return self.definition.staged(given or {}).options()
        return dict(self.definition.options)

    def resolved(self, given: Mapping[str, object], device: str, until: Until) -> Resolved:
        """The recipe of a cell. Raises ``UsageError`` for an unknown setting."""
        if not isinstance(self.definition, Recipe):
            own = {k: v for k, v in given.items() if k not in ("sampler.pick", "sampler.frontier")}
            return Resolved(self.definition.resolved(own), composed=False)
        recipe = self.definition.changed(given)
        lacks = () if recipe.aggregate is None else recipe.aggregate.lacks
        try:
            return Resolved(recipe.resolved(device, until).plain(until), lacks=lacks)
        except UnsupportedError as error:
            return Resolved(recipe.plain(until), str(error), lacks=lacks)

    def shared(self, cell: Cell) -> tuple[str, ...]:
        """Arrays of the graph that a run keeps in shared memory for all workers of the cell."""
        if not isinstance(self.definition, Recipe):
            return ()
        return from_plain(cell.system, cell.recipe, self.definition).shared(cell.device)

    def store(self, cell: Cell) -> StoreSpec | None:
        """The feature store of a cell; None if it has none or is no recipe."""
        if not isinstance(self.definition, Recipe):
            return None
        return from_plain(cell.system, cell.recipe, self.definition).features

    def build(self, cell: Cell, graph: Graph) -> System:
        """The object that a worker drives."""
        if isinstance(self.definition, Recipe):
            from gnnbench.systems.runtime.runner import SystemRunner

            return SystemRunner(cell, graph, from_plain(cell.system, cell.recipe, self.definition))
        return self.definition(cell, graph)


def check_stage_names(recipe: Recipe) -> None:
    """Raise ``UsageError`` for a stage with the name of another, registered stage.

    Cells name their stages, so such a stage would never run. Stages that are fields of other
    stages are checked as well.
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
    system = registry.load(registry.SYSTEM, name)
    if isinstance(system, Recipe):
        check_stage_names(system)
    if isinstance(system, Recipe) or (isinstance(system, type) and issubclass(system, System)):
        return Named(name, system)
    raise NotASystemError(f"{system!r} is neither a Recipe nor a class derived from System")
