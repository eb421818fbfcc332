"""JSON that the processes of a trial write, and what a run of emulated machines records of it."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Setting(TypedDict):
    """What identifies a trial of a run; part of every line of ``samples.jsonl``."""

    life: int
    program: str
    machines: int
    rate_gbit_s: float
    fanouts: list[int]
    batch_size: int
    hidden: int


class Measured(TypedDict):
    """An epoch as one rank measured it. The columns of ``machines.csv`` describe the values.

    ``edges`` and ``nodes`` are counted by batch; ``losses`` are those of all ranks, by step.
    """

    rank: int
    wall_s: float
    sample_s: float
    features_s: float
    steps: int
    seeds: int
    edges: list[int]
    nodes: list[int]
    losses: list[float]
    rounds: int
    reduces: int
    link_sent_bytes: int
    link_received_bytes: int
    size_calls: NotRequired[int]  # these are not known of DistDGL
    sample_bytes: NotRequired[int]
    features_bytes: NotRequired[int]
    size_bytes: NotRequired[int]
    reduced_bytes: NotRequired[int]


class EpochReport(Measured):
    """A rank's report of one epoch; ``place`` is the epoch's position in its trial."""

    place: int
    system: str
    epoch: int


class SampleLine(Setting, EpochReport):
    """A line of ``samples.jsonl``."""

    first: bool
