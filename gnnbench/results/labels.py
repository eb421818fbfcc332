"""How a row's system is named wherever people read it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gnnbench.errors import UsageError
from gnnbench.overrides import parse_value


def system_label(row: dict[str, Any], separator: str = " ") -> str:
    """``dgl``, or ``dgl fused=false id_type=int32`` where settings of its own were given.

    A row of a GPU says so: ``baseline on cuda``.
    """
    options = row.get("options") or {}
    if isinstance(options, str):
        options = json.loads(options)
    settings = [
        f"{key}={json.dumps(value) if not isinstance(value, str) else value}"
        for key, value in sorted(options.items())
    ]
    device = [f"on {row['device']}"] if row.get("device", "cpu") == "cuda" else []
    return separator.join([row["system"], *settings, *device])


def parse_label(text: str) -> tuple[str, dict[str, Any]]:
    """The system of ``"dgl fused=false threads=2"`` and what is set. Raises ``UsageError``."""
    system, *settings = text.split()
    values = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key or not value:
            raise UsageError(f"'{setting}' in '{text}' is not of the form key=value")
        values[key] = parse_value(value)
    return system, values


def fits(cell: Mapping[str, Any], label: str) -> bool:
    """Whether a cell (its fields by name, ``options`` as a mapping) is what a label names."""
    system, values = parse_label(label)
    known = {**cell, **cell["options"]}
    return cell["system"] == system and all(known.get(k) == v for k, v in values.items())
