"""What may be set of a stage, sampler or system: default, help and legal values in one place."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from gnnbench.core.cell import settings
from gnnbench.core.errors import UsageError


@dataclass(frozen=True)
class Interval:
    """Numbers from ``low`` to ``high``, both included, or one of ``words``."""

    low: float
    high: float
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Option:
    """One option: its default, a line of help and what it may be (None: anything).

    A number of an interval is a float, however it was typed. ``stages``: the choices of one that is
    a stage, by their names; such a value may be a name, a mapping of ``name`` and fields, or made.
    ``words``: what it may be where another than ``check`` looks. ``added``: results are older than
    the option, so recipes leave it out at its default.
    """

    name: str
    default: Any
    help: str
    choices: Collection[Any] | Interval | None = None
    stages: Mapping[str, Callable[..., Any]] | None = None
    words: str = ""
    added: bool = False

    def check(self, owner: str, value: Any) -> Any:
        """``value`` where it is legal. Raises ``UsageError``; ``true`` is not 1."""
        if self.choices is None:
            return value
        if self.stages is not None and not isinstance(value, str):
            if isinstance(value, Mapping) and value.get("name") in self.stages:
                return self.stages[value["name"]](**settings(value))
            if type(value) in self.stages.values():
                return value
        elif isinstance(self.choices, Interval):
            number = type(value) in (int, float)
            if number and self.choices.low <= value <= self.choices.high:
                return float(value)
            if isinstance(value, str) and value in self.choices.words:
                return value
        elif self.stages is not None and value in self.stages:
            return self.stages[value]()
        elif any(type(value) is type(c) and value == c for c in self.choices):
            return value
        raise UsageError(f"{owner}.{self.name} cannot be {plain_text(value)}; it is {self.legal}")

    @property
    def legal(self) -> str:
        """The legal values in words."""
        if self.choices is None:
            return self.words or "anything"
        if isinstance(self.choices, Interval):
            number = f"a number from {self.choices.low:g} to {self.choices.high:g}"
            return " or ".join([number, *self.choices.words])
        if isinstance(self.choices, range):
            return f"{self.choices[0]} to {self.choices[-1]}"
        return listed(self.choices)


def listed(values: Collection[Any]) -> str:
    """Values in words: ``a, b or c``."""
    shown = [plain_text(value) for value in values]
    return " or ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))


def plain_text(value: Any) -> str:
    """A value as it is typed: ``true``, ``5``, ``fused-map``."""
    return value if isinstance(value, str) else json.dumps(value, default=repr)
