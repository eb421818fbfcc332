"""What the plan asks of other environments: their systems, settings, and what can run there."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gnnbench.core.cell import Cell, Until
from gnnbench.core.errors import GnnbenchError, MissingError
from gnnbench.harness import environment
from gnnbench.harness.available import Availability
from gnnbench.harness.failures import Failure, last_line
from gnnbench.harness.interpreter import HERE, Environments, parse
from gnnbench.harness.process import WorkerFailed, WorkerProcess
from gnnbench.harness.protocol import ASK
from gnnbench.systems.runtime.find import Resolved

ANSWER_S = 300.0  # a cold import of a framework takes a minute


@dataclass
class There:
    """One other environment while a plan is made; ``MissingError`` where its worker fails."""

    name: str
    worker: WorkerProcess
    systems: Collection[str] = ()

    def __post_init__(self) -> None:
        self._known: dict[str, Any] = {}

    def ask(self, about: str, **arguments: Any) -> Any:
        """An answer of ``gnnbench.harness.remote_answers``; the same question is asked once."""
        key = json.dumps([about, arguments], sort_keys=True)
        if key not in self._known:
            try:
                self._known[key] = self.worker.call(ASK, about=about, arguments=arguments)
            except WorkerFailed as failed:
                raise MissingError(f"environment '{self.name}': {self._reason(failed)}") from None
        return self._known[key]["answer"]

    def _reason(self, failed: WorkerFailed) -> str:
        """Why it failed; a log that is about to be deleted is quoted, not named."""
        reason, named, _ = failed.failure.reason.partition("; see logs/")
        if not named or self.worker.alive:
            return reason
        said = last_line(self.worker.log)
        words = f", its last line '{said}'" if said else " without a word"
        return (
            f"{reason}{words}; look at what its Python does as it starts (sitecustomize, .pth"
            " files) and as it imports numpy, torch and the packages that bring systems"
        )

    def resolve(self, name: str, given: Mapping[str, Any], device: str, until: Until) -> Resolved:
        """What a cell holds of a system's settings there."""
        asked = {"name": name, "given": dict(given), "device": device, "until": until.word}
        return Resolved(**self.ask("resolved", **asked))

    def state(self, cell: Cell) -> Availability:
        """Whether a cell can run there; nothing stands in for one that cannot."""
        failure = self.ask("available", cell=asdict(cell))["failure"]
        return Availability(None if failure is None else Failure(**failure))


@dataclass(frozen=True)
class Elsewhere:
    """All other environments of a run while its plan is made."""

    environments: Environments
    there: Mapping[str, There]

    @property
    def systems(self) -> set[str]:
        """Names of all systems that any of them has."""
        return {name for other in self.there.values() for name in other.systems}

    def known_paths(self, name: str, given: Mapping[str, Any]) -> Collection[str]:
        """What may be set of a system: asked here, else of the first environment that has it."""
        try:
            return environment.known_paths(name, given)
        except GnnbenchError:
            for other in self.there.values():
                if name in other.systems:
                    found: list[str] = other.ask("options", name=name, given=dict(given))
                    return found
            raise

    def notes(self) -> list[str]:
        """What the user should know of the environments."""
        return [
            f"all batch orders are drawn by numpy, because of environment '{name}':"
            f" {facts['native']}"
            for name, facts in self.environments.facts.items()
            if facts["native"]
        ]


NOWHERE = Elsewhere(HERE, {})


@contextmanager
def elsewhere(texts: Iterable[str]) -> Iterator[Elsewhere]:
    """The environments that ``NAME=PATH`` name, their workers ready to answer.

    Raises ``UsageError`` and ``MissingError`` as ``gnnbench.harness.interpreter.parse``.
    """
    others = parse(texts)
    facts: dict[str, dict[str, Any]] = {}
    found: dict[str, There] = {}
    with ExitStack() as stack:
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name in others:
            cell = Cell("", "", "", "", env=name)
            worker = WorkerProcess(cell, logs / name, ANSWER_S, environments=Environments(others))
            found[name] = There(name, stack.enter_context(worker))
        for name, other in found.items():
            told = other.ask("describe")
            other.systems = told.pop("systems")
            facts[name] = told
        yield Elsewhere(Environments(others, facts), found)
