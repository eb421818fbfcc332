"""Answers of other processes to the plan: versions, systems, what can run."""

from __future__ import annotations

import sys
from pathlib import Path

from gnnbench.core import registry
from gnnbench.core.cell import Cell, CellValues, Until
from gnnbench.core.errors import GnnbenchError, MissingError
from gnnbench.harness import available
from gnnbench.harness.available import Availability, CellFacts, facts, options
from gnnbench.harness.protocol import DescribeAnswer
from gnnbench.kernels.missing import native_missing
from gnnbench.measure import machine
from gnnbench.systems.runtime.find import Resolved

PACKAGE = Path(__file__).parents[1]


def describe() -> DescribeAnswer:
    """Return ``versions``, all ``systems``, and why the ``native`` library is unusable ("": it is
    usable).

    Raises ``MissingError`` if a module of ``gnnbench`` is of another source tree.
    """
    answer = DescribeAnswer(machine.versions(), _native(), list(registry.known(registry.SYSTEM)))
    _check_source()
    return answer


def _check_source() -> None:
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name.partition(".")[0] != "gnnbench" or file is None:
            continue
        if not Path(file).is_relative_to(PACKAGE):
            raise MissingError(
                f"'{name}' is of another gnnbench ({file}), which would be timed in place of this"
                " one; uninstall it there"
            )


def _native() -> str:
    missing = native_missing()
    if missing is not None:
        return missing.reason
    from gnnbench.kernels.library import load_native

    try:
        load_native()
    except MissingError:
        import torch

        return f"the native library does not load under torch {torch.__version__}"
    return ""


def resolve(name: str, given: dict[str, object], device: str, until: str) -> Resolved:
    """Return the resolved settings of a system in a cell. Raises ``UsageError``."""
    return available.resolve(name, given, device, Until.of(until))


def resolved(name: str, given: dict[str, object], device: str, until: str) -> Resolved:
    """Return the resolved settings of a system in a cell; ``unsupported`` says why there are
    none.
    """
    try:
        return resolve(name, given, device, until)
    except GnnbenchError as error:
        return Resolved({"system": name, **given}, unsupported=str(error))


def state(cell: CellValues) -> Availability:
    """Return whether a cell can run here."""
    return available.state(Cell.from_json(cell))


def cell_facts(cell: CellValues) -> CellFacts:
    """Return facts of a cell's stages."""
    return available.cell_facts(Cell.from_json(cell))


ANSWERS: dict[str, object] = {
    "describe": describe,
    "options": options,
    "resolve": resolve,
    "resolved": resolved,
    "state": state,
    "facts": facts,
    "cell_facts": cell_facts,
}
