"""A definition (TOML) becomes one complete typed value, and that becomes cells.

A definition has ``schema_version = 2``; ``[axes]`` (their product is taken), ``[zip]`` (axes that
move together), ``[sweeps.<name>]`` (axes that leave what those two give, the centre, while all
others stay: one sweep at a time, the axes of a sweep together), ``[[constraints]]`` (``include``
keeps only matching combinations, ``exclude`` drops matching ones; a value may be a list of
alternatives), ``[measure]``, ``[systems.<name>]`` (its stages and their fields: ``sampler =
"pgsampler"``, ``sampler.fetch_size = 3``), ``[profiles.<name>]`` (overrides of all these) and may
say ``extends = "name"``: tables are merged, anything else is replaced, and the default profile that
is inherited gives way to what a definition says itself. An axis
``"<system>.<path>"`` varies a stage or a field of one system's recipe; ``pick`` and ``frontier``
set all systems' samplers. ``until`` says how far an epoch goes. ``reference`` and ``compare``
(further pairs to compare) name cells by what sets them
apart: ``"dgl sampler.fused=true"``, ``"baseline threads=1"``. ``[references]`` gives a system a
reference of its own, which the plan adds: ``pyg = "baseline sampler.frontier=new"``. ``[accuracy]``
states for a dataset the validation accuracy whose time is reported if models are evaluated. Written
back resolved it is a definition again, with the same hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    field_validator,
    model_validator,
)

from gnnbench.config import definition_files, limits, messages
from gnnbench.config.axes import AXES, REQUIRED, Name, Natural, Positive, check_axis
from gnnbench.config.definition_files import files as files
from gnnbench.config.definition_files import is_one as is_one
from gnnbench.config.definition_files import shipped as shipped
from gnnbench.config.merge import lay_axes, subtable
from gnnbench.core import names
from gnnbench.core.errors import UsageError

if TYPE_CHECKING:
    from gnnbench.statistics.stopping_rule import Rule


class Strict(BaseModel):
    """A value without unknown keys and without silent conversions."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class MeasureLimits(Strict):
    """How long to measure and within which limits; ``0`` switches a limit off.

    ``margin``, ``same`` and ``target_half_width`` are those of
    :class:`gnnbench.statistics.stopping_rule.Rule`.
    """

    warmup_epochs: Natural = Field(
        default=1, description="warm-up epochs of each trial, in no statistic"
    )
    pairs: Annotated[list[Positive], Field(min_length=1)] = Field(
        default=[3, 5, 10],
        description="numbers of pairs of fresh processes after which a ratio is examined; the last"
        " one is the maximum, a single number means one examination",
    )
    rounds: Natural = Field(
        default=0,
        description="iterations of a pair, even; 0: chosen from the costs of a trial and an"
        " iteration, so that the first examination fits into time_budget_s",
    )
    margin: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.01, description="distance from 1 that an interval must exceed for a verdict"
    )
    same: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.03, description="half width around 1 within which an interval means 'same'"
    )
    target_half_width: Annotated[float, Field(gt=0)] = Field(
        default=0.03, description="half width of the interval at which measuring stops"
    )
    time_budget_s: Annotated[float, Field(gt=0)] = Field(
        default=300.0, description="time budget of a comparison, checked between pairs"
    )
    cell_timeout_s: Annotated[float, Field(gt=0)] = Field(
        default=1800.0, description="timeout of one command to a worker, such as an epoch"
    )
    max_batches: Natural = Field(default=0, description="maximum batches of an epoch; 0: no limit")
    memory_limit_gib: Annotated[float, Field(ge=0)] = Field(
        default=0.0, description="address space limit of a worker; 0: no limit"
    )
    unstable_half_width: Annotated[float, Field(ge=0)] = Field(
        default=0.5, description="half width above which a cell is 'unstable'; 0: never"
    )
    roofline: bool = Field(
        default=False,
        description="after each training epoch, time the kernels of its first batch in isolation,"
        " alternating with the machine's peaks",
    )
    memory: bool = Field(
        default=False, description="report memory by component, in a process that times nothing"
    )
    kernels: bool = Field(
        default=False,
        description="on a GPU, report the kernels of an epoch by name, also beyond sampling, in a"
        " process that times nothing",
    )
    trace: bool = Field(
        default=False,
        description="write a trace of an epoch for Perfetto, in a process that times nothing",
    )
    looks: Annotated[int, Field(ge=1)] = Field(
        default=1,
        description="profiling runs of a sampler, alternating with its reference; with several, the"
        " times of its stages have an interval",
    )

    @field_validator("pairs", mode="before")
    @classmethod
    def _pairs_as_list(cls, pairs: object) -> object:
        """Read a single number as a list of one."""
        return [pairs] if isinstance(pairs, int) else pairs

    @model_validator(mode="after")
    def _ordered(self) -> MeasureLimits:
        if sorted(set(self.pairs)) != self.pairs:
            raise ValueError("pairs must ascend: the ratio is analysed after each of them")
        if self.rounds % 2:
            raise ValueError("rounds must be even, so that each side begins as often; or 0")
        return self

    @property
    def rule(self) -> Rule:
        """How pairs are judged."""
        from gnnbench.statistics.stopping_rule import Rule

        return Rule(tuple(self.pairs), self.margin, self.same, self.target_half_width)


class Constraint(Strict):
    """Either ``include`` or ``exclude``: axis -> value or list of values."""

    include: dict[str, JsonValue] | None = None
    exclude: dict[str, JsonValue] | None = None

    @model_validator(mode="after")
    def _one(self) -> Constraint:
        if (self.include is None) == (self.exclude is None):
            raise ValueError("a constraint has either 'include' or 'exclude'")
        return self

    def keeps(self, combination: Mapping[str, object]) -> bool:
        """Whether a combination of axis values survives."""
        table = self.include if self.include is not None else self.exclude
        hit = all(_equal(combination.get(axis), value) for axis, value in (table or {}).items())
        return hit if self.include is not None else not hit


def _equal(have: object, wanted: object) -> bool:
    return have == wanted or (isinstance(wanted, list) and have in wanted)


class Overridable(Strict):
    """What a profile may override."""

    description: str = Field(default="", description="one line on its purpose")
    reference: Name = Field(
        default="baseline",
        description="label of the cell that the others are compared with; none: only the pairs of"
        " compare are compared, other cells run alone",
    )
    references: dict[str, Name] = Field(
        default={}, description="system -> label of a reference of its own"
    )
    accuracy: dict[str, Annotated[float, Field(gt=0, lt=1)]] = Field(
        default={}, description="dataset -> validation accuracy; the time to reach it is reported"
    )
    compare: list[Annotated[list[Name], Field(min_length=2, max_length=2)]] = Field(
        default=[], description="further pairs of labels to compare with each other"
    )
    axes: dict[str, list[JsonValue]] = Field(
        default={}, description="axis -> values; the product of all axes is run"
    )
    zip: dict[str, list[JsonValue]] = Field(
        default={}, description="axes that move together, lists of one length"
    )
    sweeps: dict[Name, dict[str, list[JsonValue]]] = Field(
        default={},
        description="name -> axes that vary while the others stay fixed, one sweep at a time",
    )
    constraints: list[Constraint] = Field(
        default=[],
        description="include (keep matching combinations alone) or exclude (drop them): axis ->"
        " value, or a list of alternatives",
    )
    systems: dict[str, dict[str, JsonValue]] = Field(
        default={}, description="system -> stages and fields of its recipe"
    )


class Profile(Overridable):
    """A named size of the same experiment."""

    measure: dict[str, JsonValue] = Field(default={}, description="keys of [measure]")


class Experiment(Overridable):
    """One complete definition. ``profiles`` is empty once it is resolved."""

    schema_version: Literal[2] = Field(description="of this form of definitions")
    # It names a folder.
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.+~@-]{0,99}$")] = Field(
        description="of the experiment; that of the file where it is left out"
    )
    title: str = Field(default="", description="over figures and in lists")
    figures: list[Name] = Field(default=["breakdown"], description="drawn in the end")
    sources: list[str] = Field(default=[], description="papers' figures that it follows")
    default_profile: str = Field(
        default="",
        description="profile of a run that names none; empty: the definition as it stands",
    )
    measure: MeasureLimits = Field(
        default=MeasureLimits(), description="how long to measure, and limits"
    )
    profiles: dict[str, Profile] = Field(
        default={}, description="by name other sizes of the same: any of the keys above"
    )
    fitted: dict[str, dict[str, dict[str, JsonValue]]] = Field(
        default={},
        description="system -> dataset -> stages and fields of its recipe for cells on a GPU; a"
        " run writes here what a system chose by the sizes of both",
    )

    @model_validator(mode="after")
    def _axes_make_sense(self) -> Experiment:
        for axis, values in [item for table in self.tables() for item in table.items()]:
            check_axis(axis, values)
        if both := set(self.axes) & set(self.zip):
            raise ValueError(f"'{min(both)}' is both in [axes] and in [zip]")
        if len({len(v) for v in self.zip.values()}) > 1:
            raise ValueError("the lists in [zip] have different lengths")
        for name, sweep in self.sweeps.items():
            if len({len(v) for v in sweep.values()}) != 1 or not all(sweep.values()):
                raise ValueError(
                    f"[sweeps.{name}] is to have one axis or more, with lists of one length"
                )
        for constraint in self.constraints:
            for axis, value in (constraint.include or constraint.exclude or {}).items():
                alternatives = value if isinstance(value, list) else [value]
                check_axis(axis, [] if axis == "fanouts" else alternatives)
        return self

    @property
    def hash(self) -> str:
        """Content hash, 12 hex digits."""
        text = json.dumps(self._plain(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def to_toml(self) -> str:
        """The value as a definition that reads back to itself."""
        import tomli_w

        head = f"# resolved by gnnbench; content hash {self.hash}\n"
        return head + tomli_w.dumps(self._plain(without_none=True))

    def _plain(self, without_none: bool = False) -> dict[str, JsonValue]:
        # Without them a definition is, and hashes, as before there could be any.
        optional = ("compare", "references", "accuracy", "sweeps", "fitted")
        unused: dict[str, bool | set[str]] = {
            key: True for key in optional if not getattr(self, key)
        }
        looks = ("roofline", "memory", "kernels")
        of_measure = {k for k in looks if not getattr(self.measure, k)}
        unused["measure"] = of_measure | ({"looks"} if self.measure.looks == 1 else set())
        return self.model_dump(mode="json", exclude=unused, exclude_none=without_none)

    def paths(self) -> list[str]:
        """Axes that vary a path of one system's recipe."""
        return [axis for table in self.tables() for axis in table if "." in axis]

    def tables(self) -> list[dict[str, list[JsonValue]]]:
        """All tables of axes: the centre's, then the sweeps."""
        return [self.axes, self.zip, *self.sweeps.values()]

    def axis(self, name: str) -> list[JsonValue]:
        """Distinct values of an axis over the whole grid, the centre's first, in order."""
        return _distinct([v for table in self.tables() for v in table.get(name, [])])

    def names(self, axis: str) -> list[str]:
        """Distinct values of an axis whose values are names, such as ``system``."""
        return [value for value in self.axis(axis) if isinstance(value, str)]


def _distinct(values: list[JsonValue]) -> list[JsonValue]:
    return [v for i, v in enumerate(values) if v not in values[:i]]


def load(name_or_path: str) -> Experiment:
    """Read a definition, by shipped name or by path, with what it extends.

    ``mine`` is ``mine.toml`` in the current folder if no shipped definition has that name.

    Raises ``UsageError`` naming the file and the key at fault.
    """
    path, raw = definition_files.merged(name_or_path)
    return _validate(raw, path.name)


def _validate(raw: dict[str, JsonValue], file: str) -> Experiment:
    try:
        experiment = Experiment.model_validate(raw)
    except ValidationError as error:
        raise UsageError(f"'{file}': {_sentence(error)}") from None
    for name in experiment.profiles:  # a profile that cannot be applied is an error now
        try:
            Experiment.model_validate(_with_profile(raw, name))
        except ValidationError as error:
            raise UsageError(f"'{file}', profile '{name}': {_sentence(error)}") from None
    return experiment


def _with_profile(raw: dict[str, JsonValue], profile: str) -> dict[str, JsonValue]:
    raw = dict(raw)
    over = dict(subtable(subtable(raw, "profiles"), profile))
    raw.pop("profiles", None)
    raw.pop("default_profile", None)
    constraints = [*_constraints(raw), *_constraints(over)]
    over.pop("constraints", None)
    return {**lay_axes(raw, over), "constraints": constraints}


def _constraints(raw: Mapping[str, JsonValue]) -> list[JsonValue]:
    constraints = raw.get("constraints", [])
    return constraints if isinstance(constraints, list) else [constraints]


KEYS = sorted(
    {"extends", *AXES}
    | set(Experiment.model_fields)
    | set(MeasureLimits.model_fields)
    | set(Constraint.model_fields)
)


def _sentence(error: ValidationError) -> str:
    return messages.sentence(error, KEYS, MeasureLimits.model_json_schema()["properties"])


def resolve(
    experiment: Experiment, profile: str = "", over: Mapping[str, JsonValue] | None = None
) -> Experiment:
    """Apply a profile (the default one for ``""``) and overrides; the result has no profiles.

    ``over`` is a partial definition, as the command line makes it. ``device = "auto"`` becomes
    ``cuda`` where there are a GPU, a torch for it and our CUDA library, else ``cpu``.
    """
    chosen = profile or experiment.default_profile
    if chosen and chosen not in experiment.profiles:
        raise UsageError(_unknown_profile(experiment, chosen))
    raw = _with_profile(experiment.model_dump(exclude_none=True, exclude_unset=True), chosen)
    limits.check_values(over or {})
    raw = lay_axes(raw, over or {})
    axes, sweeps = subtable(raw, "axes"), subtable(raw, "sweeps")
    for table in (axes, subtable(raw, "zip"), *(subtable(sweeps, name) for name in sweeps)):
        if isinstance(devices := table.get("device"), list) and "auto" in devices:
            known = [_auto_device() if d == "auto" else d for d in devices]
            table["device"] = _distinct(known) if table is axes else known
    try:
        resolved = Experiment.model_validate(raw)
    except ValidationError as error:
        raise UsageError(_sentence(error)) from None
    for axis in REQUIRED:
        if not (resolved.axes.get(axis) or resolved.zip.get(axis)):
            raise UsageError(f"'{resolved.name}' has no value for the axis '{axis}'")
    limits.check_combinations(resolved.axes, resolved.zip, resolved.sweeps)
    return resolved


def _unknown_profile(experiment: Experiment, name: str) -> str:
    """That an experiment has no profile of a name, and those that it has."""
    known = ", ".join(experiment.profiles)
    if not known:
        return f"'{experiment.name}' has no profiles; leave --profile {name} out"
    near = names.nearest(name, experiment.profiles)
    hint = f"; did you mean '{near}'?" if near else ";"
    return f"unknown profile '{name}'{hint} '{experiment.name}' has {known}"


def _auto_device() -> str:
    from gnnbench.measure import machine

    if not machine.gpus():
        return "cpu"
    from gnnbench.kernels.missing import native_missing

    return "cpu" if native_missing("cuda") else "cuda"
