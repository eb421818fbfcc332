"""Everything that may be set, as a document: keys of a definition, axes, options of stages.

``docs/reference.md`` is printed from here (``python -m gnnbench.config.manual``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import TypeAdapter

from gnnbench.config.axes import AXES
from gnnbench.config.experiment import Experiment, MeasureLimits, Overridable
from gnnbench.config.messages import legal
from gnnbench.core import registry
from gnnbench.core.option import Option, plain_text
from gnnbench.models.kinds import MODELS
from gnnbench.pipelines.find import stage
from gnnbench.systems.runtime.find import find
from gnnbench.systems.runtime.recipe import DTYPE, NEEDED, Recipe

HEAD = """\
# Keys, axes and options

Printed by `python -m gnnbench.config.manual`; do not edit by hand.

A definition (TOML) sets all of these; `-o KEY=VALUE` sets an axis, a key of `[measure]`,
`reference`, or a field of a recipe for one run. Several values in a list are all
run: `-o batch_size=[64,512]`, `-o 'fanouts=[[10,5],[15,10,5]]'`,
`-o 'baseline.sampler=[fused-map,fastsample]'`. A key is given once. `gnnbench list EXPERIMENT` has
what one experiment makes of them.

```toml
# mine.toml: gnnbench run mine
schema_version = 2
extends = "breakdown"
[axes]
dataset = ["products~twin@0.01"]
fanouts = [[15, 10, 5], [10, 10]]
"baseline.sampler" = ["hop-by-hop", "fused-map"]
```

What extends another has its default profile too, which gives way to what it says itself: the
dataset above is run, with whatever else that profile sets. `default_profile = ""` takes the
definition as it stands; a profile that is named (`--profile smoke`) is meant as it stands.
"""


def markdown() -> str:
    """The document."""
    lines = [HEAD, "## Keys of a definition", ""]
    lines += _table(("key", "in a profile, too", "default", "meaning"), _keys())
    lines += ["", "## `[measure]`: limits", ""]
    lines += _table(("key", "value", "default", "meaning"), _limits())
    lines += ["", "## Axes: `[axes]`, `[zip]`, `[sweeps.NAME]`", ""]
    lines += _table(("axis", "value", "meaning"), axes())
    lines += ["", "`SYSTEM.PATH` is an axis as well: a stage or a field of one system's recipe."]
    lines += ["", "## Models", ""]
    lines += _table(("model", "published in"), _models())
    lines += ["", "## Systems", ""]
    lines += _table(("system", "what it is", "recipe"), _systems())
    lines += [
        "",
        f"In addition to the stages: `SYSTEM.{DTYPE.name}`, {DTYPE.help} ({DTYPE.legal}).",
    ]
    for kind in NEEDED:
        lines += ["", f"## `SYSTEM.{kind}=STAGE`", ""]
        lines += _table(("stage", "what it is"), _stages(kind))
        lines += ["", f"`SYSTEM.{kind}.FIELD=VALUE`:", ""]
        lines += _table(("field", "of", "value", "default", "meaning"), _fields(kind))
    return "\n".join(lines) + "\n"


def axes() -> Iterator[tuple[str, str, str]]:
    """Every axis: its name, what it may be, what it is."""
    for axis, known in AXES.items():
        schema = TypeAdapter(known).json_schema()
        yield f"`{axis}`", legal(schema), schema.get("description", "")


def _keys() -> Iterator[tuple[str, str, str, str]]:
    yield "`extends`", "", "", "shipped name or path of the definition that this one is laid on"
    shared = [*Overridable.model_fields, "measure"]
    for name in sorted(Experiment.model_fields, key=lambda name: name in shared):
        field = Experiment.model_fields[name]
        default = "" if field.is_required() or name == "measure" else _value(field.default)
        yield f"`{name}`", "yes" * (name in shared), default, field.description or ""


def _limits() -> Iterator[tuple[str, str, str, str]]:
    schema = MeasureLimits.model_json_schema()["properties"]
    for name, field in MeasureLimits.model_fields.items():
        yield f"`{name}`", legal(schema[name]), _value(field.default), field.description or ""


def _models() -> Iterator[tuple[str, str]]:
    for kind in MODELS.values():
        yield f"`{kind.name}`", kind.paper


def _systems() -> Iterator[tuple[str, str, str]]:
    for name in registry.OURS[registry.SYSTEM]:
        system = find(name)
        recipe = system.definition
        stages = recipe.stages() if isinstance(recipe, Recipe) and recipe.aggregate else {}
        stages_text = ", ".join(f"{kind}={spec.name}" for kind, spec in stages.items())
        yield f"`{name}`", system.summary, stages_text


def _stages(kind: str) -> Iterator[tuple[str, str]]:
    for name in registry.OURS[kind]:
        yield f"`{name}`", stage(kind, name).summary


def _fields(kind: str) -> Iterator[tuple[str, str, str, str, str]]:
    """Fields of a kind's stages; those that are alike once, with all whose they are."""
    owners: dict[tuple[str, str, str, str], list[str]] = {}
    for name in registry.OURS[kind]:
        for option in stage(kind, name).options().values():
            owners.setdefault(_option(option), []).append(name)
    for (field, value, default, meaning), names in owners.items():
        every = len(names) == len(registry.OURS[kind])
        yield f"`{field}`", "all" if every else ", ".join(names), value, default, meaning


def _option(option: Option) -> tuple[str, str, str, str]:
    return option.name, option.legal, _value(option.default), option.help


def _value(value: object) -> str:
    return f"`{plain_text(value)}`" if value not in ("", [], {}, None) else ""


def _table(names: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(names)} |"
    yield "|" + "---|" * len(names)
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


if __name__ == "__main__":
    print(markdown(), end="")
