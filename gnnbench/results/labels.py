"""How a row's system is named wherever people read it."""

from __future__ import annotations

import json
from typing import Any


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
