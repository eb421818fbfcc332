"""Times of a GPU's sampling where its draws or its host are the bound, on an R-MAT graph.

``fused_map``: PGSampler's point, batch 2048 and 10/10/10, by the reservoirs and Floyd's pick, after
checking that they draw the CPU's edges; ``fused_map asked``: batches asked ahead, eight of them in
flight, 15/10/5, which is what they take sustained; ``pgsampler``: the same point by PGSampler, long
rows shared by all workers or not, workers of a warp or of a block as in the paper, and what memory
it takes at most beside the graph, over that of its blocks; ``hop_by_hop`` beside. Medians and means
as ``operators.py`` has them; JSON goes to --out. Exit code 1 where edges differ from the CPU's.

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
    """The command line."""
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
    """Seeds of each batch, drawn among the nodes that have in-neighbours."""
    draws = torch.Generator("cuda").manual_seed(options.seed + size)
    able = torch.nonzero(graph[0].diff() > 0).flatten().int()
    return [
        able[torch.randperm(able.numel(), generator=draws, device="cuda")[:size]]
        for _ in range(options.batches + WARMUP)
    ]


def positions(flat: list[Tensor]) -> list[Tensor]:
    """The edges of each hop, in order."""
    return [t.sort().values for t in flat[3::4]]


def bench_picks(options: argparse.Namespace, graph: Graph, out: Report) -> None:
    """The reservoirs whose draws are the bound, and Floyd's pick."""
    ops = torch.ops.gnnbench
    on_host = tuple(t.cpu() for t in graph)
    seeds = seeds_of(graph, 2048, options)
    for pick in ("reservoir", "reservoir_thinned", "floyd"):
        how = ([10, 10, 10], pick, [], [], "cumulative", KEY)
        right = ops.hop_by_hop(*on_host, seeds[0].cpu(), *how, 0, True)
        nodes, edges = ([t.numel() for t in right[k::4]] for k in (2, 1))
        room = [n + n // 4 for pair in zip(nodes, edges, strict=True) for n in pair]
        found = ops.fused_map(*graph, seeds[0], *how, 0, True, room)
        require_equal(positions(found), positions(right), f"fused_map {pick}")

        def call(i: int, how: tuple[Any, ...] = how, room: list[int] = room) -> Any:
            return ops.fused_map(*graph, seeds[i % len(seeds)], *how, i, False, room)

        row = {"name": "fused_map", "batch": 2048, "fanouts": "10/10/10", "pick": pick,
               "edges": sum(edges)}  # fmt: skip
        times = time_each(call, options.batches)
        times["device_ms"] = device_time(call, options.repeats)
        out.add({**row, **times, "run_ms": time_run(call, options.batches)})


class Asked:
    """Batches of a size asked ahead, of which the oldest is read where too many are in flight."""

    def __init__(self, graph: Graph, seeds: list[Tensor]) -> None:
        self._graph, self._seeds = graph, seeds
        self._how: dict[str, Any] = {
            "pick": PickSpec.of("floyd"), "frontier": "cumulative", "key": KEY,
            "with_positions": False,
        }  # fmt: skip
        self._mark, self._state = HighWater(), SubmissionState("cuda")
        self._flying: deque[SubmittedFusedMap] = deque()
        self.edges = 0
        for i in range(3):
            self._mark.see(fused_map(*graph, seeds[i], [15, 10, 5], batch=i, **self._how)[1])

    def __call__(self, i: int) -> None:
        """Ask for batch ``i``."""
        if len(self._flying) == IN_FLIGHT:
            drawn, took = self._flying.popleft().read()
            self._mark.see(took)
            self.edges = drawn.sampled_edges
        seeds = self._seeds[i % len(self._seeds)]
        how = {**self._how, "capacity": self._mark.capacity, "state": self._state}
        self._flying.append(SubmittedFusedMap(*self._graph, seeds, [15, 10, 5], batch=i, **how))


def bench_asked(options: argparse.Namespace, graph: Graph, out: Report) -> None:
    """Fused-Map asked ahead, of each batch size."""
    for size in options.batch_sizes:
        call = Asked(graph, seeds_of(graph, size, options))
        time_run(call, WARMUP)
        row = {"name": "fused_map asked", "batch": size, "fanouts": "15/10/5", "pick": "floyd"}
        times = {"run_ms": time_run(call, options.batches)}
        times["device_ms"] = device_time(call, options.repeats)
        out.add({**row, "edges": call.edges, **times})


def peak_over_blocks(call: Callable[[int], MiniBatch]) -> tuple[int, float]:
    """Bytes that a batch takes at most, and that over the bytes of its blocks."""
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
    """PGSampler's point, hubs split or whole, by warps or blocks, and hop by hop."""
    seeds, fanouts = seeds_of(graph, 2048, options), [10, 10, 10]
    how: dict[str, Any] = {"pick": "reservoir", "key": KEY}
    whole = {**how, "frontier": "cumulative"}
    right = hop_by_hop(*(t.cpu() for t in graph), seeds[0].cpu(), fanouts, batch=0, **whole)

    def by_hop(i: int) -> MiniBatch:
        return hop_by_hop(*graph, seeds[i % len(seeds)], fanouts, batch=i, **whole)

    calls: dict[tuple[str, str], Callable[[int], MiniBatch]] = {("", ""): by_hop}
    for hubs, worker in WORKERS:
        given = {**how, "hubs": hubs, "worker": worker}
        took = [
            pgsampler(*graph, seeds[i], fanouts, batch=i, **given)[1].capacity for i in range(3)
        ]
        room = [most + most // 8 for most in map(max, zip(*took, strict=True))]

        def call(i: int, given: dict[str, Any] = given, room: Sequence[int] = room) -> MiniBatch:
            nth = seeds[i % len(seeds)]
            return pgsampler(*graph, nth, fanouts, batch=i, capacity=room, **given)[0]

        calls[hubs, worker] = call
    for (hubs, worker), call in calls.items():
        found = call(0)
        if found.sampled_edges != right.sampled_edges:
            raise AssertionError(f"pgsampler {hubs} {worker}: other edges than the CPU's")
        for own, its in zip(found.blocks, right.blocks, strict=True):
            require_equal([own.dst_nodes.long().sort().values],
                          [its.dst_nodes.long().sort().values], "pgsampler")  # fmt: skip
        del found, own
        peak, over = peak_over_blocks(call)
        row = {"name": "pgsampler" if hubs else "hop_by_hop", "batch": 2048, "fanouts": "10/10/10",
               "pick": "reservoir", "hubs": hubs, "worker": worker,
               "edges": right.sampled_edges}  # fmt: skip
        times = time_each(call, options.batches)
        times["device_ms"] = device_time(call, options.repeats)
        out.add({**row, **times, "peak_bytes": peak, "peak_over_blocks": over})


def main() -> None:
    """Check and time everything."""
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
    bench_asked(options, graph, out)
    bench_pgsampler(options, graph, out)


if __name__ == "__main__":
    sys.exit(main())
