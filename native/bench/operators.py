"""Time the CUDA operators on an R-MAT graph, after comparing them with the CPU's.

Sampling is timed over consecutive batches, with a synchronisation after each (``wall_ms``) and back
to back (``run_ms``: no added synchronisation). Seeds are drawn from the nodes with in-neighbours.
Gathers read random rows of 512 bytes from a table of 1 GB, in device memory and in pinned host
memory. Aggregation runs on the input block of a batch and is compared with torch's CSR product. If
a DGL built with CUDA is installed, its sampler, its gather of pinned rows and its sum over a block
are timed too. Medians. Writes JSON to --out. Exits with 1 if an operator differs from the CPU's.

    python native/bench/operators.py --out results.json
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gnnbench.kernels.dgl_import import dgl_missing, import_dgl
from gnnbench.kernels.features import ACCESSES, gather_zero_copy
from gnnbench.kernels.library import load_native

KEY = 0x1234567
WARMUP = 10


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=int, default=21, help="log2 of the number of nodes")
    parser.add_argument("--edges", type=int, default=123_000_000)
    parser.add_argument("--batches", type=int, default=200, help="consecutive batches timed")
    parser.add_argument("--repeats", type=int, default=100, help="repeats of the other operators")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[8000, 1024])
    parser.add_argument("--dims", type=int, nargs="+", default=[128, 256])
    parser.add_argument("--table-bytes", type=int, default=10**9)
    parser.add_argument("--rows", type=int, default=275_000, help="rows per gather")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("operators.json"))
    return parser.parse_args()


def rmat(scale: int, edges: int, seed: int) -> tuple[Tensor, Tensor]:
    """Generate an R-MAT graph (0.57, 0.19, 0.19, 0.05): CSC on the GPU with permuted int32 ids."""
    draws = torch.Generator("cuda").manual_seed(seed)
    nodes = 1 << scale
    src = torch.zeros(edges, dtype=torch.int32, device="cuda")
    dst = torch.zeros(edges, dtype=torch.int32, device="cuda")
    for bit in range(scale):
        u = torch.rand(edges, generator=draws, device="cuda")
        src |= (u >= 0.76).int() << bit
        dst |= (((u >= 0.57) & (u < 0.76)) | (u >= 0.95)).int() << bit
    names = torch.randperm(nodes, generator=draws, device="cuda").int()
    edge = torch.sort((names[dst.long()].long() << scale) | names[src.long()].long()).values
    indptr = torch.zeros(nodes + 1, dtype=torch.int64, device="cuda")
    indptr[1:] = torch.cumsum(torch.bincount(edge >> scale, minlength=nodes), 0)
    return indptr, (edge & (nodes - 1)).int()


def require_equal(actual: Sequence[Tensor], expected: Sequence[Tensor], what: str) -> None:
    """Exit if tensors differ in dtype, shape or any bit."""
    for number, (a, b) in enumerate(zip(actual, expected, strict=True)):
        if a.dtype != b.dtype or a.shape != b.shape or not torch.equal(a.cpu(), b.cpu()):
            sys.exit(f"NOT EQUAL: {what}, tensor {number}")


class Report:
    """Prints result rows as they arrive and writes the file after each."""

    def __init__(self, path: Path, facts: dict[str, Any]) -> None:
        self._path = path
        self.facts = facts
        self.rows: list[dict[str, Any]] = []

    def add(self, row: dict[str, Any]) -> None:
        """Print a row and write the file."""
        self.rows.append(row)
        shown = (f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items())
        print(" ".join(shown), flush=True)
        self._path.write_text(json.dumps({**self.facts, "results": self.rows}, indent=1) + "\n")


def time_each(call: Callable[[int], Any], repeats: int) -> dict[str, float]:
    """Return the median wall time of synchronised calls, with 10 % and 90 % quantiles, in ms."""
    for i in range(WARMUP):
        call(i)
    torch.cuda.synchronize()
    taken = []
    for i in range(repeats):
        begin = time.perf_counter()
        call(WARMUP + i)
        torch.cuda.synchronize()
        taken.append((time.perf_counter() - begin) * 1e3)
    taken.sort()
    return {
        "wall_ms": statistics.median(taken),
        "p10_ms": taken[len(taken) // 10],
        "p90_ms": taken[len(taken) * 9 // 10],
    }


def time_run(call: Callable[[int], Any], repeats: int) -> float:
    """Return the mean time of back-to-back calls, in ms."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for i in range(repeats):
        call(i)
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e3 / repeats


def device_time(call: Callable[[int], Any], repeats: int) -> float:
    """Return the mean time of a call's kernels, copies and fills, in ms, by torch's profiler."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for i in range(repeats):
            call(i)
        torch.cuda.synchronize()
    return sum(e.self_device_time_total for e in profiler.key_averages()) / 1e3 / repeats


def dgl_or_none() -> Any:
    """Return DGL if it can run on this GPU, else None."""
    if (missing := dgl_missing("cuda")) is not None:
        print(f"without DGL: {missing.reason}", flush=True)
        return None
    return import_dgl()


def dgl_sampling(
    dgl: Any, graph: Any, seeds: Sequence[Tensor], fanouts: Sequence[int], batches: int, out: Report
) -> None:
    """Time DGL's ``NeighborSampler`` on ``graph``, after counting the edges of its first batch."""
    sampler = dgl.dataloading.NeighborSampler(list(reversed(fanouts)))

    def call(i: int) -> list[Any]:
        blocks: list[Any] = sampler.sample(graph, seeds[i % len(seeds)])[2]
        return blocks

    blocks = call(0)
    for block, fanout in zip(reversed(blocks), fanouts, strict=True):
        degree = graph.in_degrees(block.dstdata[dgl.NID])
        if block.num_edges() != int(degree.clamp(max=fanout).sum()):
            sys.exit(f"NOT EQUAL: DGL's edges at fanout {fanout}")
    row = {
        "name": "dgl sample", "batch": seeds[0].numel(), "fanouts": "/".join(map(str, fanouts)),
        "edges": sum(b.num_edges() for b in blocks),
    }  # fmt: skip
    out.add({**row, **time_each(call, batches), "run_ms": time_run(call, batches)})


def bench_sampling(options: argparse.Namespace, graph: tuple[Tensor, Tensor], out: Report) -> None:
    """Check and time whole batches with both picks and both orders of fanouts."""
    ops = torch.ops.gnnbench
    dgl_graph, dgl = None, dgl_or_none()
    if dgl is not None:
        csc = (graph[0], graph[1].long(), graph[0].new_empty(0))
        dgl_graph = dgl.graph(("csc", csc), num_nodes=graph[0].numel() - 1).formats(["csc"])
    indptr, indices = graph
    on_host = (indptr.cpu(), indices.cpu())
    draws = torch.Generator("cuda").manual_seed(options.seed + 1)
    candidates = torch.nonzero(indptr.diff() > 0).flatten().int()
    for size in options.batch_sizes:
        count = options.batches + WARMUP
        seeds = [
            candidates[torch.randperm(candidates.numel(), generator=draws, device="cuda")[:size]]
            for _ in range(count)
        ]
        for fanouts in ([15, 10, 5], [5, 10, 15]):
            for pick in ("reservoir", "floyd"):
                sampling = (fanouts, pick, [], [], "cumulative", KEY)

                def call(i: int, positions: bool = False) -> list[Tensor]:
                    return ops.hop_by_hop(*graph, seeds[i % count], *sampling, i, positions)  # noqa: B023

                expected = ops.hop_by_hop(
                    *on_host, seeds[1].cpu(), fanouts, pick, [], [], "cumulative", KEY, 1, True
                )
                require_equal(call(1, True), expected, f"sample {size} {fanouts} {pick}")
                edges = sum(t.numel() for t in call(1)[1::3])
                row = {
                    "name": "sample", "batch": size, "fanouts": "/".join(map(str, fanouts)),
                    "pick": pick, "edges": edges,
                }  # fmt: skip
                times = time_each(call, options.batches)
                out.add({**row, **times, "run_ms": time_run(call, options.batches)})
            if dgl is not None:
                wide = [s.long() for s in seeds]
                dgl_sampling(dgl, dgl_graph, wide, fanouts, options.batches, out)


def bench_id_maps(options: argparse.Namespace, graph: tuple[Tensor, Tensor], out: Report) -> None:
    """Check and time the three-pass id map and Fused-Map's single table on the same edges."""
    ops = torch.ops.gnnbench
    indptr, indices = graph
    draws = torch.Generator("cuda").manual_seed(options.seed + 4)
    candidates = torch.nonzero(indptr.diff() > 0).flatten().int()
    for size in options.batch_sizes:
        for fanouts in ([15, 10, 5], [5, 10, 15]):
            order = torch.randperm(candidates.numel(), generator=draws, device="cuda")
            seeds = candidates[order[:size]]
            flat = ops.hop_by_hop(
                indptr, indices, seeds, fanouts, "floyd", [], [], "cumulative", KEY, 0, False
            )
            hops = []  # destinations, neighbours, both global ids
            for rows, columns, nodes in zip(flat[0::3], flat[1::3], flat[2::3], strict=True):
                hops.append((nodes[: rows.numel() - 1].contiguous(), nodes[columns]))
            neighbors = [ids for _, ids in hops]
            capacity = flat[-1].numel() * 5 // 4

            def three_pass(i: int) -> list[tuple[Tensor, Tensor]]:
                return [ops.id_map(dst, ids) for dst, ids in hops]  # noqa: B023

            def fused(i: int) -> list[Tensor]:
                return ops.fused_id_map(seeds, neighbors, capacity)  # noqa: B023

            nodes, *local = fused(0)
            require_equal([nodes.sort().values], [flat[-1].sort().values], "fused_id_map")
            require_equal([nodes[t] for t in local], neighbors, "fused_id_map, mapped back")
            edges = sum(ids.numel() for ids in neighbors)
            row = {"batch": size, "fanouts": "/".join(map(str, fanouts)), "edges": edges}
            for name, call in (("id_map", three_pass), ("fused_id_map", fused)):
                times = time_each(call, options.repeats)
                times["device_ms"] = device_time(call, options.repeats)
                out.add({"name": name, **row, **times, "run_ms": time_run(call, options.repeats)})


def bench_gather(options: argparse.Namespace, out: Report) -> None:
    """Check and time gathers of random 512-byte rows from device and pinned host memory."""
    ops = torch.ops.gnnbench
    table_rows = options.table_bytes // 512
    table = torch.arange(table_rows * 128, dtype=torch.int32).view(table_rows, 128)
    pinned = table.pin_memory()
    table = table.cuda()
    draws = torch.Generator("cuda").manual_seed(options.seed + 2)
    count = 8
    ids = torch.randint(table_rows, (count, options.rows), generator=draws, device="cuda")
    expected = table.index_select(0, ids[0])
    gathers: dict[str, Callable[[int], Tensor]] = {
        "gather": lambda i: ops.gather(table, ids[i % count]),
        "torch index_select": lambda i: table.index_select(0, ids[i % count]),
        **{
            f"gather_zero_copy {access}": lambda i, access=access: gather_zero_copy(
                pinned, ids[i % count], access
            )
            for access in ACCESSES
        },
    }
    if (dgl := dgl_or_none()) is not None:
        pinned_by_dgl = pinned.clone()
        registration = dgl.utils.pin_memory_inplace(pinned_by_dgl)  # keeps it pinned
        gathers["dgl gather_pinned_tensor_rows"] = lambda i: dgl.utils.gather_pinned_tensor_rows(
            pinned_by_dgl, ids[i % count]
        )
    for name, call in gathers.items():
        require_equal([call(0)], [expected], name)
        times = time_each(call, options.repeats)
        gb_per_s = options.rows * 512 / times["wall_ms"] / 1e6
        out.add({"name": name, "rows": options.rows, "row_bytes": 512, **times,
                 "gb_per_s": gb_per_s})  # fmt: skip
    if dgl is not None:
        registration.unpin_memory_()


def backward(rows: Tensor, columns: Tensor, grad: Tensor, num_src: int, mode: str) -> Tensor:
    """Compute the gradient of an aggregation, including the block's transpose."""
    ops = torch.ops.gnnbench
    transposed = ops.transpose(rows, columns, num_src)
    gradient: Tensor = ops.aggregate_transposed(rows, *transposed, grad, mode)
    return gradient


def bench_aggregate(options: argparse.Namespace, graph: tuple[Tensor, Tensor], out: Report) -> None:
    """Time both directions on the input block of the first batch size, and torch's CSR product."""
    ops = torch.ops.gnnbench
    indptr, indices = graph
    draws = torch.Generator("cuda").manual_seed(options.seed + 3)
    candidates = torch.nonzero(indptr.diff() > 0).flatten().int()
    size = options.batch_sizes[0]
    order = torch.randperm(candidates.numel(), generator=draws, device="cuda")
    seeds = candidates[order[:size]]
    flat = ops.hop_by_hop(
        indptr, indices, seeds, [15, 10, 5], "floyd", [], [], "cumulative", KEY, 0, False
    )
    rows, columns, nodes = flat[6:9]
    num_dst, num_src = rows.numel() - 1, nodes.numel()
    block = {"dst": num_dst, "src": num_src, "edges": columns.numel()}
    theirs: Any = None
    if (dgl := dgl_or_none()) is not None:
        csc = ("csc", (rows, columns, rows.new_empty(0)))
        theirs = dgl.create_block(csc, num_src_nodes=num_src, num_dst_nodes=num_dst)
    for dim in options.dims:
        x = torch.randn(num_src, dim, generator=draws, device="cuda")
        grad = torch.randn(num_dst, dim, generator=draws, device="cuda")
        for mode in ("sum", "gcn"):
            for name, call, expected in (
                (
                    "aggregate",
                    lambda i, x=x, mode=mode: ops.aggregate(rows, columns, x, num_dst, mode),
                    ops.aggregate(rows.cpu(), columns.cpu(), x.cpu().double(), num_dst, mode),
                ),
                (
                    "transpose, aggregate_transposed",
                    lambda i, g=grad, mode=mode: backward(rows, columns, g, num_src, mode),
                    backward(rows.cpu(), columns.cpu(), grad.cpu().double(), num_src, mode),
                ),
            ):
                first = call(0)
                if not torch.allclose(first.cpu().double(), expected, rtol=1e-4, atol=1e-3):
                    sys.exit(f"NOT EQUAL: {name} {mode} {dim}")
                require_equal([call(1)], [first], f"{name} {mode} {dim}, repeated")
                times = time_each(call, options.repeats)
                out.add({"name": name, "mode": mode, "dim": dim, **block, **times,
                         "run_ms": time_run(call, options.repeats)})  # fmt: skip
        ones = torch.ones(columns.numel(), device="cuda")
        csr = torch.sparse_csr_tensor(rows, columns, ones, size=(num_dst, num_src))

        def product(i: int) -> Tensor:
            return csr @ x  # noqa: B023

        times = time_each(product, options.repeats)
        out.add({"name": "torch csr @ x", "mode": "sum", "dim": dim, **block, **times,
                 "run_ms": time_run(product, options.repeats)})  # fmt: skip
        if dgl is not None:

            def update_all(i: int) -> Tensor:
                with theirs.local_scope():
                    theirs.srcdata["x"] = x  # noqa: B023
                    theirs.update_all(dgl.function.copy_u("x", "m"), dgl.function.sum("m", "y"))
                    out: Tensor = theirs.dstdata["y"]
                    return out

            if not torch.allclose(update_all(0), product(0), rtol=1e-4, atol=1e-3):
                sys.exit(f"NOT EQUAL: DGL's sum {dim}")
            times = time_each(update_all, options.repeats)
            out.add({"name": "dgl update_all", "mode": "sum", "dim": dim, **block, **times,
                     "run_ms": time_run(update_all, options.repeats)})  # fmt: skip


def main() -> None:
    """Check and time all operators."""
    options = arguments()
    load_native()
    begin = time.perf_counter()
    graph = rmat(options.scale, options.edges, options.seed)
    torch.cuda.synchronize()
    degree = graph[0].diff()
    facts = {
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(),
        "nodes": degree.numel(),
        "edges": graph[1].numel(),
        "nodes_with_neighbours": int((degree > 0).sum()),
        "largest_degree": int(degree.max()),
        "batches": options.batches,
        "repeats": options.repeats,
    }
    print(f"{facts} (made in {time.perf_counter() - begin:.1f} s)", flush=True)
    out = Report(options.out, facts)
    bench_sampling(options, graph, out)
    bench_id_maps(options, graph, out)
    bench_gather(options, out)
    bench_aggregate(options, graph, out)


if __name__ == "__main__":
    main()
