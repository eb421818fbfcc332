"""The process that looks at a graph and measures the machine: a setting in, facts and rates out.

``python -m gnnbench.contrib.advisor.measured`` reads a setting as JSON and prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch

from gnnbench.contrib.advisor import rates
from gnnbench.contrib.advisor.advice import SYSTEM, Setting
from gnnbench.contrib.advisor.facts import look, row_bytes
from gnnbench.contrib.advisor.model import SAMPLERS, STEPS
from gnnbench.core.cell import Cell, Until
from gnnbench.core.errors import (
    GnnbenchError,
    GpuMemoryError,
    HostMemoryError,
    lacks_host_memory,
)
from gnnbench.datasets.prepare import load_dataset
from gnnbench.features.policies.size import fitting_rows
from gnnbench.measure import machine
from gnnbench.systems.runtime.find import find
from gnnbench.systems.runtime.runner import SystemRunner

if TYPE_CHECKING:
    from gnnbench.datasets.graph import Graph

SHARE = 0.95  # of a table: a cache of more is the table


def measure(setting: Setting) -> dict[str, Any]:
    """``facts`` and ``rates`` as plain values; torch's threads are set for good."""
    torch.set_num_threads(machine.resolve_threads(setting.threads))
    graph = load_dataset(setting.dataset, seed=setting.seed)
    store = "host" if setting.device == "cpu" else "uva"
    with _composed(setting, graph, features=store) as system:
        found = rates.training(system)
        facts = look(system, _ratio(setting, graph, system))
        device = system.job.device
    sample = {}
    for name in SAMPLERS[setting.device]:
        with _composed(setting, graph, Until.SAMPLE, sampler=name) as system:
            sample[name] = rates.sampling(system)
    found |= rates.ceilings(device, row_bytes(graph))
    if setting.device == "cpu":  # what a batch has lies in the memory that all rows lie in
        found["there"] = found["fetch"]
    return {"facts": asdict(facts), "rates": {**found, "sample": sample}}


@contextmanager
def _composed(
    setting: Setting, graph: Graph, until: Until = Until.COMPUTE, **stages: str
) -> Iterator[SystemRunner]:
    """The system with some stages, one phase after the other."""
    named = find(SYSTEM)
    device = setting.device
    given = {"sampler": SAMPLERS[device][0], "schedule": "serial", **STEPS[device], **stages}
    found = named.resolved(given, device, until)
    trains = until is Until.COMPUTE
    cell = Cell(
        "advise", SYSTEM, graph.name, setting.model if trains else "", until=until.word,
        device=device, batch_size=setting.batch_size, fanouts=setting.fanouts,
        hidden=setting.hidden if trains else 0, learning_rate=0.003 if trains else 0.0,
        seed=setting.seed, threads=setting.threads, recipe=found.recipe,
    )  # fmt: skip
    system = named.build(cell, graph)
    assert isinstance(system, SystemRunner)
    try:
        system.setup()
        yield system
    finally:
        system.close()


def _ratio(setting: Setting, graph: Graph, system: SystemRunner) -> float:
    """Of all rows, those that the GPU's memory has room for; 0 on a CPU, whose rows are there."""
    if setting.device == "cpu":
        return 0.0
    limit = None if setting.cache_gib is None else int(setting.cache_gib * 2**30)
    free, _ = torch.cuda.mem_get_info(system.job.device)
    room = free + torch.cuda.memory_reserved(system.job.device)
    peak = system.job.peak.most
    rows = fitting_rows(graph.num_nodes, row_bytes(graph), room, peak, limit)
    share = rows / graph.num_nodes
    return 1.0 if share >= SHARE else round(share, 4)


def _error(error: GnnbenchError) -> dict[str, Any]:
    return {"error": str(error), "kind": type(error).__name__}


def main() -> None:
    """Errors that a user can mend are answers, too."""
    values = json.loads(sys.stdin.read())
    try:
        answer = measure(Setting(**{**values, "fanouts": tuple(values["fanouts"])}))
    except torch.OutOfMemoryError:
        message = "a batch does not fit the GPU's memory; take smaller batches or fanouts"
        answer = _error(GpuMemoryError(message))
    except GnnbenchError as error:
        answer = _error(error)
    except (MemoryError, RuntimeError) as cause:
        if not lacks_host_memory(cause):
            raise
        message = "the host's memory is too small; take a smaller batch_size, hidden or fanouts"
        answer = _error(HostMemoryError(message))
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
