"""Measures of several machines, from ``machines.csv``.

Rounds and losses are exact. Ratios of times have Student's interval over trials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from gnnbench.analysis import multi_machine
from gnnbench.analysis.multi_machine import Setting
from gnnbench.schema import CellRow, MachineRow
from gnnbench.statistics.estimates import NOTHING, Estimate
from gnnbench.statistics.stopping_rule import MIN_PAIRS

if TYPE_CHECKING:
    from gnnbench.reproduction.evidence import RunEvidence

COMMAND = "python -m gnnbench.contrib.emulated_network compare"


@dataclass(frozen=True)
class MultiMachineMeasure:
    """``number(setting, system, other)`` with an interval.

    ``needs_two``: whether it compares two systems. ``is_time``: whether it is a ratio of times.
    """

    number: Callable[[Setting, str, str], Estimate]
    needs_two: bool = False
    is_time: bool = False

    def estimates(
        self, evidence: RunEvidence, system: str, other: str, wanted: Mapping[str, object]
    ) -> Iterator[tuple[Estimate, str, tuple[CellRow, ...]]]:
        """Estimate, doubt and systems for each setting that has the values of ``wanted``."""
        rows = (row for row in evidence.run.machines if _matches(row, wanted))
        for setting in multi_machine.settings(rows):
            systems = [name for name in (system, other) if name]
            if not all(map(setting.of, systems)):
                continue
            estimate = self.number(setting, system, other)
            doubt = _doubt(setting, estimate) if self.is_time and estimate.n else ""
            yield estimate, doubt, tuple(_summary_row(setting, name) for name in systems)


def _matches(row: MachineRow, wanted: Mapping[str, object]) -> bool:
    return all(
        row.get(key) in value if isinstance(value, list) else row.get(key) == value
        for key, value in wanted.items()
    )


def _summary_row(setting: Setting, system: str) -> CellRow:
    """One row for all rows of a system in a setting; its id describes them."""
    label = f"{system} ({multi_machine.where(setting)}, fanouts {setting.fanouts})"
    return CellRow(id=label, dataset=setting.dataset, system=system)


def _doubt(setting: Setting, estimate: Estimate) -> str:
    if estimate.n < MIN_PAIRS:
        return f"fewer than {MIN_PAIRS} pairs of epochs in fresh processes"
    if share := setting.noisy_share():
        return f"other programs used the machine in {share:.0%} of the trials"
    return ""


def _counted(values: Iterable[float]) -> Estimate:
    """The largest of counted values; the ends are the smallest and the largest."""
    known = sorted(values)
    return Estimate(known[-1], known[0], known[-1], len(known)) if known else NOTHING


def _rounds_per_step(setting: Setting, system: str, other: str) -> Estimate:
    del other
    rows = setting.of(system)
    return _counted(row["rounds"] / row["steps"] for row in rows if row["rounds"] is not None)


def _time_ratio(column: str) -> Callable[[Setting, str, str], Estimate]:
    return lambda setting, system, other: setting.ratio(system, other, column)


def _loss_gap(setting: Setting, system: str, other: str) -> Estimate:
    del system, other
    gap = setting.loss_gap()
    return NOTHING if gap is None else _counted([gap])


MULTI_MACHINE_MEASURES: Mapping[str, MultiMachineMeasure] = MappingProxyType(
    {
        "machines_rounds": MultiMachineMeasure(_rounds_per_step),
        "machines_epoch": MultiMachineMeasure(_time_ratio("wall_s"), needs_two=True, is_time=True),
        "machines_sampling": MultiMachineMeasure(
            _time_ratio("sample_s"), needs_two=True, is_time=True
        ),
        "machines_loss_gap": MultiMachineMeasure(_loss_gap, needs_two=True),
    }
)
