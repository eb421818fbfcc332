"""A definition (TOML) becomes one complete typed value, and that becomes cells.

A definition has ``schema_version = 2``; ``[axes]`` (their product is taken), ``[zip]`` (axes that
move together), ``[[constraints]]`` (``include`` keeps only matching combinations, ``exclude`` drops
matching ones; a value may be a list of alternatives), ``[measure]``, ``[systems.<name>]`` (its
stages and their fields: ``sampler = "pgsampler"``, ``sampler.fetch_size = 3``),
``[profiles.<name>]`` (overrides of all these) and may say ``extends = "name"``: tables are merged,
anything else is replaced. An axis ``"<system>.<path>"`` varies a stage or a field of one system's
recipe; ``pick`` and ``frontier`` set all systems' samplers. ``until`` says how far an epoch goes.
``reference`` and ``compare`` (couples measured beside one another, over and above the reference)
name cells by what sets them apart: ``"dgl sampler.fused=true"``, ``"baseline threads=1"``.
``[references]`` gives a system a reference of its own, which the plan adds:
``pyg = "baseline sampler.frontier=new"``. ``[accuracy]`` states for a dataset the validation
accuracy whose time is told where models are evaluated. Written back resolved it is a definition
again, with the same hash.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from gnnbench import fanouts, names
from gnnbench.cell import PHASES
from gnnbench.data.manifest import share_dir
from gnnbench.errors import UsageError

if TYPE_CHECKING:
    from gnnbench.measure.rule import Rule

Name = Annotated[str, Field(min_length=1)]
Positive = Annotated[int, Field(gt=0)]
Fanout = Annotated[int, AfterValidator(fanouts.check)]
Natural = Annotated[int, Field(ge=0)]
Raw = dict[str, Any]

AXES: dict[str, Any] = {
    "system": Name,
    "dataset": Name,
    "model": Name,
    "until": Literal[PHASES],
    "device": Literal["cpu", "cuda", "auto"],
    "pick": Name,
    "frontier": Literal["default", "cumulative", "new"],
    "batch_size": Positive,
    "fanouts": list[Fanout],
    "hidden": Positive,
    "learning_rate": Annotated[float, Field(gt=0)],
    "seed": Natural,
    "threads": Natural,
    "evaluate": Literal["sampled", "all"],
}
REQUIRED = ("system", "dataset")


class Strict(BaseModel):
    """A value without unknown keys and without silent conversions."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Measure(Strict):
    """How long to measure and within which limits; ``0`` switches a limit off.

    ``pairs``: after how many pairs of fresh processes a ratio is looked at, the last number is the
    most; ``rounds`` of a pair (0: chosen by what a life and a round cost, and few enough for the
    first look to fit into ``time_budget_s``). ``margin``, ``same`` and
    ``target_half_width`` are those of :class:`gnnbench.measure.rule.Rule`; ``time_budget_s`` of a
    comparison ends it between two pairs. ``roofline``: after each epoch that trains the kernels of
    its first batch are run by themselves, in turns with the machine's ceilings.
    """

    warmup_epochs: Natural = 1
    pairs: Annotated[list[Positive], Field(min_length=1)] = [5, 10]
    rounds: Natural = 0
    margin: Annotated[float, Field(ge=0, lt=1)] = 0.01
    same: Annotated[float, Field(gt=0, lt=1)] = 0.03
    target_half_width: Annotated[float, Field(gt=0)] = 0.03
    time_budget_s: Annotated[float, Field(gt=0)] = 300.0
    cell_timeout_s: Annotated[float, Field(gt=0)] = 1800.0
    max_batches: Natural = 0
    memory_limit_gib: Annotated[float, Field(ge=0)] = 0.0
    unstable_half_width: Annotated[float, Field(ge=0)] = 0.5
    roofline: bool = False

    @field_validator("pairs", mode="before")
    @classmethod
    def _looks(cls, pairs: Any) -> Any:
        """A number alone is one look."""
        return [pairs] if isinstance(pairs, int) else pairs

    @model_validator(mode="after")
    def _ordered(self) -> Measure:
        if sorted(set(self.pairs)) != self.pairs:
            raise ValueError("pairs must ascend: after how many pairs a ratio is looked at")
        if self.rounds % 2:
            raise ValueError("rounds must be even, so that each side begins as often; or 0")
        return self

    @property
    def rule(self) -> Rule:
        """How pairs are judged."""
        from gnnbench.measure.rule import Rule

        return Rule(tuple(self.pairs), self.margin, self.same, self.target_half_width)


class Constraint(Strict):
    """Either ``include`` or ``exclude``: axis -> value or list of values."""

    include: Raw | None = None
    exclude: Raw | None = None

    @model_validator(mode="after")
    def _one(self) -> Constraint:
        if (self.include is None) == (self.exclude is None):
            raise ValueError("a constraint has either 'include' or 'exclude'")
        return self

    def keeps(self, combination: Raw) -> bool:
        """Whether a combination of axis values survives."""
        table = self.include if self.include is not None else self.exclude
        hit = all(_equal(combination.get(axis), value) for axis, value in (table or {}).items())
        return hit if self.include is not None else not hit


def flattened(table: Raw) -> Raw:
    """Nested tables by paths; a stage written as a table has its name under ``name``."""
    found: Raw = {}
    for key, value in table.items():
        if isinstance(value, dict):
            inner = flattened(value)
            if "name" in inner:
                found[key] = inner.pop("name")
            found |= {f"{key}.{k}": v for k, v in inner.items()}
        else:
            found[key] = value
    return found


def _equal(have: Any, wanted: Any) -> bool:
    return have == wanted or (isinstance(wanted, list) and have in wanted)


class Overridable(Strict):
    """What a profile may override."""

    description: str = ""
    reference: Name = "baseline"
    references: dict[str, Name] = {}
    accuracy: dict[str, Annotated[float, Field(gt=0, lt=1)]] = {}
    compare: list[Annotated[list[Name], Field(min_length=2, max_length=2)]] = []
    axes: dict[str, list[Any]] = {}
    zip: dict[str, list[Any]] = {}
    constraints: list[Constraint] = []
    systems: dict[str, Raw] = {}


class Profile(Overridable):
    """A named size of the same experiment."""

    measure: Raw = {}


class Experiment(Overridable):
    """One complete definition. ``profiles`` is empty once it is resolved."""

    schema_version: Literal[2]
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.+~@-]*$")]  # names a folder
    title: str = ""
    figures: list[Name] = ["breakdown"]
    sources: list[str] = []
    default_profile: str = ""
    measure: Measure = Measure()
    profiles: dict[str, Profile] = {}

    @model_validator(mode="after")
    def _axes_make_sense(self) -> Experiment:
        for axis, values in [*self.axes.items(), *self.zip.items()]:
            _check_axis(axis, values)
        if both := set(self.axes) & set(self.zip):
            raise ValueError(f"'{min(both)}' is both in [axes] and in [zip]")
        if len({len(v) for v in self.zip.values()}) > 1:
            raise ValueError("the lists in [zip] have different lengths")
        for constraint in self.constraints:
            for axis in constraint.include or constraint.exclude or {}:
                _check_axis(axis, [])
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

    def _plain(self, without_none: bool = False) -> Raw:
        # Without them a definition is, and hashes, as before there could be any.
        optional = ("compare", "references", "accuracy")
        unused: Any = {key: True for key in optional if not getattr(self, key)}
        if not self.measure.roofline:
            unused["measure"] = {"roofline"}
        return self.model_dump(mode="json", exclude=unused, exclude_none=without_none)

    def paths(self) -> list[str]:
        """Axes that vary a path of one system's recipe."""
        return [axis for axis in [*self.axes, *self.zip] if "." in axis]

    def axis(self, name: str) -> list[Any]:
        """Distinct values of an axis over the whole grid, in order."""
        values = self.zip.get(name, self.axes.get(name, []))
        return [v for i, v in enumerate(values) if v not in values[:i]]


def _check_axis(axis: str, values: list[Any]) -> None:
    system, dot, path = axis.partition(".")
    if system == "options":
        raise ValueError(f"axis '{axis}' is to name whose it is: '<system>.<path>'")
    if dot and system and path:
        return
    if axis not in AXES:
        raise ValueError(f"unknown axis '{axis}'; {names.suggestion(axis, AXES)}")
    adapter = TypeAdapter(AXES[axis])
    for value in values:
        try:
            adapter.validate_python(value)
        except ValidationError as error:
            raise ValueError(
                f"axis '{axis}' cannot be {value!r}:"
                f" {error.errors()[0]['msg'].removeprefix('Value error, ').lower()}"
            ) from None


def shipped() -> dict[str, Path]:
    """Names and files of the definitions that come with gnnbench."""
    return {p.stem: p for p in sorted(share_dir("experiments").glob("*.toml"))}


def load(name_or_path: str) -> Experiment:
    """Read a definition by shipped name or by path, with what it extends.

    Raises ``UsageError`` naming the file and the key at fault.
    """
    path = _find(name_or_path, Path())
    return _validate(_load_raw(path, ()), path.name)


def _find(name_or_path: str, beside: Path) -> Path:
    if name_or_path.endswith(".toml") or "/" in name_or_path:
        path = beside / name_or_path
        if not path.is_file():
            raise UsageError(f"there is no definition '{name_or_path}'")
        return path
    known = shipped()
    names.check("experiment", name_or_path, known)
    return known[name_or_path]


def _load_raw(path: Path, seen: tuple[Path, ...]) -> Raw:
    if path.resolve() in seen:
        raise UsageError(f"'{path.name}' extends itself through 'extends'")
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {(error.strerror or '').lower()}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"'{path.name}' is not TOML: {error}") from None
    if "schema_version" not in raw:
        raise UsageError(f"'{path.name}' says no schema_version; add 'schema_version = 2'")
    if raw["schema_version"] == 1:
        raise UsageError(
            f"'{path.name}' is of schema_version 1: name whose an option is ('baseline.sampler'),"
            " write until = [\"sample\"] for the model 'none', and schema_version = 2"
        )
    raw = with_paths(raw)
    parent = raw.pop("extends", None)
    raw.setdefault("name", path.stem)
    if parent is None:
        return raw
    if not isinstance(parent, str):
        raise UsageError(f"'extends' in '{path.name}' must be a name or a path")
    return merge(_load_raw(_find(parent, path.parent), (*seen, path.resolve())), raw)


def with_paths(raw: Raw) -> Raw:
    """A partial definition whose axes and systems' settings are written by paths."""
    raw = dict(raw)
    for table in ("axes", "zip"):
        if isinstance(raw.get(table), dict):
            raw[table] = flattened(raw[table])
    for table, inner in (("systems", flattened), ("profiles", with_paths)):
        if isinstance(raw.get(table), dict):
            raw[table] = {
                name: inner(value) if isinstance(value, dict) else value
                for name, value in raw[table].items()
            }
    return raw


def merge(base: Raw, over: Raw) -> Raw:
    """``base`` with ``over`` laid on it: tables merged, anything else replaced."""
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        result[key] = (
            merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
        )
    return result


def lay_axes(raw: Raw, over: Raw) -> Raw:
    """``merge`` in which an axis that moves between [axes] and [zip] leaves its old place."""
    raw = dict(raw)
    for here, there in (("axes", "zip"), ("zip", "axes")):
        raw[there] = {k: v for k, v in raw.get(there, {}).items() if k not in over.get(here, {})}
    return merge(raw, over)


def _validate(raw: Raw, file: str) -> Experiment:
    try:
        experiment = Experiment.model_validate(raw)
        for name in experiment.profiles:  # a profile that cannot be applied is an error now
            Experiment.model_validate(_with_profile(raw, name))
        return experiment
    except ValidationError as error:
        raise UsageError(f"'{file}': {_sentence(error)}") from None


def _with_profile(raw: Raw, profile: str) -> Raw:
    raw = dict(raw)
    over = dict(raw.pop("profiles", {}).get(profile, {}))
    raw.pop("default_profile", None)
    constraints = raw.get("constraints", []) + over.pop("constraints", [])
    return {**lay_axes(raw, over), "constraints": constraints}


KEYS = sorted(
    {"extends", *AXES}
    | set(Experiment.model_fields)
    | set(Measure.model_fields)
    | set(Constraint.model_fields)
)


def _sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if {*first["loc"]} & {"min_rounds", "max_rounds"}:
        return f"'{where}' is gone: 'pairs' (of fresh processes, [5, 10]) and 'rounds' (of a pair)"
    if first["type"] == "extra_forbidden":
        return f"unknown key '{where}'; {names.suggestion(str(first['loc'][-1]), KEYS)}"
    message = first["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    return f"{where}: {message}" if first["type"] != "value_error" and where else message


def resolve(experiment: Experiment, profile: str = "", over: Raw | None = None) -> Experiment:
    """Apply a profile (the default one for ``""``) and overrides; the result has no profiles.

    ``over`` is a partial definition, as the command line makes it. ``device = "auto"`` becomes
    ``cuda`` where there are a GPU, a torch for it and our CUDA library, else ``cpu``.
    """
    chosen = profile or experiment.default_profile
    if chosen:
        names.check("profile", chosen, experiment.profiles)
    raw = _with_profile(experiment.model_dump(exclude_none=True, exclude_unset=True), chosen)
    raw = lay_axes(raw, over or {})
    for place in ("axes", "zip"):
        if "auto" in raw[place].get("device", []):
            devices = [_auto_device() if d == "auto" else d for d in raw[place]["device"]]
            raw[place]["device"] = list(dict.fromkeys(devices)) if place == "axes" else devices
    try:
        resolved = Experiment.model_validate(raw)
    except ValidationError as error:
        raise UsageError(_sentence(error)) from None
    for axis in REQUIRED:
        if not resolved.axis(axis):
            raise UsageError(f"'{resolved.name}' has no value for the axis '{axis}'")
    return resolved


def _auto_device() -> str:
    from gnnbench.measure import machine

    if not machine.gpus():
        return "cpu"
    from gnnbench.ops.missing import native_missing

    return "cpu" if native_missing("cuda") else "cuda"
