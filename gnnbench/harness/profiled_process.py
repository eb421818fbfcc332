"""Process that a GPU profiler observes: runs a cell's kernels once, each behind a mark."""

from __future__ import annotations

import json
import sys
from typing import cast

from gnnbench.core.cell import Cell
from gnnbench.harness.worker_datasets import open_graph
from gnnbench.systems.runtime.find import find
from gnnbench.systems.runtime.runner import SystemRunner


def main() -> None:
    """Run the kernels; the last argument is JSON with ``cell``, ``epoch`` and the ``graph``'s
    location."""
    settings = json.loads(sys.argv[-1])
    cell = Cell.from_json(settings["cell"])
    graph = open_graph(cell.dataset, settings["graph"])
    system = cast(SystemRunner, find(cell.system).build(cell, graph))
    system.setup()
    try:
        system.diagnostics.run_marked(settings["epoch"])
    finally:
        system.close()
