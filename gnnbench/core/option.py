"""Options of stages, samplers and systems: default, help text and legal values."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from gnnbench.core.cell import settings
from gnnbench.core.errors import UsageError

if TYPE_CHECKING:
    from gnnbench.core.stage import Spec


@dataclass(frozen=True)
class Interval:
    """Numbers from ``low`` to ``high`` inclusive, or one of ``words``."""

    low: float
    high: float
    words: tuple[str, ...] = ()


T = TypeVar("T")


@dataclass(frozen=True)
class Option(Generic[T]):
    """An option: default, a line of help and legal values (``choices``; None accepts any value).

    Numbers of an interval become floats. ``stages``: classes of a nested stage by name; its value
    is a name, a mapping of ``name`` and fields, or an instance. ``words``: description of the legal
    values where ``check`` does not know them. ``added``: the option is newer than the first
    results, so recipes omit it at its default.
    """

    name: str
    default: T
    help: str
    choices: Collection[object] | Interval | None = None
    stages: Mapping[str, type[Spec]] | None = None
    words: str = ""
    added: bool = False

    @property
    def choice_words(self) -> list[str]:
        """The words among the legal values."""
        if isinstance(self.choices, range) or not isinstance(self.choices, Collection):
            return []
        return [choice for choice in self.choices if isinstance(choice, str)]

    def check(self, owner: str, value: object) -> object:
        """Return a legal ``value``; ``true`` is not 1. Raises ``UsageError``."""
        if self.choices is None:
            return value
        if self.stages is not None and not isinstance(value, str):
            name = value.get("name") if isinstance(value, Mapping) else None
            if isinstance(value, Mapping) and isinstance(name, str) and name in self.stages:
                return self.stages[name](**settings(value))
            if type(value) in self.stages.values():
                return value
        elif isinstance(self.choices, Interval):
            if isinstance(value, int | float) and type(value) in (int, float):
                if self.choices.low <= value <= self.choices.high:
                    return float(value)
            elif isinstance(value, str) and value in self.choices.words:
                return value
        elif self.stages is not None and isinstance(value, str) and value in self.stages:
            return self.stages[value]()
        elif any(type(value) is type(c) and value == c for c in self.choices):
            return value
        raise UsageError(f"{owner}.{self.name} cannot be {plain_text(value)}; it is {self.legal}")

    @property
    def legal(self) -> str:
        """Description of the legal values."""
        if self.choices is None:
            return self.words or "anything"
        if isinstance(self.choices, Interval):
            number = f"a number from {self.choices.low:g} to {self.choices.high:g}"
            return " or ".join([number, *self.choices.words])
        if isinstance(self.choices, range):
            return f"{self.choices[0]} to {self.choices[-1]}"
        return listed(self.choices)


def listed(values: Collection[object]) -> str:
    """Values as text: ``a, b or c``."""
    shown = [plain_text(value) for value in values]
    return " or ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))


def plain_text(value: object) -> str:
    """A value as typed on the command line: ``true``, ``5``, ``fused-map``."""
    return value if isinstance(value, str) else json.dumps(value, default=repr)
