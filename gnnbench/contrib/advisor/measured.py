"""The measuring process: reads a setting, prints facts of the graph and rates of the machine.

``python -m gnnbench.contrib.advisor.measured`` reads a setting as JSON and prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, TypedDict

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

SHARE = 0.95  # of a feature table: a cache of this share or more is the whole table


class MeasuredRecord(TypedDict):
    """The printed JSON: fields of ``Facts`` and of ``Rates``."""

    facts: dict[str, object]
    rates: dict[str, object]


class ErrorRecord(TypedDict):
    """The printed JSON of an error: its message and the name of its class."""

    error: str
    kind: str


def measure(setting: Setting) -> MeasuredRecord:
    """Measure facts and rates. Sets the number of torch's threads of this process."""
    torch.set_num_threads(machine.resolve_threads(setting.threads))
    graph = load_dataset(setting.dataset, seed=setting.seed)
    store = "host" if setting.device == "cpu" else "uva"
    with _system_with(setting, graph, features=store) as system:
        measured_rates = rates.training(system)
        facts = look(system, _ratio(setting, graph, system))
        device = system.job.device
    sample = {}
    for name in SAMPLERS[setting.device]:
        with _system_with(setting, graph, Until.SAMPLE, sampler=name) as system:
            sample[name] = rates.sampling(system)
    measured_rates |= rates.ceilings(device, row_bytes(graph))
    if setting.device == "cpu":  # batches and the feature table are in the same memory
        measured_rates["there"] = measured_rates["fetch"]
    return {"facts": asdict(facts), "rates": {**measured_rates, "sample": sample}}


@contextmanager
def _system_with(
    setting: Setting, graph: Graph, until: Until = Until.COMPUTE, **stages: str
) -> Iterator[SystemRunner]:
    """Build and set up the system with these stages and a serial schedule."""
    definition = find(SYSTEM)
    device = setting.device
    stages_by_name = {
        "sampler": SAMPLERS[device][0],
        "schedule": "serial",
        **STEPS[device],
        **stages,
    }
    resolved = definition.resolved(stages_by_name, device, until)
    trains = until is Until.COMPUTE
    cell = Cell(
        "advise", SYSTEM, graph.name, setting.model if trains else "", until=until.word,
        device=device, batch_size=setting.batch_size, fanouts=setting.fanouts,
        hidden=setting.hidden if trains else 0, learning_rate=0.003 if trains else 0.0,
        seed=setting.seed, threads=setting.threads, recipe=resolved.recipe,
    )  # fmt: skip
    system = definition.build(cell, graph)
    assert isinstance(system, SystemRunner)
    try:
        system.setup()
        yield system
    finally:
        system.close()


def _ratio(setting: Setting, graph: Graph, system: SystemRunner) -> float:
    """Share of all rows that fit the GPU's memory; 0 on a CPU, which needs no cache."""
    if setting.device == "cpu":
        return 0.0
    limit = None if setting.cache_gib is None else int(setting.cache_gib * 2**30)
    free, _ = torch.cuda.mem_get_info(system.job.device)
    room = free + torch.cuda.memory_reserved(system.job.device)
    peak = system.job.peak.most
    rows = fitting_rows(graph.num_nodes, row_bytes(graph), room, peak, limit)
    share = rows / graph.num_nodes
    return 1.0 if share >= SHARE else round(share, 4)


def _error(error: GnnbenchError) -> ErrorRecord:
    return {"error": str(error), "kind": type(error).__name__}


def main() -> None:
    """Read a setting, print the measurement or an error that the user can correct."""
    values = json.loads(sys.stdin.read())
    answer: MeasuredRecord | ErrorRecord
    try:
        answer = measure(Setting(**{**values, "fanouts": tuple(values["fanouts"])}))
    except torch.OutOfMemoryError:
        message = "a batch does not fit the GPU's memory; use smaller batches or fanouts"
        answer = _error(GpuMemoryError(message))
    except GnnbenchError as error:
        answer = _error(error)
    except (MemoryError, RuntimeError) as cause:
        if not lacks_host_memory(cause):
            raise
        message = "the host's memory is too small; use a smaller batch_size, hidden or fanouts"
        answer = _error(HostMemoryError(message))
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
