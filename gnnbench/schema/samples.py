"""Measured epochs as the journal has them: lines of ``samples.jsonl``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from gnnbench.schema.measured import SampleRow
from gnnbench.schema.roofline import RooflineRecord

OF_GPU = {"sm_clock_mhz", "power_w", "temperature_c", "throttle"}
OF_TRAINING = ("epoch", "loss", "param_moved", "param_norm", "unique_nodes", "sampled_edges")
OF_EVALUATION = {"val_nodes", "val_accuracy", "test_nodes", "test_accuracy", "evaluate_s"}


class Count(NamedTuple):
    """A counted or measured number of a stage, by the location of the data."""

    stage: str
    name: str
    where: str
    value: float


def read_counts(rows: Iterable[Sequence[Any]]) -> list[Count]:
    """Counts from their rows of a report: (stage, name, where, value)."""
    return [Count(*row) for row in rows]


@dataclass(slots=True, kw_only=True, eq=False)
class EpochSample(SampleRow):
    """A measured epoch: the columns of ``samples.csv``, and what the checks need beyond them.

    ``param_moved`` is by layer. Times (s): of the audit; stopped by signals, suspended, taken by
    other virtual machines; run-queue delays of the harness, of the worker's main thread and of
    all its threads; and the worker's CPU time within ``parent_s``. They are 0 where an older
    journal lacks them. ``checked``: batches copied on average in a round that is only for this.
    """

    counts: Sequence[Count] = ()
    param_moved: Sequence[float] = ()
    roofline: Sequence[RooflineRecord] | None = None
    audit_s: float = 0.0
    stopped_s: float = 0.0
    suspended_s: float = 0.0
    stolen_s: float = 0.0
    runner_wait_s: float = 0.0
    worker_wait_s: float = 0.0
    threads_wait_s: float = 0.0
    work_cpu_s: float = 0.0
    checked: float = 0.0
    val_nodes: int | None = None
    test_nodes: int | None = None

    @classmethod
    def parse(cls, line: Mapping[str, Any]) -> EpochSample:
        """A sample from its JSON object; keys of other versions are ignored."""
        # Interned names make the call twice as fast as the names of the line.
        known = {name: line[name] for name in _NAMES if name in line}
        return cls(**{**known, "counts": read_counts(line.get("counts") or ())})

    def to_json(self, on_gpu: bool, evaluated: bool) -> dict[str, object]:
        """Its JSON object, without fields that were not measured."""
        left_out = (
            {"void"} | (set() if on_gpu else OF_GPU) | (set() if evaluated else OF_EVALUATION)
        )
        if self.roofline is None:
            left_out.add("roofline")
        return {name: getattr(self, name) for name in _NAMES if name not in left_out}

    def training_json(self) -> dict[str, object]:
        """Its JSON object as an epoch of a retraining."""
        return {name: getattr(self, name) for name in OF_TRAINING}

    def time_s(self, phase: str) -> float | None:
        """Busy time of a phase."""
        return getattr(self, f"{phase}_time_s")

    def alone_s(self, phase: str) -> float | None:
        """Time of a phase while no other is active."""
        return getattr(self, f"{phase}_alone_s")


_NAMES = tuple(f.name for f in dataclasses.fields(EpochSample))
