"""Rows that a journal has already: samples, and stages, kernels and curves of profiling runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

from gnnbench.analysis.labels import labels
from gnnbench.schema import CurveRow, KernelRow, SampleRow, StageRow

if TYPE_CHECKING:
    from gnnbench.harness.journal import JournalState
    from gnnbench.harness.plan import Plan
    from gnnbench.schema.reports import Profile

RowT = TypeVar("RowT", StageRow, KernelRow, CurveRow)


def sample_rows(journal: JournalState) -> list[SampleRow]:
    """Rows of ``samples.csv`` in the order of their measurement."""
    return [dataclasses.replace(s, void=not journal.counts(s)) for s in journal.samples]


def stage_rows(plan: Plan, journal: JournalState) -> list[StageRow]:
    """Rows of ``stages.csv``."""
    return _profile_rows(plan, journal, lambda profile: profile.stages)


def kernel_rows(plan: Plan, journal: JournalState) -> list[KernelRow]:
    """Rows of ``kernels.csv``."""
    return _profile_rows(plan, journal, lambda profile: profile.kernels)


def curve_rows(plan: Plan, journal: JournalState) -> list[CurveRow]:
    """Rows of ``curves.csv``."""
    return _profile_rows(plan, journal, lambda profile: profile.curves)


def _profile_rows(
    plan: Plan, journal: JournalState, table: Callable[[Profile], Sequence[RowT]]
) -> list[RowT]:
    label_of = labels([asdict(c) for c in plan.cells]).of
    return [
        dataclasses.replace(row, id=cell.id, cell=label_of(asdict(cell)))
        for cell in plan.cells
        if cell.id in journal.profiles and cell.id not in journal.failures
        for row in table(journal.profiles[cell.id])
    ]
