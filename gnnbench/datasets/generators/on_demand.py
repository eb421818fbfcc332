"""Write random features to a file, or only declare them: any rows can be generated again.

``GNNBENCH_FEATURES`` is ``disk`` (default: a file) or ``memory`` (no file: a run generates them
once in shared memory, and a graph opened by itself generates its own,
``gnnbench.datasets.generators.generated_features``). The bits are the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gnnbench.core.errors import UsageError
from gnnbench.schema.arrays import Array

if TYPE_CHECKING:
    from gnnbench.datasets.store.writer import GraphWriter


def write_features(
    out: GraphWriter, shape: tuple[int, int], generator: str, pieces: Iterable[Array]
) -> None:
    """Write float32 features, or declare their generator if they are to have no file.

    Raises ``UsageError`` if ``GNNBENCH_FEATURES`` is neither ``disk`` nor ``memory``.
    """
    location = os.environ.get("GNNBENCH_FEATURES", "disk")
    if location not in ("disk", "memory"):
        raise UsageError(f"GNNBENCH_FEATURES is '{location}'; it is disk or memory")
    if location == "disk":
        out.write("features", "float32", shape, pieces)
    else:
        out.declare("features", "float32", shape, generator)
