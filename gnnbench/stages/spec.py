"""What every stage of a recipe is: a frozen value with a name, whose fields are its options."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

from gnnbench import names
from gnnbench.errors import UnsupportedError, UsageError
from gnnbench.missing import Missing
from gnnbench.option import Interval, Option

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11: workers run on 3.10 too

HELP, CHOICES = "help", "choices"


def option(default: Any, help: str, choices: Collection[Any] | Interval | None = None) -> Any:
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
        for known in self.options().values():
            value = known.check(f"{self.kind} '{self.name}'", getattr(self, known.name))
            object.__setattr__(self, known.name, value)

    @classmethod
    def options(cls) -> dict[str, Option]:
        """The spec's fields by name."""
        return {
            f.name: Option(f.name, f.default, f.metadata.get(HELP, ""), f.metadata.get(CHOICES))
            for f in fields(cls)
            if f.init and f.default is not dataclasses.MISSING
        }

    def changed(self, name: str, value: Any) -> Self:
        """The same with another value of one field. Raises ``UsageError``."""
        if name not in self.options():
            known = names.suggestion(name, self.options())
            raise UsageError(f"{self.kind} '{self.name}' has no setting '{name}'; {known}")
        return replace(self, **{name: value})

    def plain(self) -> dict[str, Any]:
        """Name and fields as plain values."""
        return {"name": self.name} | {k: getattr(self, k) for k in self.options()}
