"""Measure what the harness itself costs inside the timed region of ``baseline``.

``python tests/trust/overhead.py [DATASET] [cpu|cuda] [FANOUTS]`` prints per batch: reading the
clock and the loop (stages that do nothing), what is kept for the recount, and the share of the
epoch. For each length of an epoch it prints the time of a copied batch, of its check after the
clock has stopped, and the ratio of epochs with and without copies, run alternately. Nothing else of
the harness runs between the two readings of the wall clock: reading NVML, ``/proc`` and the load,
writing and syncing happen between epochs.
"""

import json
import math
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import torch

from gnnbench.core.batch_choice import COPIED_BATCHES, BatchChoice
from gnnbench.core.cell import Cell, Until
from gnnbench.datasets.prepare import load_dataset, prepare
from gnnbench.measure.timeline import Timeline
from gnnbench.pipelines.schedule import Stages
from gnnbench.pipelines.serial import SerialSchedule
from gnnbench.statistics.estimates import exponential, mean_interval
from gnnbench.systems.baseline import BASELINE
from gnnbench.systems.runtime.runner import SystemRunner
from gnnbench.systems.runtime.spot_checks import CheckedBatch

BATCHES = 2000
TIMES = 7
EPOCHS = 24
WARM_UP = 4
EMPTY = Stages(
    SimpleNamespace(sample=lambda seeds, epoch, number: seeds),
    SimpleNamespace(load=lambda batch: batch),
    SimpleNamespace(step=lambda batch, rows: None),
    lambda batch, rows: None,
)


def wall_s(device, run):
    """Length of an epoch by the harness's clock."""
    timeline = Timeline.on(device)
    timeline.start()
    run(timeline)
    timeline.stop()
    return timeline.wall_s


def loop_s(device):
    """Seconds per batch of the loop and its spans, with empty stages; best of some."""
    seeds = [torch.arange(4, device=device)] * BATCHES

    def run(timeline):
        SerialSchedule().epoch(0, seeds, EMPTY, timeline, Until.COMPUTE)

    return min(wall_s(device, run) / BATCHES for _ in range(TIMES))


def keep_s(system, seeds):
    """Seconds that keeping a batch's sizes takes, median."""
    batch = system.stages.sampler.sample(seeds, 0, 0)
    times = []
    for _ in range(1000):
        start = time.perf_counter()
        system.stages.keep(batch, None)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def copies(system, device):
    """What copying batches aside costs in epochs of a system, and checking them after."""
    batch = system.stages.sampler.sample(system.seeds(1)[0], 1, 0)
    rows = None if system.stages.store is None else system.stages.store.load(batch)
    times = {"copy": [], "check": []}
    for _ in range(20):
        synchronize(device)
        start = time.perf_counter()
        copy = CheckedBatch.copy_of(batch, rows, 0)
        synchronize(device)
        times["copy"].append(time.perf_counter() - start)
        start = time.perf_counter()
        system.auditor._verifier.check(copy)
        assert not system.auditor._verifier.fault
        synchronize(device)
        times["check"].append(time.perf_counter() - start)
    logs = []
    for epoch in range(EPOCHS):
        walls = {}
        for key in ("", "key")[:: 1 if epoch % 2 else -1]:
            system.copy_batches(BatchChoice(key and f"key {epoch}", COPIED_BATCHES[system.until]))
            walls[key] = wall_s(device, lambda timeline, n=epoch: system.run_epoch(n, timeline))
            assert system.audit(epoch).ok
        logs.append(math.log(walls["key"] / walls[""]))
    ratio = exponential(mean_interval(logs[WARM_UP:]))
    return {
        "epoch_ms": walls[""] * 1e3, "ratio": ratio.value, "low": ratio.low, "high": ratio.high,
        **{f"{name}_us": statistics.median(values) * 1e6 for name, values in times.items()},
    }  # fmt: skip


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def main(
    dataset="products~twin@0.02", device="cpu", fanouts="15/10/5", batch_size="1024", batches="8"
):
    prepare(dataset)
    graph = load_dataset(dataset)
    hops = tuple(map(int, fanouts.split("/")))
    cell = Cell("overhead", "baseline", dataset, "gcn", device=device, fanouts=hops,
                batch_size=int(batch_size), max_batches=int(batches))  # fmt: skip
    by_length = {}
    for until in ("sample", "memory_io", "compute"):
        recipe = BASELINE.resolved(device, Until.of(until))
        system = SystemRunner(replace(cell, until=until), graph, recipe)
        system.setup()
        by_length[until] = copies(system, device)
        if until != "compute":
            system.close()
    walls = []
    for epoch in range(4):
        walls.append(wall_s(device, lambda timeline, n=epoch: system.run_epoch(n, timeline)))
        report = system.audit(epoch)
        assert report.ok, report.reason
    wall, batches = statistics.median(walls[1:]), report.batches
    loop, keep = loop_s(device), keep_s(system, system.order.batches(0, device)[0])
    return {
        "dataset": dataset, "device": device, "batches": batches, "epoch_s": wall,
        "loop_us_per_batch": loop * 1e6, "keep_us_per_batch": keep * 1e6,
        "share": (loop + keep) * batches / wall,
        "batches_of_an_epoch_of_1_s_at_1_percent": int(0.01 / (loop + keep)),
        "copies": by_length,
    }  # fmt: skip


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    print(json.dumps(main(*sys.argv[1:])))
