"""Base class of a recipe's stages: a frozen value with a name, whose fields are its options."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, ClassVar, TypeVar

from gnnbench.core import names
from gnnbench.core.cell import ADDED, IMPLEMENTATION
from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.core.missing import Missing
from gnnbench.core.option import Interval, Option

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11: workers run on 3.10 too

HELP, CHOICES, STAGES, WORDS = "help", "choices", "stages", "words"


T = TypeVar("T")


def option(
    default: T,
    help: str,
    choices: Collection[object] | Interval | None = None,
    words: str = "",
    added: bool = False,
) -> T:
    """Declare a field of a spec; ``choices`` are its legal values, or ``words`` describes them.

    ``added``: the stage had results before it had this field, so recipes (and cell ids) omit it at
    its default.
    """
    metadata = {HELP: help, CHOICES: choices, WORDS: words, **(ADDED if added else {})}
    return field(default=default, metadata=metadata)


def stage_option(default: str, help: str, stages: Mapping[str, type[Spec]]) -> str:
    """Declare a field that is itself a stage, one of ``stages`` by name.

    ``default`` stands for the stage that ``resolved`` chooses.
    """
    metadata = {HELP: help, CHOICES: (default, *stages), STAGES: stages}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Spec:
    """One stage of a recipe. Values are checked when the object is created.

    ``kind`` is the recipe's field (``sampler`` ...). ``-o SYSTEM.KIND=NAME`` sets ``name``,
    ``-o SYSTEM.KIND.FIELD=VALUE`` sets a field. A field may itself be a stage, with one more dot in
    the path. A subclass builds it.

    ``implementation`` counts the versions of what the stage does. Raise it when its work changes:
    results of both versions then belong to different cells. Faster code for equal work keeps it.
    """

    kind: ClassVar[str]
    name: ClassVar[str]
    summary: ClassVar[str] = ""
    implementation: ClassVar[int] = 1
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")  # of the cells that it can serve
    _known_options: ClassVar[dict[str, Option]]

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
        """Arrays of the graph that the stage reads from host memory for a cell on ``device``.

        A run keeps them once in shared memory, so that trials do not copy them.
        """
        return ()

    def resolved(self, device: str) -> Self:
        """Copy with all defaults filled in. Raises ``UnsupportedError`` for a device it lacks."""
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
        known: dict[str, Option] | None = cls.__dict__.get("_known_options")
        if known is None:  # made once for a class: plans ask hundreds of thousands of times
            known = {
                f.name: Option(
                    f.name, f.default, f.metadata.get(HELP, ""), f.metadata.get(CHOICES),
                    f.metadata.get(STAGES), f.metadata.get(WORDS, ""),
                )
                for f in fields(cls)
                if f.init and f.default is not dataclasses.MISSING
            }  # fmt: skip
            cls._known_options = known
        return dict(known)

    def settings(self) -> dict[str, Option]:
        """Options that ``changed`` may set: fields, and ``FIELD.NAME`` of nested stages."""
        options: dict[str, Option] = {}
        for name, known in self.options().items():
            options[name] = known
            inner = getattr(self, name)
            if isinstance(inner, Spec):
                options |= {f"{name}.{path}": o for path, o in inner.settings().items()}
        return options

    def changed(self, name: str, value: object) -> Self:
        """Copy with another value of a field or of a nested one. Raises ``UsageError``."""
        known = self.settings()
        if name not in known:
            hint = names.suggestion(name, known)
            raise UsageError(f"{self.kind} '{self.name}' has no setting '{name}'; {hint}")
        name, dot, path = name.partition(".")
        if dot:
            value = getattr(self, name).changed(path, value)
        return replace(self, **{name: value})

    def plain(self) -> dict[str, object]:
        """Name and fields as plain values; a nested stage without fields becomes its name.

        An implementation of 1 is left out, and so is a field at its default that was added later.
        """
        values: dict[str, object] = {"name": self.name}
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
