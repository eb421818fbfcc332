"""Answers of a worker of another environment to the plan: versions, systems, what can run."""

from __future__ import annotations

import sys
from pathlib import Path

from gnnbench.core import registry
from gnnbench.core.cell import Cell, CellValues, Until
from gnnbench.core.errors import GnnbenchError, MissingError
from gnnbench.harness.available import resolve, state, system
from gnnbench.harness.failures import Failure
from gnnbench.harness.protocol import DescribeAnswer, FailureAnswer
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


def options(name: str, given: dict[str, object]) -> list[str]:
    """Return the option paths of a system. Raises ``MissingError``."""
    registered = system(name)
    if isinstance(registered, Failure):
        raise MissingError(registered.reason)
    return list(registered.options(given))


def resolved(name: str, given: dict[str, object], device: str, until: str) -> Resolved:
    """Return the resolved settings of a system in a cell; ``unsupported`` says why there are
    none.
    """
    try:
        return resolve(name, given, device, Until.of(until))
    except GnnbenchError as error:
        return Resolved({"system": name, **given}, unsupported=str(error))


def available(cell: CellValues) -> FailureAnswer:
    """Return why a cell cannot run here: ``failure`` with ``status`` and ``reason``, or None."""
    return FailureAnswer(state(Cell.from_json(cell)).failure)


ANSWERS = {f.__name__: f for f in (describe, options, resolved, available)}
