"""Rows that a journal has already: samples, and stages, kernels and curves of profiling runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

from gnnbench.analysis.labels import labels
from gnnbench.schema import SAMPLES, CurveRow, KernelRow, Record, SampleRow, StageRow

if TYPE_CHECKING:
    from gnnbench.harness.journal import JournalState
    from gnnbench.harness.plan import Plan

RecordT = TypeVar("RecordT", bound=Record)


def sample_rows(journal: JournalState) -> list[SampleRow]:
    """Rows of ``samples.csv`` in the order of their measurement."""
    names = [c.name for c in SAMPLES if c.name != "void"]
    return [
        SampleRow(**{name: s[name] for name in names if name in s}, void=not journal.counts(s))
        for s in journal.samples
    ]


def stage_rows(plan: Plan, journal: JournalState) -> list[StageRow]:
    """Rows of ``stages.csv``."""
    return list(_profile_rows(plan, journal, "stages", StageRow))


def kernel_rows(plan: Plan, journal: JournalState) -> list[KernelRow]:
    """Rows of ``kernels.csv``."""
    return list(_profile_rows(plan, journal, "kernels", KernelRow))


def curve_rows(plan: Plan, journal: JournalState) -> list[CurveRow]:
    """Rows of ``curves.csv``."""
    return list(_profile_rows(plan, journal, "curves", CurveRow))


def _profile_rows(
    plan: Plan, journal: JournalState, kind: str, record: type[RecordT]
) -> Iterator[RecordT]:
    label_of = labels([asdict(c) for c in plan.cells]).of
    for cell in plan.cells:
        if cell.id not in journal.failures:
            for values in journal.profiles.get(cell.id, {}).get(kind, []):
                yield record(**{"id": cell.id, "cell": label_of(asdict(cell)), **values})
