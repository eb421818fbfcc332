"""Whether PyG is here."""

from __future__ import annotations

import importlib.util

from gnnbench.errors import MissingError
from gnnbench.missing import Missing


def pyg_missing() -> Missing | None:
    """Why PyG cannot be imported here, without importing it."""
    if importlib.util.find_spec("torch_geometric") is not None:
        return None
    return Missing(
        "torch_geometric is not installed", "pip install -c constraints.txt torch-geometric"
    )


def require_pyg() -> None:
    """Raise ``MissingError`` where PyG is not there, with the way to get it."""
    missing = pyg_missing()
    if missing is not None:
        raise MissingError(f"{missing.reason}; {missing.fix}")
