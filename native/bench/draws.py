"""Time GPU sampling where random draws or the host are the bottleneck, on an R-MAT graph.

``fused_map``: PGSampler's setting, batch 2048 and 10/10/10, with the reservoirs and Floyd's pick,
after a comparison of the edges with the CPU's. ``fused_map asked``: asynchronous submission with
eight batches in flight, 15/10/5, which gives the sustained time. ``pgsampler``: PGSampler in its
setting, with long rows split or not and a worker per warp or per block (as in the paper), and its
peak memory without the graph relative to that of its blocks. ``hop_by_hop``: for comparison.
Medians and means as in ``operators.py``. Writes JSON to --out. Exits with 1 if edges differ from
the CPU's.

    python native/bench/draws.py --out draws.json
"""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from operators import KEY, WARMUP, Report, device_time, require_equal, rmat, time_each, time_run
from torch import Tensor

from gnnbench.core.minibatch import MiniBatch
from gnnbench.kernels.fused import HighWater, fused_map
from gnnbench.kernels.fused_async import SubmissionState, SubmittedFusedMap
from gnnbench.kernels.library import load_native
from gnnbench.kernels.pgsampler import pgsampler
from gnnbench.kernels.picks import PickSpec
from gnnbench.kernels.sampler import hop_by_hop

IN_FLIGHT = 8
WORKERS = (("split", "warp"), ("whole", "warp"), ("whole", "block"))  # PGSampler's
Graph = tuple[Tensor, Tensor]


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=int, default=21, help="log2 of the number of nodes")
    parser.add_argument("--edges", type=int, default=123_000_000)
    parser.add_argument("--batches", type=int, default=200, help="consecutive batches timed")
    parser.add_argument("--repeats", type=int, default=50, help="batches under the profiler")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[8000, 1024])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("draws.json"))
    return parser.parse_args()


def seeds_of(graph: Graph, size: int, options: argparse.Namespace) -> list[Tensor]:
    """Draw each batch's seeds from the nodes with in-neighbours."""
    draws = torch.Generator("cuda").manual_seed(options.seed + size)
    candidates = torch.nonzero(graph[0].diff() > 0).flatten().int()
    return [
        candidates[torch.randperm(candidates.numel(), generator=draws, device="cuda")[:size]]
        for _ in range(options.batches + WARMUP)
    ]


def positions(flat: list[Tensor]) -> list[Tensor]:
    """Return the sorted edge positions of each hop."""
    return [t.sort().values for t in flat[3::4]]


def bench_picks(options: argparse.Namespace, graph: Graph, out: Report) -> None:
    """Time the reservoirs, which are bound by random draws, and Floyd's pick."""
    ops = torch.ops.gnnbench
    on_host = tuple(t.cpu() for t in graph)
    seeds = seeds_of(graph, 2048, options)
    for pick in ("reservoir", "reservoir_thinned", "floyd"):
        sampling = ([10, 10, 10], pick, [], [], "cumulative", KEY)
        expected = ops.hop_by_hop(*on_host, seeds[0].cpu(), *sampling, 0, True)
        nodes, edges = ([t.numel() for t in expected[k::4]] for k in (2, 1))
        capacity = [n + n // 4 for pair in zip(nodes, edges, strict=True) for n in pair]
        actual = ops.fused_map(*graph, seeds[0], *sampling, 0, True, capacity)
        require_equal(positions(actual), positions(expected), f"fused_map {pick}")

        def call(
            i: int, sampling: tuple[Any, ...] = sampling, capacity: list[int] = capacity
        ) -> Any:
            return ops.fused_map(*graph, seeds[i % len(seeds)], *sampling, i, False, capacity)

        row = {"name": "fused_map", "batch": 2048, "fanouts": "10/10/10", "pick": pick,
               "edges": sum(edges)}  # fmt: skip
        times = time_each(call, options.batches)
        times["device_ms"] = device_time(call, options.repeats)
        out.add({**row, **times, "run_ms": time_run(call, options.batches)})


class AsyncSubmitter:
    """Submits batches asynchronously and reads the oldest once ``IN_FLIGHT`` are in flight."""

    def __init__(self, graph: Graph, seeds: list[Tensor]) -> None:
        self._graph, self._seeds = graph, seeds
        self._options: dict[str, Any] = {
            "pick": PickSpec.of("floyd"), "frontier": "cumulative", "key": KEY,
            "with_positions": False,
        }  # fmt: skip
        self._mark, self._state = HighWater(), SubmissionState("cuda")
        self._in_flight: deque[SubmittedFusedMap] = deque()
        self.edges = 0
        for i in range(3):
            self._mark.see(fused_map(*graph, seeds[i], [15, 10, 5], batch=i, **self._options)[1])

    def __call__(self, i: int) -> None:
        """Submit batch ``i``."""
        if len(self._in_flight) == IN_FLIGHT:
            batch, sizes = self._in_flight.popleft().read()
            self._mark.see(sizes)
            self.edges = batch.sampled_edges
        seeds = self._seeds[i % len(self._seeds)]
        options = {**self._options, "capacity": self._mark.capacity, "state": self._state}
        self._in_flight.append(
            SubmittedFusedMap(*self._graph, seeds, [15, 10, 5], batch=i, **options)
        )


def bench_async(options: argparse.Namespace, graph: Graph, out: Report) -> None:
    """Time asynchronous Fused-Map for each batch size."""
    for size in options.batch_sizes:
        call = AsyncSubmitter(graph, seeds_of(graph, size, options))
        time_run(call, WARMUP)
        row = {"name": "fused_map asked", "batch": size, "fanouts": "15/10/5", "pick": "floyd"}
        times = {"run_ms": time_run(call, options.batches)}
        times["device_ms"] = device_time(call, options.repeats)
        out.add({**row, "edges": call.edges, **times})


def peak_memory(call: Callable[[int], MiniBatch]) -> tuple[int, float]:
    """Return a batch's peak memory in bytes, and its ratio to the bytes of its blocks."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    blocks = call(0).blocks
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    kept = {t.data_ptr(): t.nbytes for b in blocks for t in (b.dst_nodes, b.src_nodes, b.indptr,
                                                             b.indices)}  # fmt: skip
    return peak, peak / sum(kept.values())


def bench_pgsampler(options: argparse.Namespace, graph: Graph, out: Report) -> None:
    """Time PGSampler in its setting, hubs split or whole, by warps or blocks, and hop by hop."""
    seeds, fanouts = seeds_of(graph, 2048, options), [10, 10, 10]
    common: dict[str, Any] = {"pick": "reservoir", "key": KEY}
    with_frontier = {**common, "frontier": "cumulative"}
    expected = hop_by_hop(
        *(t.cpu() for t in graph), seeds[0].cpu(), fanouts, batch=0, **with_frontier
    )

    def by_hop(i: int) -> MiniBatch:
        return hop_by_hop(*graph, seeds[i % len(seeds)], fanouts, batch=i, **with_frontier)

    calls: dict[tuple[str, str], Callable[[int], MiniBatch]] = {("", ""): by_hop}
    for hubs, worker in WORKERS:
        given = {**common, "hubs": hubs, "worker": worker}
        sizes = [
            pgsampler(*graph, seeds[i], fanouts, batch=i, **given)[1].capacity for i in range(3)
        ]
        capacity = [most + most // 8 for most in map(max, zip(*sizes, strict=True))]

        def call(
            i: int, given: dict[str, Any] = given, capacity: Sequence[int] = capacity
        ) -> MiniBatch:
            nth = seeds[i % len(seeds)]
            return pgsampler(*graph, nth, fanouts, batch=i, capacity=capacity, **given)[0]

        calls[hubs, worker] = call
    for (hubs, worker), call in calls.items():
        actual = call(0)
        if actual.sampled_edges != expected.sampled_edges:
            raise AssertionError(f"pgsampler {hubs} {worker}: edges differ from the CPU's")
        for a, b in zip(actual.blocks, expected.blocks, strict=True):
            require_equal([a.dst_nodes.long().sort().values],
                          [b.dst_nodes.long().sort().values], "pgsampler")  # fmt: skip
        del actual, a
        peak, ratio = peak_memory(call)
        row = {"name": "pgsampler" if hubs else "hop_by_hop", "batch": 2048, "fanouts": "10/10/10",
               "pick": "reservoir", "hubs": hubs, "worker": worker,
               "edges": expected.sampled_edges}  # fmt: skip
        times = time_each(call, options.batches)
        times["device_ms"] = device_time(call, options.repeats)
        out.add({**row, **times, "peak_bytes": peak, "peak_over_blocks": ratio})


def main() -> None:
    """Check and time all samplers."""
    options = arguments()
    load_native()
    graph = rmat(options.scale, options.edges, options.seed)
    torch.cuda.synchronize()
    facts = {"torch": torch.__version__, "device": torch.cuda.get_device_name(),
             "nodes": graph[0].numel() - 1, "edges": graph[1].numel(),
             "batches": options.batches}  # fmt: skip
    print(facts, flush=True)
    out = Report(options.out, facts)
    bench_picks(options, graph, out)
    bench_async(options, graph, out)
    bench_pgsampler(options, graph, out)


if __name__ == "__main__":
    sys.exit(main())
