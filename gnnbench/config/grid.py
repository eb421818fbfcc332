"""From a resolved definition to its cells: the grid of all axes and the sweeps around it, each
system's recipe resolved."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import JsonValue, TypeAdapter
from typing_extensions import TypedDict

from gnnbench.config.axes import AXES
from gnnbench.config.experiment import Experiment
from gnnbench.core import names
from gnnbench.core.cell import Cell, Until
from gnnbench.core.errors import MissingError, SettingError, UsageError
from gnnbench.core.fanouts import ALL
from gnnbench.core.precision import FLOAT32, TF32
from gnnbench.datasets import names as names_of_data
from gnnbench.models.kinds import MODELS
from gnnbench.pipelines.training_step import EAGER
from gnnbench.schema.run_json import SweepPointJson

SAMPLERS = ("pick", "frontier")  # axes that set all systems' samplers
DEFAULT = "default"  # of these: each sampler's own


@dataclass(frozen=True)
class Grid:
    """Distinct cells of a definition, those of one comparison next to each other.

    ``names``: by cell id the systems under whose names it was asked for; ``unsupported``: why a
    cell cannot run as asked; ``asked``: the id of the cell of every combination, in order;
    ``sweeps``: by name the points of a sweep, each with its values and the ids of its cells.
    """

    cells: list[Cell]
    names: dict[str, list[str]]
    unsupported: dict[str, str]
    asked: list[str] = field(default_factory=list)
    sweeps: dict[str, list[SweepPointJson]] = field(default_factory=dict)


class Resolution(Protocol):
    """What a system makes of its settings (``gnnbench.systems.runtime.find.Resolved``)."""

    @property
    def recipe(self) -> dict[str, object]:
        """The resolved recipe as plain values."""
        ...

    @property
    def unsupported(self) -> str:
        """Why it cannot run as asked, or ""."""
        ...

    @property
    def composed(self) -> bool:
        """Whether the recipe alone says what the system does."""
        ...

    @property
    def lacks(self) -> Collection[str]:
        """What some models need and its aggregation does not do."""
        ...


Resolver = Callable[[str, Mapping[str, object], str, Until], Resolution]
Known = Callable[[str, Mapping[str, object]], Collection[str]]


class AxisValues(TypedDict, total=False):
    """Values of the axes that are fields of a cell."""

    system: str
    dataset: str
    model: str
    until: str
    device: str
    batch_size: int
    fanouts: tuple[int, ...]
    hidden: int
    learning_rate: float
    dropout: float
    precision: str
    seed: int
    threads: int
    gpus: int
    evaluate: str


_AXIS_VALUES = TypeAdapter(AxisValues)


def expand(
    experiment: Experiment, resolve: Resolver, env: str = "", known: Known | None = None
) -> Grid:
    """Cells of a resolved definition, in an environment.

    ``resolve`` makes a recipe of (system, settings by path, device, until), ``known`` gives the
    paths of a system with the stages that are set for it: where axes vary a stage, a field goes to
    those that have it. Raises ``UsageError`` where none has, and where ``resolve`` does.
    """
    grid = Grid([], {}, {})
    fields, resolve = Fields(known), _resolved_once(resolve)
    excludes = [c for c in experiment.constraints if c.exclude is not None]
    includes = [c for c in experiment.constraints if c.include is not None]
    for combination, point in _combinations(experiment, grid.sweeps):
        if not all(c.keeps(combination) for c in excludes):
            continue
        if includes and not any(c.keeps(combination) for c in includes):
            continue
        cell, unsupported = _cell(experiment, combination, resolve, fields, env)
        grid.asked.append(cell.id)
        if cell.id not in point:
            point.append(cell.id)
        names_of = grid.names.setdefault(cell.id, [])
        if not names_of:
            grid.cells.append(cell)
        if cell.system not in names_of:
            names_of.append(cell.system)
        if unsupported:
            grid.unsupported[cell.id] = unsupported
    fields.check()
    return grid


def _resolved_once(resolve: Resolver) -> Resolver:
    """``resolve`` that remembers its results: most axes change no recipe."""
    results: dict[str, Resolution] = {}

    def remembered(
        system: str, settings: Mapping[str, object], device: str, until: Until
    ) -> Resolution:
        key = repr((system, sorted(settings.items()), device, until))
        if key not in results:
            results[key] = resolve(system, settings, device, until)
        return results[key]

    return remembered


class Fields:
    """Settings of stages that vary: which of them have them, and that one of them has."""

    def __init__(self, known: Known | None) -> None:
        self._known = known
        self._known_by_settings: dict[str, Collection[str]] = {}
        self._taken: dict[tuple[str, str], bool] = {}
        self._paths: dict[str, set[str]] = {}

    def of(
        self, system: str, settings: Mapping[str, object], varied: Collection[str]
    ) -> Mapping[str, object]:
        """``settings`` without fields of stages in ``varied`` that the one at hand lacks."""
        below = [path for path in settings if path.startswith(tuple(f"{v}." for v in varied))]
        if self._known is None or not below:
            return settings
        key = repr((system, sorted(settings.items())))
        if key not in self._known_by_settings:
            try:
                self._known_by_settings[key] = self._known(system, settings)
            except MissingError:  # its cells report why it is unknown
                return settings
        paths = self._known_by_settings[key]
        self._paths.setdefault(system, set()).update(paths)
        for path in below:
            self._taken[system, path] = self._taken.get((system, path), False) or path in paths
        return {p: v for p, v in settings.items() if p not in below or p in paths}

    def check(self) -> None:
        """Raise ``UsageError`` for a setting that no stage has."""
        for (system, path), taken in self._taken.items():
            if not taken:
                raise SettingError(
                    f"system '{system}' has no setting '{path}', whichever stage it takes;"
                    f" {names.suggestion(path, self._paths[system])}",
                    f"{system}.{path}",
                )


def _cell(
    experiment: Experiment,
    combination: Mapping[str, JsonValue],
    resolve: Resolver,
    fields: Fields,
    env: str,
) -> tuple[Cell, str]:
    # A learning rate of 1 becomes 1.0: they are one cell.
    values = _AXIS_VALUES.validate_python(
        {axis: v for axis, v in combination.items() if axis in AXES and axis not in SAMPLERS}
    )
    system = values["system"]
    given: dict[str, object] = {**experiment.systems.get(system, {})}
    if values.get("device") == "cuda":
        given |= experiment.fitted.get(system, {}).get(values["dataset"], {})
    varied: list[str] = []
    for axis, value in combination.items():
        if axis in SAMPLERS:
            if value != DEFAULT:
                given[f"sampler.{axis}"] = value
        elif axis not in AXES and axis.partition(".")[0] == system:
            given[axis.partition(".")[2]] = value
            varied.append(axis.partition(".")[2])
    until = Until.of(values.setdefault("until", Until.COMPUTE.word))
    if values.get("fanouts") == () and until is not Until.MEMORY_IO:
        raise UsageError(
            f"fanouts=[] has nothing to do until {until.word}: it gathers the rows of the seeds;"
            " give until=memory_io, or fanouts"
        )
    if values.get("fanouts") != () and names_of_data.without_edges(values["dataset"]):
        raise UsageError(
            f"dataset '{values['dataset']}' has no edges to sample; give -o fanouts=[] and"
            " -o until=memory_io, or a graph"
        )
    if until < Until.COMPUTE:
        values |= {"model": "", "hidden": 0, "learning_rate": 0.0}
        values.pop("evaluate", None)
        values.pop("dropout", None)
        values.pop("precision", None)
    elif "model" not in values:
        raise UsageError(f"'{experiment.name}' has no value for the axis 'model'")
    if values.get("evaluate") and not experiment.measure.rounds:
        raise UsageError(
            "evaluate follows the training of every life: say for how many epochs, -o rounds=10"
        )
    if values.get("precision") == TF32 and values.get("device", "cpu") != "cuda":
        raise UsageError(
            "precision=tf32 needs a GPU, and device is cpu: give --device cuda, or -o"
            " precision=bfloat16"
        )
    settings = fields.of(system, given, varied)
    try:
        resolved = resolve(system, settings, values.get("device", "cpu"), until)
    except SettingError as error:
        raise SettingError(str(error), _key(system, error.key, combination)) from None
    kind = MODELS.get(values["model"])
    if resolved.composed and kind is not None and "hidden" in values:
        kind.check_hidden(values["hidden"])
    cell = Cell(
        experiment=experiment.name,
        recipe=resolved.recipe,
        composed=resolved.composed,
        max_batches=experiment.measure.max_batches,
        env=env,
        **values,
    )
    faults = (
        _gpus_fault(cell), resolved.unsupported, _own_loop_fault(cell),
        _aggregation_fault(cell, resolved.lacks), _all_neighbours_fault(cell),
    )  # fmt: skip
    return cell, next(filter(None, faults), "")


def _key(system: str, path: str, combination: Mapping[str, JsonValue]) -> str:
    """What a definition calls a setting of a system: the axis that sets it, or ``SYSTEM.PATH``."""
    axis = path.removeprefix("sampler.")
    of_all = axis in SAMPLERS and combination.get(axis, DEFAULT) != DEFAULT
    return axis if of_all else f"{system}.{path}"


def _gpus_fault(cell: Cell) -> str:
    """Why a cell cannot have as many GPUs as it asks for, or ""."""
    if cell.gpus == 1:
        return ""
    return (
        f"gpus={cell.gpus}: several GPUs are ranks of a schedule; leave gpus=1, and give -o"
        f" {cell.system}.schedule=data-parallel -o {cell.system}.schedule.ranks={cell.gpus}"
    )


def _own_loop_fault(cell: Cell) -> str:
    """Why a system with an epoch loop of its own cannot do what a cell asks for, or ""."""
    if cell.composed:
        return ""
    loop = f"system '{cell.system}' has an epoch loop of its own"
    if cell.evaluate:
        return f"{loop}, which does not give its model out; leave evaluate out"
    if cell.dropout:
        return f"{loop}, which does not draw the masks of dropout; leave dropout out"
    if cell.precision != FLOAT32:
        return f"{loop}, which does not know the axis precision; leave precision out"
    return ""


def _aggregation_fault(cell: Cell, lacks: Collection[str]) -> str:
    """Why a cell's aggregation cannot do what its model needs, or ""."""
    if not lacks or not cell.trains or cell.model not in MODELS:
        return ""
    kind, stage = MODELS[cell.model], cell.stage_name("aggregate")
    form = kind.form
    if form == "attention" and "attention" in lacks:
        return (
            f"model '{cell.model}' weighs edges by attention, which aggregate '{stage}' does not;"
            " use aggregate=csr or scatter"
        )
    walks = cell.setting("sampler", "pick") == "random_walk"
    if form == "convolve" and walks and "weights" in lacks:
        return (
            f"model '{cell.model}' weighs edges by the visits of random walks, which aggregate"
            f" '{stage}' does not; use aggregate=csr or scatter, or another pick"
        )
    if (
        kind.symmetric
        and "weights" in lacks
        and cell.setting("schedule", "step") not in ("", EAGER)
    ):
        return (
            f"model '{cell.model}' weighs edges, which aggregate '{stage}' does by the degrees of"
            " nodes, and padding changes them; leave schedule.step=eager, or use aggregate=csr"
        )
    return ""


def _all_neighbours_fault(cell: Cell) -> str:
    """Why a cell's pick cannot take all neighbours where it is asked to, or ""."""
    if not cell.composed or (ALL not in cell.fanouts and cell.evaluate != "all"):
        return ""
    from gnnbench.kernels.picks import all_fault  # which imports torch

    return all_fault(cell.setting("sampler", "pick"))


def _combinations(
    experiment: Experiment, sweeps: dict[str, list[SweepPointJson]]
) -> Iterator[tuple[dict[str, JsonValue], list[str]]]:
    """Values of all cells, each with the list that its id belongs into: that of its point, which is
    noted in ``sweeps``."""
    centre = list(_centre(experiment))
    yield from ((combination, []) for combination in centre)
    for name, sweep in experiment.sweeps.items():
        points = sweeps.setdefault(name, [])
        for values in _rows(sweep):
            cells: list[str] = []
            points.append({"values": values, "cells": cells})
            yield from (({**combination, **values}, cells) for combination in centre)


def _rows(table: Mapping[str, list[JsonValue]]) -> Iterator[dict[str, JsonValue]]:
    """Axes that move together, row by row."""
    for values in zip(*table.values(), strict=True):
        yield dict(zip(table, values, strict=True))


def _centre(experiment: Experiment) -> Iterator[dict[str, JsonValue]]:
    first, last = ["dataset", "model"], ["system"]
    between = [a for a in experiment.axes if a not in [*first, *last]]
    axes = [a for a in [*first, *between, *last] if a in experiment.axes]
    for row in _rows(experiment.zip) if experiment.zip else [{}]:
        for values in itertools.product(*(experiment.axes[a] for a in axes)):
            yield {**row, **dict(zip(axes, values, strict=True))}
