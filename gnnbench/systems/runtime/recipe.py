"""A recipe: what a system is, complete and typed, stage by stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

from gnnbench.core import names, registry
from gnnbench.core.cell import Until
from gnnbench.core.errors import UnsupportedError, UsageError, setting
from gnnbench.core.missing import Missing
from gnnbench.core.option import Option
from gnnbench.core.stage import Spec
from gnnbench.features.fit import Fit
from gnnbench.features.spec import Host, StoreSpec
from gnnbench.models.aggregation import AggregateSpec, Csr
from gnnbench.pipelines import find
from gnnbench.pipelines.order import AsDrawn, OrderSpec
from gnnbench.pipelines.schedule import ScheduleSpec
from gnnbench.pipelines.schedule_plan import plan_of
from gnnbench.pipelines.serial import Serial
from gnnbench.sampling.stage import SamplerSpec

# How far an epoch must go for a stage to matter.
NEEDED = {
    registry.SAMPLER: Until.SAMPLE,
    registry.FEATURES: Until.MEMORY_IO,
    registry.ORDER: Until.SAMPLE,
    registry.AGGREGATE: Until.COMPUTE,
    registry.SCHEDULE: Until.SAMPLE,
}
# Work of a system without a stage, and how far its epoch goes.
_ENDS = {
    registry.FEATURES: ("samples", Until.SAMPLE.word),
    registry.AGGREGATE: ("samples and loads", Until.MEMORY_IO.word),
}
BASES: dict[str, type[Spec]] = {
    registry.SAMPLER: SamplerSpec,
    registry.FEATURES: StoreSpec,
    registry.ORDER: OrderSpec,
    registry.AGGREGATE: AggregateSpec,
    registry.SCHEDULE: ScheduleSpec,
}
DTYPE = Option("dtype", "float32", "of features, weights and activations", ("float32",))


@dataclass(frozen=True)
class Recipe:
    """A system as a composition of stages; ``paper`` says where it was published.

    ``features`` and ``aggregate`` are None where the system only samples. ``stand_in`` names the
    system to run instead if this one is missing and was not named. ``on_cpu`` are stages that
    replace those of their kinds on a CPU; a setting of the same kind overrides them. ``fit``
    chooses settings of the feature store by sizes, where a run sets none.
    """

    name: str
    summary: str
    sampler: SamplerSpec
    features: StoreSpec | None = Host()
    order: OrderSpec = AsDrawn()
    aggregate: AggregateSpec | None = Csr()
    schedule: ScheduleSpec = Serial()
    dtype: str = DTYPE.default
    paper: str = ""
    stand_in: str = ""
    on_cpu: tuple[Spec, ...] = ()
    fit: Fit | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise UsageError(f"a recipe's name must be a text that is not empty, not {self.name!r}")
        DTYPE.check(f"recipe '{self.name}'", self.dtype)
        for kind, base in BASES.items():
            spec = getattr(self, kind)
            optional = kind in (registry.FEATURES, registry.AGGREGATE)
            if not (isinstance(spec, base) or (spec is None and optional)):
                _refuse(self.name, kind, base, spec)
        if not isinstance(self.on_cpu, tuple):
            raise UsageError(
                f"recipe '{self.name}': on_cpu must be a tuple of stages, it is {self.on_cpu!r}"
            )
        for spec in self.on_cpu:
            if not isinstance(spec, Spec):
                _refuse(self.name, "on_cpu", Spec, spec)

    def stages(self, until: Until = Until.COMPUTE) -> dict[str, Spec]:
        """The stages that an epoch needs, by kind. Raises ``UnsupportedError`` if one is None."""
        specs: dict[str, Spec] = {}
        for kind, needed in NEEDED.items():
            if until < needed:
                continue
            spec = getattr(self, kind)
            if spec is None:
                does, reach = _ENDS[kind]
                raise UnsupportedError(
                    f"system '{self.name}' only {does}; give -o until={reach}, or another system"
                )
            specs[kind] = spec
        return specs

    def changed(self, settings: Mapping[str, object]) -> Recipe:
        """The same with other stages (``sampler=NAME``) or other fields (``sampler.FIELD=VALUE``).

        Stages are changed first: a new stage begins with its defaults. Raises ``SettingError``.
        """
        recipe = self
        for path, value in sorted(settings.items(), key=lambda s: s[0].count(".")):
            with setting(path):
                recipe = recipe._with(path, value)
        return replace(recipe, on_cpu=tuple(_changed_on_cpu(self, settings)))

    def _with(self, path: str, value: object) -> Recipe:
        """The same with one setting."""
        kind, dot, name = path.partition(".")
        if kind == DTYPE.name and not dot:
            return replace(self, dtype=str(DTYPE.check(f"system '{self.name}'", value)))
        if kind not in NEEDED:
            raise UsageError(
                f"system '{self.name}' has no setting '{path}';"
                f" {names.suggestion(path, self.options())}"
            )
        if not dot:
            if not isinstance(value, str):
                raise UsageError(f"{kind} must be a name, not {value!r}")
            return self._with_stage(kind, find.stage(kind, value)())
        spec = getattr(self, kind)
        if spec is None:
            raise UsageError(f"system '{self.name}' has no {kind}; name one: {kind}=...")
        return self._with_stage(kind, spec.changed(name, value))

    def _with_stage(self, kind: str, spec: Spec) -> Recipe:
        """The same with another stage. Raises ``UsageError`` for a stage of another kind."""
        if kind == registry.SAMPLER and isinstance(spec, SamplerSpec):
            return replace(self, sampler=spec)
        if kind == registry.FEATURES and isinstance(spec, StoreSpec):
            return replace(self, features=spec)
        if kind == registry.ORDER and isinstance(spec, OrderSpec):
            return replace(self, order=spec)
        if kind == registry.AGGREGATE and isinstance(spec, AggregateSpec):
            return replace(self, aggregate=spec)
        if kind == registry.SCHEDULE and isinstance(spec, ScheduleSpec):
            return replace(self, schedule=spec)
        _refuse(self.name, kind, BASES[kind], spec)

    def _with_stages(self, specs: Mapping[str, Spec]) -> Recipe:
        recipe = self
        for kind, spec in specs.items():
            recipe = recipe._with_stage(kind, spec)
        return recipe

    def on(self, device: str) -> Recipe:
        """The same with the stages that it has on a device."""
        if device != "cpu":
            return self
        own = {spec.kind: spec for spec in self.on_cpu}
        return replace(self._with_stages(own), on_cpu=())

    def staged(self, settings: Mapping[str, object]) -> Recipe:
        """The same with only those of ``settings`` that name a stage.

        Raises ``UsageError`` for an unknown stage.
        """
        recipe = self
        for path, value in sorted(settings.items(), key=lambda s: s[0].count(".")):
            known = recipe.options().get(path)
            if path in NEEDED or (known is not None and known.stages is not None):
                recipe = recipe.changed({path: value})
        return recipe

    def options(self) -> dict[str, Option]:
        """Every path that ``-o SYSTEM.PATH=VALUE`` may set with the recipe's stages."""
        known: dict[str, Option] = {DTYPE.name: DTYPE}
        for kind in NEEDED:
            spec = getattr(self, kind)
            default = None if spec is None else spec.name
            known[kind] = Option(kind, default, f"the {kind} stage", registry.known(kind))
            if spec is not None:
                known |= {f"{kind}.{name}": s for name, s in spec.settings().items()}
        return known

    def resolved(self, device: str, until: Until = Until.COMPUTE) -> Recipe:
        """The same with every default resolved for a device. Raises ``UnsupportedError``."""
        here = self.on(device)
        specs = {kind: spec.resolved(device) for kind, spec in here.stages(until).items()}
        recipe = here._with_stages(specs)
        recipe = replace(recipe, schedule=plan_of(recipe.schedule).adapted_to(recipe.features))
        plan = plan_of(recipe.schedule)
        plan.check(
            recipe.sampler, recipe.features if until > Until.SAMPLE else None, recipe.order, device
        )
        if until > Until.SAMPLE:
            recipe.order.check(recipe.sampler, recipe.features, recipe.schedule)
            if until is Until.COMPUTE and recipe.aggregate is not None:
                plan.check_step(recipe.aggregate)
            _check_repeatable(recipe, specs.values())
        return recipe

    def plain(self, until: Until = Until.COMPUTE) -> dict[str, object]:
        """The stages that an epoch needs, as plain values. A cell's id is their hash."""
        values: dict[str, object] = {
            kind: spec.plain()
            for kind, needed in NEEDED.items()
            if until >= needed and (spec := getattr(self, kind)) is not None
        }
        if until > Until.SAMPLE:
            values[DTYPE.name] = self.dtype
        return values

    def missing(self, device: str, until: Until = Until.COMPUTE) -> Missing | None:
        """The first thing that its stages lack on this machine's ``device``."""
        here = self.on(device)
        specs = (getattr(here, kind) for kind, needed in NEEDED.items() if until >= needed)
        return next((m for s in specs if s is not None and (m := s.missing(device))), None)

    def shared(self, device: str) -> tuple[str, ...]:
        """Arrays of the graph that a run keeps in shared memory for all its processes."""
        here = self.on(device)
        specs: list[Spec | None] = [getattr(here, kind) for kind in NEEDED]
        specs.append(here.of_rank(0).sampler)  # a leaner one reads the host's memory
        arrays = (name for spec in specs if spec is not None for name in spec.shared(device))
        return tuple(dict.fromkeys(arrays))

    def of_rank(self, rank: int) -> Recipe:
        """The same with the stages of one rank of a schedule of several ranks."""
        plan = plan_of(self.schedule)
        sampler, features = plan.rank_stages(rank, self.sampler, self.features)
        return replace(self, sampler=sampler, features=features)

    def leaner(self, rank: int) -> list[str]:
        """Phases for which a rank has leaner stages than the recipe."""
        lean = self.of_rank(rank)
        phases = ["sample"] * (lean.sampler != self.sampler)
        return phases + ["memory_io"] * (lean.features != self.features)

    @property
    def devices(self) -> tuple[str, ...]:
        """Devices that all stages run on."""
        return tuple(
            device
            for device in ("cpu", "cuda")
            if all(
                device in spec.devices
                for kind in NEEDED
                if (spec := getattr(self.on(device), kind)) is not None
            )
        )


def _refuse(recipe: str, field: str, base: type[Spec], value: object) -> NoReturn:
    text = repr(value)
    if isinstance(value, type):
        text = f"the class {value.__name__}: write {value.__name__}()"
    raise UsageError(f"recipe '{recipe}': {field} must be of {base.__name__}, it is {text}")


def _changed_on_cpu(recipe: Recipe, settings: Mapping[str, object]) -> Iterator[Spec]:
    """Stages of ``recipe.on_cpu`` that remain after ``settings``.

    A stage remains if nothing of its kind is set, or if only fields of the same stage are set.
    """
    for spec in recipe.on_cpu:
        fields = {
            path.partition(".")[2]: value
            for path, value in settings.items()
            if path.partition(".")[0] == spec.kind
        }
        if "" not in fields and (not fields or getattr(recipe, spec.kind).name == spec.name):
            for name, value in fields.items():
                spec = spec.changed(name, value)
            yield spec


def _check_repeatable(recipe: Recipe, stages: Iterable[Spec]) -> None:
    """Check the stages of a recipe whose feature store samples each epoch before it is timed.

    The timed epoch must draw the same edges again, and no stage may work ahead. Raises
    ``UnsupportedError``.
    """
    features, sampler = recipe.features, recipe.sampler
    if features is None or not features.foresees:
        return
    reason = f"features '{features.name}' as asked draws each epoch before it is timed"
    if not sampler.repeats:
        raise UnsupportedError(
            f"{reason}, and sampler '{sampler.name}' draws another one each time; take one of"
            " gnnbench's own samplers, or another policy"
        )
    for spec in stages:
        if spec.name not in registry.OURS[spec.kind]:
            raise UnsupportedError(
                f"{reason}, which only gnnbench's own stages may; {spec.kind} '{spec.name}' is"
                " none: take another policy"
            )


def from_plain(name: str, values: Mapping[str, object], own: Recipe | None = None) -> Recipe:
    """The recipe of a cell; stages that it leaves out are None.

    ``own`` is the registered system: its stages need not be registered by themselves. Raises
    ``UsageError`` for values that are no recipe.
    """
    specs = {
        kind: find.from_plain(kind, value, own)
        for kind, value in values.items()
        if isinstance(value, Mapping)
    }
    sampler = specs.get(registry.SAMPLER)
    if not isinstance(sampler, SamplerSpec):
        raise UsageError(f"recipe '{name}': it has no sampler; give one")
    dtype = str(values.get(DTYPE.name, DTYPE.default))
    return Recipe(name, "", sampler, None, aggregate=None, dtype=dtype)._with_stages(specs)
