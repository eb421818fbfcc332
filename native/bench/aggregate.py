"""Time the CPU's aggregation and torch's sparse CSR product, after checking the results.

Lower bound in float32 for a block of D destinations, S sources and E edges at width W: the forward
reads a row of W values per edge and writes one per destination, 4 W (E + D) bytes, plus 4 E bytes
of ids, for 2 E W operations. That is one operation per two bytes, far below a core's peak, so
bandwidth is the bottleneck: memory's if the sources exceed the caches, else the caches'. The
backward reads a row per edge and writes one per source: 4 W (E + S) bytes. Its transpose reads 12
bytes per edge and writes 8 at random.

Blocks are the layers of a sampled batch on a random graph with hubs. Our calls alternate with
torch's, so that background load affects both. Rows contain the median of each and the median ratio
of consecutive calls. --clock cpu reports the CPU time of the process, for machines that are not
idle (with one thread only, because waiting threads spin). Exits with 1 if a result is outside its
error bound.

    python native/bench/aggregate.py --out results.json
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gnnbench.core.minibatch import Block
from gnnbench.kernels.library import load_native

Call = Callable[[], Any]


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=400_000)
    parser.add_argument("--degree", type=int, default=15, help="mean degree of the graph")
    parser.add_argument("--batch-size", type=int, default=2048)
    parser.add_argument("--fanouts", type=int, nargs="+", default=[15, 10, 5])
    parser.add_argument("--dims", type=int, nargs="+", default=[16, 64, 100, 128, 256, 602])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--attention", action="store_true", help="time attention instead")
    parser.add_argument("--out", type=Path, default=None)
    return parser.parse_args()


def input_block(options: argparse.Namespace) -> Block:
    """Sample a batch by our operator and return its input layer's block."""
    draws = torch.Generator().manual_seed(1)
    edges = options.nodes * options.degree
    # Sources follow a power law, so that hubs occur often, as in real graphs.
    uniform = torch.rand(edges, generator=draws)
    sources = (options.nodes * uniform**2).long().clamp(max=options.nodes - 1)
    sources = torch.randperm(options.nodes, generator=draws)[sources]
    counts = torch.bincount(
        torch.randint(options.nodes, (edges,), generator=draws), minlength=options.nodes
    )
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
    seeds = torch.randperm(options.nodes, generator=draws)[: options.batch_size]
    flat = torch.ops.gnnbench.fused_map(
        indptr, sources, seeds, options.fanouts, "floyd", [], [], "cumulative", 1, 0, False, []
    )
    rows, columns, nodes = flat[-3:]
    return Block(rows, columns, nodes, rows.numel() - 1)


def matrix_of(block: Block, values: Tensor) -> Tensor:
    """Return the block as torch's CSR matrix."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.sparse_csr_tensor(
            block.indptr, block.indices, values, size=(block.num_dst, block.num_src)
        )


def require_close(ours: Tensor, exact: Tensor, sizes: Tensor, terms: int, what: str) -> None:
    """Exit if a float32 sum of ``terms`` terms is outside its rounding error bound."""
    if not ((ours.double() - exact).abs() <= terms * 2**-24 * 1.01 * sizes).all():
        sys.exit(f"WRONG: {what}")


def compare(
    name: str, ours: Call, other: Call, options: argparse.Namespace, facts: dict[str, Any]
) -> Any:
    """Time alternating calls of both; each is first as often as second."""
    clock = time.perf_counter if options.clock == "wall" else time.process_time

    def timed(call: Call) -> float:
        begin = clock()
        call()
        return (clock() - begin) * 1e3

    ours(), other()
    pairs = []
    for i in range(options.repeats):
        first, second = (ours, other) if i % 2 else (other, ours)
        a, b = timed(first), timed(second)
        pairs.append((a, b) if i % 2 else (b, a))
    row = {
        "name": name, **facts, "ms": statistics.median(a for a, _ in pairs),
        "other_ms": statistics.median(b for _, b in pairs),
        "ratio": statistics.median(b / a for a, b in pairs),
    }  # fmt: skip
    if "bytes" in facts:
        row["gb_per_s"] = facts["bytes"] / row["ms"] / 1e6
    print(" ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items()))
    return row


def bench_sums(block: Block, options: argparse.Namespace) -> list[Any]:
    """Time the forward, the backward with a given transpose, and the transpose, at every width."""
    ops, edges = torch.ops.gnnbench, block.num_edges
    ones = torch.ones(edges)
    forward = matrix_of(block, ones)
    back = ops.transpose(block.indptr, block.indices, block.num_src)
    transposed = matrix_of(
        Block(back[0], back[1], torch.arange(block.num_dst), block.num_src), ones
    )
    results = []
    longest, uses = int(block.indptr.diff().max()), int(back[0].diff().max())
    results.append(
        compare(
            "transpose", lambda: ops.transpose(block.indptr, block.indices, block.num_src),
            lambda: forward.t().to_sparse_csr(), options, {},
        )
    )  # fmt: skip
    for dim in options.dims:
        draws = torch.Generator().manual_seed(dim)
        x = torch.randn(block.num_src, dim, generator=draws)
        grad = torch.randn(block.num_dst, dim, generator=draws)

        def ours(x: Tensor = x) -> Tensor:
            out: Tensor = ops.aggregate(block.indptr, block.indices, x, block.num_dst, "sum")
            return out

        def ours_back(grad: Tensor = grad) -> Tensor:
            out: Tensor = ops.aggregate_transposed(block.indptr, *back, grad, "sum")
            return out

        wide, sizes = forward.double(), x.double().abs()
        require_close(ours(), wide @ x.double(), wide @ sizes, longest, f"forward {dim}")
        wide, sizes = transposed.double(), grad.double().abs()
        require_close(ours_back(), wide @ grad.double(), wide @ sizes, uses, f"backward {dim}")
        facts = {"dim": dim, "bytes": 4 * dim * (edges + block.num_dst) + 4 * edges}
        results.append(compare("forward", ours, lambda x=x: forward @ x, options, facts))
        facts = {"dim": dim, "bytes": 4 * dim * (edges + block.num_src) + 4 * edges}
        # torch also gets its transpose
        results.append(
            compare("backward", ours_back, lambda g=grad: transposed @ g, options, facts)
        )
        for dtype in (torch.bfloat16, torch.float16):
            facts = {"dim": dim, "bytes": 2 * dim * (edges + block.num_dst) + 4 * edges}
            narrow, name = x.to(dtype), str(dtype).removeprefix("torch.")
            results.append(
                compare(f"{name}, against float32", lambda t=narrow: ours(t), ours, options, facts)
            )
        values = torch.rand(edges)
        weighted = matrix_of(block, values)
        results.append(
            compare(
                "weighted forward",
                lambda x=x, w=values: ops.aggregate(
                    block.indptr, block.indices, x, block.num_dst, "sum", w
                ),
                lambda x=x, m=weighted: m @ x, options, {"dim": dim},
            )
        )  # fmt: skip
    return results


def bench_attention(block: Block, options: argparse.Namespace) -> list[Any]:
    """Time GAT's operators at 8 heads of 8, compared with torch's gather and scatter."""
    ops, edges = torch.ops.gnnbench, block.num_edges
    counts = block.indptr.diff()
    dst = torch.repeat_interleave(torch.arange(block.num_dst), counts)
    x, grad = torch.randn(block.num_src, 8, 8), torch.randn(block.num_dst, 8, 8)
    scores = torch.randn(edges, 8)
    back = ops.transpose(block.indptr, block.indices, block.num_src)
    shares = ops.edge_softmax(block.indptr, scores)
    facts = {"bytes": 4 * 64 * (edges + block.num_dst) + 36 * edges}

    def softmax() -> Tensor:
        largest = torch.segment_reduce(scores, "max", offsets=block.indptr.long(), axis=0)
        powers = (scores - largest[dst]).exp()
        return powers / torch.zeros_like(grad[:, 0]).index_add(0, dst, powers)[dst]

    calls = {
        "edge_softmax": (lambda: ops.edge_softmax(block.indptr, scores), softmax, {}),
        "aggregate_heads": (
            lambda: ops.aggregate_heads(block.indptr, block.indices, x, shares, block.num_dst),
            lambda: torch.zeros_like(grad).index_add(
                0, dst, x[block.indices] * shares.unsqueeze(2)
            ), facts,
        ),
        "aggregate_heads_transposed": (
            lambda: ops.aggregate_heads_transposed(*back, grad, shares),
            lambda: torch.zeros_like(x).index_add(
                0, block.indices, grad[dst] * shares.unsqueeze(2)
            ), facts,
        ),
        "edge_dots": (
            lambda: ops.edge_dots(block.indptr, block.indices, grad, x),
            lambda: (grad[dst] * x[block.indices]).sum(2), facts,
        ),
    }  # fmt: skip
    results = []
    for name, (ours, other, more) in calls.items():
        if not torch.allclose(ours(), other(), rtol=1e-4, atol=1e-4):
            sys.exit(f"WRONG: {name}")
        results.append(compare(name, ours, other, options, more))
    return results


def main() -> None:
    """Check and time the operators."""
    options = arguments()
    load_native()
    torch.set_num_threads(options.threads)
    block = input_block(options)
    facts = {
        "torch": torch.__version__, "threads": options.threads, "clock": options.clock,
        "dst": block.num_dst, "src": block.num_src, "edges": block.num_edges,
    }  # fmt: skip
    print(facts)
    results = (bench_attention if options.attention else bench_sums)(block, options)
    if options.out is not None:
        options.out.write_text(json.dumps({**facts, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
