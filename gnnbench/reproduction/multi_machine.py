"""Numbers of several machines, as ``machines.csv`` has them, for claims to be judged by.

Rounds and losses are facts and exact. Ratios of times have Student's interval over lives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gnnbench.analysis import multi_machine
from gnnbench.analysis.multi_machine import Setting
from gnnbench.statistics.estimates import NOTHING, Estimate
from gnnbench.statistics.stopping_rule import MIN_PAIRS

if TYPE_CHECKING:
    from gnnbench.reproduction.evidence import Opened

Row = dict[str, Any]
COMMAND = "python -m gnnbench.contrib.emulated_network compare"


@dataclass(frozen=True)
class Across:
    """A measure: its number of a setting and one or two systems; ``""`` and why not to trust it."""

    number: Callable[[Setting, str, str], Estimate]
    of_two: bool = False
    of_time: bool = False

    def numbers(
        self, opened: Opened, of: str, beside: str, wanted: Mapping[str, Any]
    ) -> Iterator[tuple[Estimate, str, tuple[Row, ...]]]:
        """An estimate, a doubt and what it is of, for each setting whose columns are as wanted."""
        rows = (row for row in opened.run.machines if _is(row, wanted))
        for setting in multi_machine.settings(rows):
            systems = [name for name in (of, beside) if name]
            if not all(map(setting.of, systems)):
                continue
            found = self.number(setting, of, beside)
            doubt = _doubt(setting, found) if self.of_time and found.n else ""
            told = tuple(_row(setting, name) for name in systems)
            yield found, doubt, told


def _is(row: Row, wanted: Mapping[str, Any]) -> bool:
    return all(
        row.get(key) in value if isinstance(value, list) else row.get(key) == value
        for key, value in wanted.items()
    )


def _row(setting: Setting, system: str) -> Row:
    """What stands for a system's rows in a finding."""
    words = f"{system} ({multi_machine.where(setting)}, fanouts {setting.fanouts})"
    return {"id": words, "words": words, "dataset": setting.dataset, "system": system}


def _doubt(setting: Setting, found: Estimate) -> str:
    if found.n < MIN_PAIRS:
        return f"fewer than {MIN_PAIRS} pairs of epochs in fresh processes"
    if share := setting.noisy():
        return f"other programs used the machine in {share:.0%} of the trials"
    return ""


def _exact(values: Iterable[float]) -> Estimate:
    """Counted, not estimated: from the least to the most that there was."""
    known = sorted(values)
    return Estimate(known[-1], known[0], known[-1], len(known)) if known else NOTHING


def _rounds(setting: Setting, of: str, beside: str) -> Estimate:
    del beside
    rows = setting.of(of)
    return _exact(row["rounds"] / row["steps"] for row in rows if row["rounds"] is not None)


def _time(column: str) -> Callable[[Setting, str, str], Estimate]:
    return lambda setting, of, beside: setting.ratio(of, beside, column)


def _gap(setting: Setting, of: str, beside: str) -> Estimate:
    del of, beside
    gap = setting.gap()
    return NOTHING if gap is None else _exact([gap])


ACROSS: Mapping[str, Across] = MappingProxyType(
    {
        "machines_rounds": Across(_rounds),
        "machines_epoch": Across(_time("wall_s"), of_two=True, of_time=True),
        "machines_sampling": Across(_time("sample_s"), of_two=True, of_time=True),
        "machines_loss_gap": Across(_gap, of_two=True),
    }
)
