"""Time PGSampler's and DGL's samplers as published, next to improved ones, and two id maps.

Batches of 8000 seeds, fanouts 15/10/5, pick ``reservoir``, on an R-MAT graph of scale 21 and on a
graph with larger hubs. Each sampler's edges are first compared with those of ``hop-by-hop``, and
these, on R-MAT, with the CPU's. If a DGL built with CUDA is installed, its own sampler is timed
too. Samplers alternate on the same batches; L2 is not flushed. Per batch, in ms:

``batch_ms``            wall time with a synchronisation before and after; median
``pick_stage_ms``       time of the stage that picks, between events of the sampler; median
``sampling_kernel_ms``  kernels that pick, by torch's profiler; mean
``kernels_ms``          all kernels, copies and fills, by torch's profiler; mean

The id maps rename the neighbours of one batch, hop by hop. Writes OUT/samplers.json. A check or a
sampler that fails is listed under ``failed``, the others go on, and the program exits with 1.

    python native/bench/published_samplers.py OUT
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from aggregate_gpu import time_alternating
from operators import dgl_or_none
from torch import Tensor

import gnnbench
from gnnbench.datasets.generators import rmat
from gnnbench.kernels import rng
from gnnbench.kernels.missing import gpu_missing
from gnnbench.kernels.sampler import hop_by_hop, id_map, sample_hop
from gnnbench.kernels.trace import traced
from gnnbench.validation.same_work import same_work

T = TypeVar("T")
Graph = tuple[Tensor, Tensor]  # CSC: int64 indptr [nodes + 1], int32 indices [edges]
SampleBatch = Callable[[Tensor, int], Any]  # of seeds and the number of the batch

FANOUTS, BATCH_SIZE, SEED, EPOCH = [15, 10, 5], 8000, 5, 1
BATCHES = 8
WALL_ROUNDS, PICK_ROUNDS = 5, 3  # the first is warm-up
MAP_WARMUP, MAP_ROUNDS, MAP_PROFILED = 10, 50, 20  # calls of an id map
RMAT = "rmat@21"
BASELINE = "hop-by-hop"
DGL = "DGL's own GPU sampler"
# Sampler and options by the name of a result.
SYSTEMS: dict[str, tuple[str, dict[str, Any]]] = {
    BASELINE: ("hop-by-hop", {}),
    "hop-by-hop row_worker=block": ("hop-by-hop", {"row_worker": "block"}),
    "hop-by-hop id_map=three-pass-probing": ("hop-by-hop", {"id_map": "three-pass-probing"}),
    "hop-by-hop as published (block, probing, coo)": (
        "hop-by-hop", {"row_worker": "block", "id_map": "three-pass-probing", "edges": "coo"},
    ),
    "fused-map-by-hop": ("fused-map-by-hop", {}),
    "pgsampler": ("pgsampler", {}),
    "pgsampler warp/whole": ("pgsampler", {"hubs": "whole"}),
    "pgsampler block/whole": ("pgsampler", {"hubs": "whole", "worker": "block"}),
    "pgsampler-as-published": ("pgsampler-as-published", {}),
    "dgl-fusion (one-warp)": ("dgl-fusion", {}),
    "dgl-fusion four-warps/split, 5 tasks": ("dgl-fusion", {"blocks": "four-warps"}),
    "dgl-fusion one-worker/whole, 5 tasks": (
        "dgl-fusion", {"blocks": "one-worker", "hubs": "whole"},
    ),
    "dgl-fusion one-worker/whole, 1 task": (
        "dgl-fusion", {"blocks": "one-worker", "hubs": "whole", "fetch_size": 1},
    ),
    "dgl-fusion-as-published (1 task)": ("dgl-fusion-as-published", {}),
    "dgl-fusion-as-published, 5 tasks": ("dgl-fusion-as-published", {"fetch_size": 5}),
}  # fmt: skip
# Parts of the names of kernels that pick neighbours: ours, and DGL's.
PICKING_KERNELS = ("reservoir", "tasks_kernel", "published_kernel", "RowWiseSample")
ID_MAPS = ("three-pass", "three-pass-probing")


def parse_out(description: str | None) -> Path:
    """Parse the command line and create the folder ``out``; exits with 1 without a GPU."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, help="folder of the results; created")
    out: Path = parser.parse_args().out
    if (missing := gpu_missing()) is not None:
        sys.exit(missing.reason)
    out.mkdir(parents=True, exist_ok=True)
    return out


class Record:
    """Results and failed checks of a program, kept in one JSON file."""

    def __init__(self, path: Path, sections: dict[str, Any]) -> None:
        self._path, self._begin = path, time.time()
        self.failed: list[str] = []
        self.results: dict[str, Any] = {
            "gpu": torch.cuda.get_device_name(), "failed": self.failed, **sections,
        }  # fmt: skip

    def say(self, *words: object) -> None:
        """Print words after the seconds since the start."""
        print(f"[{time.time() - self._begin:5.1f} s]", *words, flush=True)

    def check(self, name: str, condition: bool) -> bool:
        """List a check as failed unless its condition holds; returns the condition."""
        if not condition:
            self.failed.append(name)
            self.say("FAILED", name)
        return condition

    def attempt(self, name: str, call: Callable[[], T]) -> T | None:
        """Return the result of a call; None if it raises, which is listed as a failure."""
        try:
            return call()
        except Exception:
            self.check(f"{name}: {traceback.format_exc(limit=-4)}", False)
            return None

    def save(self) -> None:
        """Write the file."""
        self.results["seconds"] = time.time() - self._begin
        self._path.write_text(json.dumps(self.results, indent=1) + "\n")

    def finish(self) -> None:
        """Write the file; exits with 1 if anything failed."""
        self.save()
        self.say("failed:", len(self.failed))
        if self.failed:
            sys.exit(1)


def skewed_graph(nodes: int = 1_000_000, edges: int = 60_000_000) -> Graph:
    """Draw a graph whose degrees fall as rank^-0.8; hubs are also drawn as neighbours more often.

    Has up to ``nodes`` edges fewer than ``edges``, because degrees are rounded down.
    """
    draws = torch.Generator("cuda").manual_seed(1)
    weight = torch.arange(1, nodes + 1, device="cuda", dtype=torch.float64) ** -0.8
    degrees = (weight * (edges / weight.sum())).long()
    indptr = torch.zeros(nodes + 1, dtype=torch.int64, device="cuda")
    indptr[1:] = degrees.cumsum(0)
    uniform = torch.rand(int(indptr[-1]), device="cuda", generator=draws, dtype=torch.float64)
    indices = (uniform.pow(3) * nodes).long().clamp_(max=nodes - 1).int()
    return indptr, indices


def seeds_of(nodes: int, number: int) -> Tensor:
    """Draw the distinct seeds of a batch, int32 ``[BATCH_SIZE]``."""
    draws = torch.Generator().manual_seed(number)
    return torch.randperm(nodes, generator=draws)[:BATCH_SIZE].int().cuda()


def kernel_times(call: Callable[[], Any]) -> dict[str, float]:
    """Return milliseconds on the device by kernel, copy or fill of a call, by torch's profiler."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
        call()
        torch.cuda.synchronize()
    times: dict[str, float] = defaultdict(float)
    for event in profiler.events():
        if str(event.device_type).endswith("CUDA"):
            times[event.name] += event.device_time_total / 1e3
    return dict(times)


def build_samplers(record: Record, name: str, graph: Graph) -> dict[str, gnnbench.Sampler]:
    """Build the samplers of ``SYSTEMS``, without those that fail."""
    samplers = {}
    for system, (sampler, options) in SYSTEMS.items():
        build = partial(
            gnnbench.build_sampler, sampler, graph, FANOUTS, device="cuda", seed=SEED,
            pick="reservoir", **options,
        )  # fmt: skip
        built = record.attempt(f"{name}: {system}", build)
        if built is not None:
            samplers[system] = built
    return samplers


def batch_sampler(sampler: gnnbench.Sampler) -> SampleBatch:
    """Return the function that samples a batch of the measured epoch."""
    return lambda seeds, number: sampler.sample(seeds, EPOCH, number)


def dgl_sampler(record: Record, graph: Graph) -> SampleBatch | None:
    """Return DGL's own sampler, with ids of 32 bits; None if DGL cannot run here."""
    dgl = dgl_or_none()
    if dgl is None:
        record.results["notes"].append("without DGL")
        return None
    indptr, indices = (t.int() for t in graph)
    csc = (indptr, indices, torch.empty(0, dtype=torch.int32, device="cuda"))
    theirs = dgl.graph(("csc", csc), num_nodes=indptr.numel() - 1).formats(["csc"])
    sampler = dgl.dataloading.NeighborSampler(FANOUTS[::-1])
    record.results["notes"].append(f"dgl {dgl.__version__}")
    return lambda seeds, number: sampler.sample(theirs, seeds)


def compare_edges(
    record: Record, label: str, expected: SampleBatch, call: SampleBatch, batches: list[Tensor]
) -> bool:
    """Compare a sampler's first two batches with the expected ones; True if both ran."""
    for number in (0, 1):
        fault = same_work(expected(batches[number], number), call(batches[number], number))
        record.check(f"{label} draws other edges: {fault}", fault is None)
    return True


def compare_with_cpu(
    record: Record, name: str, graph: Graph, seeds: Tensor, sample: SampleBatch
) -> None:
    """Compare the first batch of ``hop-by-hop`` with the CPU's."""
    on_cpu = hop_by_hop(
        graph[0].cpu(), graph[1].cpu(), seeds.cpu(), FANOUTS, pick="reservoir",
        frontier="cumulative", key=rng.key(SEED, EPOCH, "sample"), batch=0,
    )  # fmt: skip
    fault = same_work(on_cpu, sample(seeds, 0))
    record.check(f"{name}: hop-by-hop draws other edges than the CPU: {fault}", fault is None)


def wall_times(calls: dict[str, SampleBatch], batches: list[Tensor]) -> dict[str, float]:
    """Return the median milliseconds of a batch by sampler; they alternate each epoch."""
    times: dict[str, list[float]] = defaultdict(list)
    for turn in range(WALL_ROUNDS):
        for system, call in calls.items():
            for number, seeds in enumerate(batches):
                torch.cuda.synchronize()
                begin = time.perf_counter()
                call(seeds, number)
                torch.cuda.synchronize()
                if turn:
                    times[system].append((time.perf_counter() - begin) * 1e3)
    return {system: statistics.median(own) for system, own in times.items()}


def pick_times(calls: dict[str, SampleBatch], batches: list[Tensor]) -> dict[str, float]:
    """Return the median milliseconds of a batch's picks by sampler; they alternate each epoch."""
    times: dict[str, list[float]] = defaultdict(list)
    for turn in range(PICK_ROUNDS):
        for system, call in calls.items():
            if system == DGL:  # it has no marks
                continue
            for number, seeds in enumerate(batches):
                marks = traced(partial(call, seeds, number), "cuda")[1]
                if turn:
                    picks = [mark.device_s for mark in marks if mark.stage == "pick"]
                    times[system].append(sum(picks) * 1e3)
    return {system: statistics.median(own) for system, own in times.items()}


def sample_all(call: SampleBatch, batches: list[Tensor]) -> list[Any]:
    """Sample all batches."""
    return [call(seeds, number) for number, seeds in enumerate(batches)]


def measure_samplers(record: Record, name: str, graph: Graph) -> None:
    """Check and time all samplers on a graph."""
    nodes = graph[0].numel() - 1
    largest = int(graph[0].diff().max())
    record.say(name, f"{nodes} nodes, {graph[1].numel()} edges, largest degree {largest}")
    batches = [seeds_of(nodes, number) for number in range(BATCHES)]
    samplers = build_samplers(record, name, graph)
    try:
        calls = {system: batch_sampler(sampler) for system, sampler in samplers.items()}
        baseline = calls[BASELINE]
        for system, call in list(calls.items()):
            label = f"{name}: {system}"
            compare = partial(compare_edges, record, label, baseline, call, batches)
            if record.attempt(label, compare) is None:
                del calls[system]
        record.say("compared the edges of", len(calls), "samplers")
        if name == RMAT:
            compare_with_cpu(record, name, graph, batches[0], baseline)
        theirs = record.attempt(f"{name}: {DGL}", partial(dgl_sampler, record, graph))
        if theirs is not None:
            calls[DGL] = theirs
        time_samplers(record, name, calls, batches)
    finally:
        for sampler in samplers.values():
            sampler.close()


def time_samplers(
    record: Record, name: str, calls: dict[str, SampleBatch], batches: list[Tensor]
) -> None:
    """Time samplers and add a row for each."""
    record.results["samplers"][name] = rows = {}
    wall, pick = wall_times(calls, batches), pick_times(calls, batches)
    for system, call in calls.items():
        profiled = partial(kernel_times, partial(sample_all, call, batches))
        times = record.attempt(f"{name}: profile of {system}", profiled) or {}
        kernels = {kernel: ms / len(batches) for kernel, ms in times.items()}
        picking = [ms for k, ms in kernels.items() if any(part in k for part in PICKING_KERNELS)]
        longest = sorted(kernels.items(), key=lambda item: -item[1])[:14]
        rows[system] = {
            "batch_ms": wall[system],
            "pick_stage_ms": pick.get(system),
            "sampling_kernel_ms": sum(picking) or None,
            "kernels_ms": sum(kernels.values()) or None,
            "kernels": {kernel[:90]: round(ms, 4) for kernel, ms in longest},
        }
        shown = (f"{k} {v:.3f}" for k, v in rows[system].items() if isinstance(v, float))
        print(f"  {system:48s}", *shown, flush=True)


def repeat(call: Callable[[], T], times: int) -> list[T]:
    """Call ``times`` times; all results are kept until the end."""
    return [call() for _ in range(times)]


def measure_id_maps(record: Record, name: str, graph: Graph) -> None:
    """Compare and time both id maps on each hop of a batch."""
    key = rng.key(SEED, EPOCH, "sample")
    dst = seeds_of(graph[0].numel() - 1, 0).to(graph[1].dtype)
    record.results["id_map"][name] = rows = []
    for hop, fanout in enumerate(FANOUTS):
        neighbors = sample_hop(*graph, dst, fanout, pick="reservoir", key=key, hop=hop, batch=0)[1]
        calls: dict[str, Callable[[], tuple[Tensor, Tensor]]] = {
            variant: partial(id_map, dst, neighbors, variant) for variant in ID_MAPS
        }
        maps = {variant: call() for variant, call in calls.items()}
        same = all(torch.equal(a, b) for a, b in zip(*maps.values(), strict=True))
        record.check(f"{name}: id maps differ at hop {hop}", same)
        # Each call of time_alternating adds one round of warm-up, twice here.
        time_alternating(calls, MAP_WARMUP - 2, 1)
        times = time_alternating(calls, MAP_ROUNDS, 1)
        src_nodes = maps[ID_MAPS[0]][0]
        row: dict[str, Any] = {"hop": hop, "dst": dst.numel(), "edges": neighbors.numel()}
        for variant, call in calls.items():
            kernels = kernel_times(partial(repeat, call, MAP_PROFILED))
            row[variant] = {
                "call_ms": times[variant],
                "kernels_ms": sum(kernels.values()) / MAP_PROFILED,
                "kernels": {k[:80]: round(ms / MAP_PROFILED, 5) for k, ms in kernels.items()},
            }
            print(f"  {name} id map {variant} hop {hop}: {row['edges']} edges, call"
                  f" {row[variant]['call_ms']:.4f} ms, kernels"
                  f" {row[variant]['kernels_ms']:.4f} ms", flush=True)  # fmt: skip
        row["nodes"] = src_nodes.numel()
        rows.append(row)
        dst = src_nodes


def main() -> None:
    """Check and time the samplers and the id maps on both graphs."""
    out = parse_out(__doc__)
    record = Record(out / "samplers.json", {"samplers": {}, "id_map": {}, "notes": []})
    makers: dict[str, Callable[[], Graph]] = {
        RMAT: partial(rmat.graph, 21, 1, "cuda"), "skewed": skewed_graph,
    }  # fmt: skip
    for name, make in makers.items():
        graph = make()
        for what, measure in (("samplers", measure_samplers), ("id maps", measure_id_maps)):
            record.attempt(f"{name}: {what}", partial(measure, record, name, graph))
            record.save()
        del graph
    record.finish()


if __name__ == "__main__":
    main()
