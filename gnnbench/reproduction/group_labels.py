"""Labels of the cells that together give one number of a claim."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gnnbench.reproduction.claim import ClaimPoint
from gnnbench.reproduction.evidence import RunEvidence
from gnnbench.reproduction.groups import CellGroup
from gnnbench.schema import CellRow

JOINTS = {"ratio": " over ", "difference": " less "}  # by ``by`` of a point
_NAME_END = re.compile(r", | \((?!unverified)")


def group_label(point: ClaimPoint, group: CellGroup, evidence: RunEvidence) -> str:
    """``A over B``, ``A less B``, or one label; cells that differ in ``over`` share a label."""
    sides = [side_label(point.over, side, evidence) for side in group.sides]
    return JOINTS.get(point.by, ", ").join(sides)


def side_label(over: str, rows: Sequence[CellRow], evidence: RunEvidence) -> str:
    """The label of one cell, or of several: ``baseline, batch 8000, seeds 0 to 4``."""
    label = marked_name(evidence.labels.of(rows[0]))
    if len(rows) == 1:
        return label
    first = f"{over} {rows[0][over]}"
    parts = [part for part in label.split(", ") if part != first]
    return ", ".join([*parts, f"{over}s {_listed([row[over] for row in rows])}"])


def marked_name(label: str) -> str:
    """A label with its system and settings of the recipe between backticks."""
    end = _NAME_END.search(label)
    at = end.start() if end else len(label)
    return f"`{label[:at]}`{label[at:]}"


def _listed(values: Sequence[object]) -> str:
    """``0 to 4`` of consecutive numbers, else each value."""
    numbers = sorted(value for value in values if isinstance(value, int))
    if len(numbers) == len(values) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, sorted(map(str, values))))
