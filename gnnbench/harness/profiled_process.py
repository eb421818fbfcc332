"""The process that a GPU's profiler looks into: a cell's kernels, each once, behind a mark."""

from __future__ import annotations

import json
import sys
from typing import Any

from gnnbench.core.cell import Cell
from gnnbench.harness.worker import open_graph
from gnnbench.systems.runtime.find import find


def main() -> None:
    """Entry point; the last argument has ``cell``, ``epoch``, and ``graph`` as a worker is told of
    it."""
    told = json.loads(sys.argv[-1])
    cell = Cell.from_json(told["cell"])
    system: Any = find(cell.system).build(cell, open_graph(cell.dataset, told["graph"]))
    system.setup()
    try:
        system.run_marked(told["epoch"])
    finally:
        system.close()
