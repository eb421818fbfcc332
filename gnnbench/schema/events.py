"""Events of a run's journal: one JSON object a line of ``events.jsonl``, named by ``event``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar

from gnnbench.schema.reports import CellReport, Profile
from gnnbench.schema.samples import EpochSample

T = TypeVar("T")


class BusyEvent(TypedDict):
    """CPU use of other programs during a trial (see ``BusyRecord`` of ``run.json``).

    ``foreign_s`` and ``foreign_cpu_s``: length of the disturbed epochs, and CPU time of others in
    them; ``seconds`` and ``cpu_s``: for how long programs were observed, and their CPU time by
    name (s).
    """

    foreign_s: float
    foreign_cpu_s: float
    seconds: float
    cpu_s: dict[str, float]


class TrialSummary(TypedDict, total=False):
    """The end of a trial of a pair. ``life`` is its number, ``start_s`` and ``seconds`` its times.

    ``doubt``: why it is unreliable, or ""; ``void``: it is in no statistic; ``suspects``: kinds of
    timing anomalies by cell; ``excess``: how its training differed from others.
    """

    life: int
    start_s: float
    seconds: float
    doubt: str
    void: bool
    busy: BusyEvent
    excess: str
    suspects: dict[str, str]


class TrialEvent(TrialSummary, total=False):
    """A trial has ended."""

    event: Literal["life"]
    pair: str


class RoundsEvent(TypedDict):
    """Number of rounds of each trial of a pair."""

    event: Literal["rounds"]
    pair: str
    rounds: int


class ReportEvent(TypedDict):
    """Facts, set-up and gate report of a cell."""

    event: Literal["report"]
    cell: str
    report: CellReport


class ProfileEvent(TypedDict):
    """Stages, kernels and curves of a cell, or an error."""

    event: Literal["profile"]
    cell: str
    profile: Profile


class LinkCopy(TypedDict):
    """A measured copy over a link: its bytes and seconds."""

    bytes: int
    seconds: float


class ProbedEvent(TypedDict):
    """Phases of a worker run one by one: minimum and median of the seconds per batch, by phase."""

    event: Literal["probed"]
    cell: str
    worker: int
    alone: dict[str, float]
    median: dict[str, float]
    cores: int
    copied: LinkCopy | None


class RetrainedEvent(TypedDict):
    """Further trainings of a cell, epoch by epoch."""

    event: Literal["retrained"]
    cell: str
    trainings: list[list[EpochSample]]


class FailedEvent(TypedDict):
    """Failure of a cell: a status of ``STATUSES`` and one sentence."""

    event: Literal["failed"]
    cell: str
    status: str
    reason: str


class DoneEvent(TypedDict):
    """A pair is measured; ``why`` measuring ended."""

    event: Literal["done"]
    pair: str
    why: str


class RetryEvent(TypedDict):
    """Failures of these cells and measurements of these pairs do not count any more."""

    event: Literal["retry"]
    cells: list[str]
    pairs: list[str]


Event = (
    TrialEvent | RoundsEvent | ReportEvent | ProfileEvent | ProbedEvent
    | RetrainedEvent | FailedEvent | DoneEvent | RetryEvent
)  # fmt: skip


def parse_event(line: Mapping[str, Any]) -> Event:
    """An event from its JSON object, with typed rows; other events are left as they are."""
    event: Any = dict(line)
    if event["event"] == "profile":
        event["profile"] = Profile.parse(line["profile"])
    elif event["event"] == "retrained":
        event["trainings"] = [[*map(EpochSample.parse, epochs)] for epochs in line["trainings"]]
    return event


def read_journal(path: Path, record: type[T]) -> list[T]:
    """All complete records of a journal; none if the file does not exist.

    ``record`` is the type of its lines. They are not validated: journals have tens of megabytes.
    """
    del record
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")[:-1]
    return [json.loads(line) for line in lines]


def read_events(path: Path) -> list[Event]:
    """All events of a journal, in order."""
    return [parse_event(line) for line in read_journal(path, dict)]


def read_samples(path: Path) -> list[EpochSample]:
    """All samples of a journal, in order."""
    return [EpochSample.parse(line) for line in read_journal(path, dict)]


def read_trials(path: Path) -> list[TrialEvent]:
    """The ends of trials in a journal of events."""
    return [event for event in read_journal(path, TrialEvent) if event["event"] == "life"]
