"""Drawn features need no file: any rows can be made anew.

``GNNBENCH_FEATURES`` says where they are: ``disk`` (default), in a file as those of a source; or
``memory``, without a file: a run makes them once, in the memory that its workers share, a graph
that is opened by itself makes its own (``gnnbench.datasets.generators.generated_features``). The
bits are the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gnnbench.core.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

    from gnnbench.datasets.store.writer import GraphWriter


def write_features(
    out: GraphWriter, shape: tuple[int, int], maker: str, pieces: Iterable[np.ndarray]
) -> None:
    """Write features float32 of a graph, or say who makes them where they are to have no file.

    Raises ``UsageError`` where ``GNNBENCH_FEATURES`` is neither ``disk`` nor ``memory``.
    """
    place = os.environ.get("GNNBENCH_FEATURES", "disk")
    if place not in ("disk", "memory"):
        raise UsageError(f"GNNBENCH_FEATURES is '{place}'; it is disk or memory")
    if place == "disk":
        out.write("features", "float32", shape, pieces)
    else:
        out.declare("features", "float32", shape, maker)
