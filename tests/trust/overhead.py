"""Measure what the harness itself costs inside the timed region of ``baseline``.

``python tests/trust/overhead.py [DATASET] [cpu|cuda] [FANOUTS]`` prints per batch: reading the
clock and the loop (stages that do nothing), what is kept for the recount, and the share of the
epoch. Nothing else of the harness runs between the two readings of the wall clock: reading NVML,
``/proc`` and the load, writing and syncing happen between epochs.
"""

import json
import statistics
import sys
import time
from itertools import repeat
from pathlib import Path

import torch
from gnnbench.stages.clock import clock_for

from gnnbench.cell import Cell
from gnnbench.data.prepare import load_dataset, prepare
from gnnbench.stages.schedule import run_serial
from gnnbench.systems.baseline import Baseline

BATCHES = 2000
TIMES = 7


def loop_s(device):
    """Seconds per batch of the loop, its clock and its lists, with empty stages; best of some."""
    seeds, loss = torch.arange(4, device=device), torch.zeros((), device=device)
    return min(
        run_serial(
            batches=lambda: list(repeat(seeds, BATCHES)),
            sample=lambda seeds, batch: seeds,
            load=lambda drawn: drawn,
            compute=lambda inputs: loss,
            keep=lambda drawn: drawn,
            clock=clock_for(device),
        ).wall_s
        / BATCHES
        for _ in range(TIMES)
    )


def keep_s(system, seeds):
    """Seconds that keeping a batch's sizes takes, median."""
    drawn = system.sample(seeds, 0, 0)
    times = []
    for _ in range(1000):
        start = time.perf_counter()
        system.hop_sizes(drawn)
        system.input_nodes(drawn).numel()
        system.seeds(drawn).numel()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main(dataset="products~twin@0.02", device="cpu", fanouts="15/10/5", batch_size="1024"):
    prepare(dataset)
    graph = load_dataset(dataset)
    hops = tuple(map(int, fanouts.split("/")))
    cell = Cell("overhead", "baseline", dataset, "gcn", device=device, fanouts=hops,
                batch_size=int(batch_size), max_batches=8)  # fmt: skip
    system = Baseline(cell, graph)
    system.setup()
    system.run_epoch(0)
    epochs = [system.run_epoch(n) for n in range(1, 4)]
    wall, batches = statistics.median(e.wall_s for e in epochs), epochs[0].batches
    loop, keep = loop_s(device), keep_s(system, system.order.batches(0)[0])
    return {
        "dataset": dataset, "device": device, "batches": batches, "epoch_s": wall,
        "loop_us_per_batch": loop * 1e6, "keep_us_per_batch": keep * 1e6,
        "share": (loop + keep) * batches / wall,
        "batches_of_an_epoch_of_1_s_at_1_percent": int(0.01 / (loop + keep)),
    }  # fmt: skip


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    print(json.dumps(main(*sys.argv[1:])))
