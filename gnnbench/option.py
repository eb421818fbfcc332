"""What may be set of a stage, sampler or system: default, help and legal values in one place."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from gnnbench.errors import UsageError


@dataclass(frozen=True)
class Interval:
    """Numbers from ``low`` to ``high``, both included."""

    low: float
    high: float


@dataclass(frozen=True)
class Option:
    """One option: its default, a line of help and what it may be (None: anything).

    A number of an interval is a float, however it was typed.
    """

    name: str
    default: Any
    help: str
    choices: Collection[Any] | Interval | None = None

    def check(self, owner: str, value: Any) -> Any:
        """``value`` where it is legal. Raises ``UsageError``; ``true`` is not 1."""
        if self.choices is None:
            return value
        if isinstance(self.choices, Interval):
            number = type(value) in (int, float)
            if number and self.choices.low <= value <= self.choices.high:
                return float(value)
        elif any(type(value) is type(c) and value == c for c in self.choices):
            return value
        raise UsageError(f"{owner}.{self.name} cannot be {plain_text(value)}; it is {self.legal}")

    @property
    def legal(self) -> str:
        """The legal values in words."""
        if self.choices is None:
            return "anything"
        if isinstance(self.choices, Interval):
            return f"a number from {self.choices.low:g} to {self.choices.high:g}"
        if isinstance(self.choices, range):
            return f"{self.choices[0]} to {self.choices[-1]}"
        shown = [plain_text(c) for c in self.choices]
        return " or ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def plain_text(value: Any) -> str:
    """A value as it is typed: ``true``, ``5``, ``fused-map``."""
    return value if isinstance(value, str) else json.dumps(value, default=repr)
