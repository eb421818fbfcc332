"""What every stage of a recipe is: a frozen value with a name, whose fields are its options."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

from gnnbench.core import names
from gnnbench.core.cell import ADDED, IMPLEMENTATION
from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.core.missing import Missing
from gnnbench.core.option import Interval, Option

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11: workers run on 3.10 too

HELP, CHOICES, STAGES, WORDS = "help", "choices", "stages", "words"


def option(
    default: Any,
    help: str,
    choices: Collection[Any] | Interval | None = None,
    words: str = "",
    added: bool = False,
) -> Any:
    """A field of a spec; ``choices`` are its legal values, ``words`` describes them otherwise.

    ``added``: the stage had results before it had this field. Recipes, and so ids, leave it out at
    its default.
    """
    metadata = {HELP: help, CHOICES: choices, WORDS: words, **(ADDED if added else {})}
    return field(default=default, metadata=metadata)


def stage_option(default: str, help: str, stages: Mapping[str, type[Spec]]) -> Any:
    """A field that is a stage itself, one of ``stages`` by their names.

    ``default`` is the word for one that ``resolved`` puts in.
    """
    metadata = {HELP: help, CHOICES: (default, *stages), STAGES: stages}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Spec:
    """One stage as a recipe names it. Values are checked when the object is made.

    ``kind`` is the recipe's field (``sampler`` ...); ``name`` is what ``-o SYSTEM.KIND=NAME`` says;
    the fields are what ``-o SYSTEM.KIND.FIELD=VALUE`` sets. A field may be a stage in its turn, of
    which the same holds one dot further on. A subclass says how it is built.

    ``implementation`` counts the versions of what the stage does. Raise it when its work changes:
    results of both versions then belong to different cells. Faster code for equal work keeps it.
    """

    kind: ClassVar[str]
    name: ClassVar[str]
    summary: ClassVar[str] = ""
    implementation: ClassVar[int] = 1
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")  # of the cells that it can serve

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if type(cls.implementation) is not int or cls.implementation < 1:
            raise TypeError(
                f"{cls.__name__}.implementation must be a whole number from 1, it is"
                f" {cls.implementation!r}"
            )

    def missing(self, device: str) -> Missing | None:
        """None where the stage can run on this machine's ``device``; must be cheap."""
        return None

    def shared(self, device: str) -> tuple[str, ...]:
        """Arrays of the graph that the stage of a cell on ``device`` reads in the host's memory and
        that every life of a worker would otherwise copy: a run holds them once for all."""
        return ()

    def resolved(self, device: str) -> Self:
        """The same with every default put in. Raises ``UnsupportedError``."""
        if device not in self.devices:
            raise UnsupportedError(
                f"{self.kind} '{self.name}' does not run on {device}; it does on:"
                f" {', '.join(self.devices)}"
            )
        return self

    def __post_init__(self) -> None:
        if not isinstance(getattr(self, "name", None), str) or not self.name:
            raise UsageError(
                f"the class {type(self).__name__} must have a 'name', a text that is not empty"
            )
        for known in self.options().values():
            value = known.check(f"{self.kind} '{self.name}'", getattr(self, known.name))
            object.__setattr__(self, known.name, value)

    @classmethod
    def options(cls) -> dict[str, Option]:
        """The spec's fields by name."""
        return {
            f.name: Option(
                f.name, f.default, f.metadata.get(HELP, ""), f.metadata.get(CHOICES),
                f.metadata.get(STAGES), f.metadata.get(WORDS, ""),
            )
            for f in fields(cls)
            if f.init and f.default is not dataclasses.MISSING
        }  # fmt: skip

    def settings(self) -> dict[str, Option]:
        """What ``changed`` may set: the fields, and by ``FIELD.NAME`` those of fields that are
        stages."""
        options: dict[str, Option] = {}
        for name, known in self.options().items():
            options[name] = known
            inner = getattr(self, name)
            if isinstance(inner, Spec):
                options |= {f"{name}.{path}": o for path, o in inner.settings().items()}
        return options

    def changed(self, name: str, value: Any) -> Self:
        """The same with another value of one field, or of a field's. Raises ``UsageError``."""
        known = self.settings()
        if name not in known:
            hint = names.suggestion(name, known)
            raise UsageError(f"{self.kind} '{self.name}' has no setting '{name}'; {hint}")
        name, dot, path = name.partition(".")
        if dot:
            value = getattr(self, name).changed(path, value)
        return replace(self, **{name: value})

    def plain(self) -> dict[str, Any]:
        """Name and fields as plain values; of a stage without fields of its own the name.

        An implementation of 1 is left out, and so is a field at its default that was added later.
        """
        values: dict[str, Any] = {"name": self.name}
        if self.implementation != 1:
            values[IMPLEMENTATION] = self.implementation
        added = {f.name: f.default for f in fields(self) if ADDED.items() <= f.metadata.items()}
        for name in self.options():
            value = getattr(self, name)
            if isinstance(value, Spec):
                plain = value.plain()
                value = plain if value.options() or IMPLEMENTATION in plain else value.name
            if name not in added or value != added[name]:
                values[name] = value
        return values
