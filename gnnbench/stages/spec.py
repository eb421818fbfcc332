"""What every stage of a recipe is: a frozen value with a name, and settings told in one place."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

from gnnbench import names
from gnnbench.composition.missing import Missing
from gnnbench.errors import UnsupportedError, UsageError

HELP, CHOICES = "help", "choices"


@dataclass(frozen=True)
class Setting:
    """One field of a spec: its default, a line of help and what it may be (None: anything)."""

    name: str
    default: Any
    help: str
    choices: Collection[Any] | None = None

    def check(self, owner: str, value: Any) -> Any:
        """``value`` where it is legal. Raises ``UsageError``; ``true`` is not 1."""
        if self.choices is None:
            return value
        if any(type(value) is type(c) and value == c for c in self.choices):
            return value
        raise UsageError(f"{owner}.{self.name} cannot be {_shown(value)}; it is {self.legal}")

    @property
    def legal(self) -> str:
        """The legal values in words."""
        if self.choices is None:
            return "anything"
        if isinstance(self.choices, range):
            return f"{self.choices[0]} to {self.choices[-1]}"
        shown = [_shown(c) for c in self.choices]
        return " or ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=repr)


def setting(default: Any, help: str, choices: Collection[Any] | None = None) -> Any:
    """A field of a spec; ``choices`` are its legal values."""
    return field(default=default, metadata={HELP: help, CHOICES: choices})


@dataclass(frozen=True)
class Spec:
    """One stage as a recipe names it. Values are checked when the object is made.

    ``kind`` is the recipe's field (``sampler`` ...); ``name`` is what ``-o SYSTEM.KIND=NAME`` says;
    the fields are what ``-o SYSTEM.KIND.FIELD=VALUE`` sets. A subclass says how it is built.
    """

    kind: ClassVar[str]
    name: ClassVar[str]
    summary: ClassVar[str] = ""
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")  # of the cells that it can serve

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """None where the stage can run on this machine's ``device``; must be cheap."""
        return None

    def resolved(self, device: str) -> Self:
        """The same with every default put in. Raises ``UnsupportedError``."""
        if device not in self.devices:
            raise UnsupportedError(
                f"{self.kind} '{self.name}' does not run on {device}; it does on:"
                f" {', '.join(self.devices)}"
            )
        return self

    def __post_init__(self) -> None:
        for known in self.settings().values():
            known.check(f"{self.kind} '{self.name}'", getattr(self, known.name))

    @classmethod
    def settings(cls) -> dict[str, Setting]:
        """The spec's fields by name."""
        return {
            f.name: Setting(f.name, f.default, f.metadata.get(HELP, ""), f.metadata.get(CHOICES))
            for f in fields(cls)
            if f.init and f.default is not dataclasses.MISSING
        }

    def changed(self, name: str, value: Any) -> Self:
        """The same with another value of one field. Raises ``UsageError``."""
        if name not in self.settings():
            known = names.suggestion(name, self.settings())
            raise UsageError(f"{self.kind} '{self.name}' has no setting '{name}'; {known}")
        return replace(self, **{name: value})

    def plain(self) -> dict[str, Any]:
        """Name and fields as plain values."""
        return {"name": self.name} | {k: getattr(self, k) for k in self.settings()}
