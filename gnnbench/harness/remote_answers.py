"""What a worker of another environment tells the plan: itself, its systems, what they can."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gnnbench.core import registry
from gnnbench.core.cell import Cell, CellValues, Until
from gnnbench.core.errors import GnnbenchError, MissingError
from gnnbench.harness.available import resolve, state, system
from gnnbench.harness.failures import Failure
from gnnbench.kernels.missing import native_missing
from gnnbench.measure import machine

PACKAGE = Path(__file__).parents[1]


def describe() -> dict[str, Any]:
    """``versions``, all ``systems``, and why the ``native`` library cannot be used ("": it can).

    Raises ``MissingError`` where a module of ``gnnbench`` is not of this source.
    """
    found = {
        "versions": machine.versions(),
        "systems": registry.known(registry.SYSTEM),
        "native": _native(),
    }
    _check_source()
    return found


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


def options(name: str, given: dict[str, Any]) -> list[str]:
    """Paths that may be set of a system. Raises ``MissingError``."""
    found = system(name)
    if isinstance(found, Failure):
        raise MissingError(found.reason)
    return list(found.options(given))


def resolved(name: str, given: dict[str, Any], device: str, until: str) -> dict[str, Any]:
    """What a cell holds of a system's settings; what is none here is told as ``unsupported``."""
    try:
        return asdict(resolve(name, given, device, Until.of(until)))
    except GnnbenchError as error:
        return {"recipe": {"system": name, **given}, "unsupported": str(error), "composed": True}


def available(cell: CellValues) -> dict[str, Any]:
    """Why a cell cannot run here: ``failure`` with ``status`` and ``reason``, or None."""
    failure = state(Cell.from_json(cell)).failure
    return {"failure": None if failure is None else failure.to_json()}


ANSWERS = {f.__name__: f for f in (describe, options, resolved, available)}
