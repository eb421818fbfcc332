"""Queries of the plan to other environments: their systems, settings, and what can run there."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from gnnbench.core.cell import Cell, Until
from gnnbench.core.errors import GnnbenchError, MissingError
from gnnbench.harness import environment
from gnnbench.harness.available import Availability
from gnnbench.harness.failures import last_line
from gnnbench.harness.interpreter import HERE, Environments, parse
from gnnbench.harness.plugin_process import ANSWER_S, checked
from gnnbench.harness.process import WorkerFailed, WorkerProcess
from gnnbench.harness.protocol import (
    ASK,
    DescribeAnswer,
    EnvironmentFacts,
    PlanAnswer,
)
from gnnbench.systems.runtime.find import Resolved

A = TypeVar("A")


@dataclass
class RemoteEnvironment:
    """Another environment while a plan is made. Raises ``MissingError`` if its worker fails."""

    name: str
    worker: WorkerProcess
    systems: Collection[str] = ()

    def __post_init__(self) -> None:
        self._answers: dict[str, PlanAnswer] = {}

    def ask(self, answer: type[A], about: str, **arguments: object) -> A:
        """Return an answer of ``gnnbench.harness.remote_answers``; each query is sent once."""
        key = json.dumps([about, arguments], sort_keys=True)
        if key not in self._answers:
            try:
                self._answers[key] = self.worker.call(ASK, about=about, arguments=arguments)
            except WorkerFailed as failed:
                raise MissingError(f"environment '{self.name}': {self._reason(failed)}") from None
        try:
            return checked(self._answers[key], answer)
        except GnnbenchError as error:
            raise MissingError(f"environment '{self.name}': {error}") from None

    def _reason(self, failed: WorkerFailed) -> str:
        """Return why the worker failed; quotes its log, which is deleted."""
        reason, named, _ = failed.failure.reason.partition("; see logs/")
        if not named or self.worker.alive:
            return reason
        line = last_line(self.worker.log)
        output = f", its last line '{line}'" if line else " without a word"
        return (
            f"{reason}{output}; look at what its Python does as it starts (sitecustomize, .pth"
            " files) and as it imports numpy, torch and the packages that bring systems"
        )

    def resolve(
        self, name: str, given: Mapping[str, object], device: str, until: Until
    ) -> Resolved:
        """Return the resolved settings of a system in that environment."""
        return self.ask(
            Resolved, "resolved", name=name, given=dict(given), device=device, until=until.word
        )

    def state(self, cell: Cell) -> Availability:
        """Return whether a cell can run in that environment; no other system replaces one that
        cannot.
        """
        return Availability(self.ask(Availability, "state", cell=asdict(cell)).failure)


@dataclass(frozen=True)
class RemoteEnvironments:
    """All other environments of a run while its plan is made."""

    environments: Environments
    by_name: Mapping[str, RemoteEnvironment]

    @property
    def systems(self) -> set[str]:
        """Return the names of all systems in any of the environments."""
        return {name for other in self.by_name.values() for name in other.systems}

    def known_paths(self, name: str, given: Mapping[str, object]) -> Mapping[str, Collection[str]]:
        """Return the options of a system as ``environment.known_paths``: from this environment,
        else from the first that has it.
        """
        try:
            return environment.known_paths(name, given)
        except GnnbenchError:
            for other in self.by_name.values():
                if name in other.systems:
                    return other.ask(dict[str, list[str]], "options", name=name, given=dict(given))
            raise

    def notes(self) -> list[str]:
        """Return messages about the environments for the user."""
        return [
            f"all batch orders are drawn by numpy, because of environment '{name}':"
            f" {facts['native']}"
            for name, facts in self.environments.facts.items()
            if facts["native"]
        ]


NO_REMOTE_ENVIRONMENTS = RemoteEnvironments(HERE, {})


@contextmanager
def open_environments(texts: Iterable[str]) -> Iterator[RemoteEnvironments]:
    """Start a worker in each environment of ``NAME=PATH``.

    Raises ``UsageError`` and ``MissingError`` as ``gnnbench.harness.interpreter.parse``.
    """
    others = parse(texts)
    facts: dict[str, EnvironmentFacts] = {}
    by_name: dict[str, RemoteEnvironment] = {}
    with ExitStack() as stack:
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name in others:
            cell = Cell("", "", "", "", env=name)
            worker = WorkerProcess(cell, logs / name, ANSWER_S, environments=Environments(others))
            by_name[name] = RemoteEnvironment(name, stack.enter_context(worker))
        for name, other in by_name.items():
            answer = other.ask(DescribeAnswer, "describe")
            other.systems = answer.systems
            facts[name] = {"versions": answer.versions, "native": answer.native}
        yield RemoteEnvironments(Environments(others, facts), by_name)
