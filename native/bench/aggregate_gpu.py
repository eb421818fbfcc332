"""Time a GPU's aggregations, after comparing each with float64.

On the input block of a batch of 8000, 15/10/5, of an R-MAT graph of scale 21 (by default): the
forward of each kernel, the transpose, the backward with and without it, and a layer of attention,
8 heads of 8, forward and backward. --peers adds torch's sparse product and DGL. Several
back-to-back calls are timed between two events. The kernels of a width alternate; medians over
rounds.

`floor_ms` is the time of the minimum memory traffic at the measured rate of a copy: for the forward
the rows of sources and results, ids and offsets, once each; for the backward likewise.
`through_l2_gb` counts a source's row for every edge, which caches can serve.

    python3 native/bench/aggregate_gpu.py --out results.json --peers
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # if gnnbench is not installed

import torch
from operators import KEY, dgl_or_none, rmat
from torch import Tensor

from gnnbench.core.minibatch import Block
from gnnbench.kernels.aggregate_memory_aware import attend_memory_aware, attend_memory_aware_warp
from gnnbench.kernels.attention import attend
from gnnbench.kernels.library import load_native

Call = Callable[[], Any]
SLOPE = 0.2
HEADS, WIDTH = 8, 8


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=int, default=21, help="log2 of the number of nodes")
    parser.add_argument("--edges", type=int, default=123_000_000)
    parser.add_argument("--batch-size", type=int, default=8000)
    parser.add_argument("--fanouts", type=int, nargs="+", default=[15, 10, 5])
    parser.add_argument("--dims", type=int, nargs="+", default=[64, 128, 256, 602])
    parser.add_argument("--rounds", "--turns", dest="rounds", type=int, default=11)
    parser.add_argument("--calls", type=int, default=20, help="back-to-back calls per round")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--peers", action="store_true", help="also time torch's product and DGL")
    parser.add_argument("--out", type=Path, default=Path("aggregate_gpu.json"))
    return parser.parse_args()


def input_block(options: argparse.Namespace) -> Block:
    """Sample one batch of seeds with neighbours and return its input layer's block."""
    indptr, indices = rmat(options.scale, options.edges, options.seed)
    draws = torch.Generator("cuda").manual_seed(options.seed + 3)
    candidates = torch.nonzero(indptr.diff() > 0).flatten().int()
    order = torch.randperm(candidates.numel(), generator=draws, device="cuda")
    seeds = candidates[order[: options.batch_size]]
    flat = torch.ops.gnnbench.fused_map(
        indptr, indices, seeds, options.fanouts, "floyd", [], [], "cumulative", KEY, 0, False, []
    )
    rows, columns, nodes = flat[-3:]
    return Block(rows, columns, nodes, rows.numel() - 1)


def copy_rate() -> float:
    """Return the bytes per second, read and written, of a copy of 1 GiB within the GPU."""
    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    (ms,) = time_alternating({"copy": lambda: target.copy_(source)}, 5, 5).values()
    return 2 * source.numel() / ms * 1e3


def time_alternating(calls: dict[str, Call], rounds: int, repeats: int) -> dict[str, float]:
    """Return milliseconds per call: median over rounds of the mean of back-to-back calls."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name, call in calls.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(repeats):
                call()
            end.record()
            end.synchronize()
            if number > 0:  # the first round is warm-up
                times[name].append(begin.elapsed_time(end) / repeats)
    return {name: statistics.median(own) for name, own in times.items()}


@dataclass
class Exact:
    """Reference sums of rows over edges in float64."""

    block: Block

    def __post_init__(self) -> None:
        degree = self.block.indptr.diff().long()
        rows = torch.arange(self.block.num_dst, device="cuda")
        self.rows = torch.repeat_interleave(rows, degree)
        self.columns = self.block.indices.long()
        self.longest = int(degree.max())
        self.most_uses = int(torch.bincount(self.columns).max())

    def forward(self, x: Tensor) -> Tensor:
        """Sum over destinations: [num_dst, dim]."""
        out = x.new_zeros(self.block.num_dst, x.shape[1], dtype=torch.float64)
        return out.index_add_(0, self.rows, x.double()[self.columns])

    def backward(self, grad: Tensor) -> Tensor:
        """Sum over sources: [num_src, dim]."""
        out = grad.new_zeros(self.block.num_src, grad.shape[1], dtype=torch.float64)
        return out.index_add_(0, self.columns, grad.double()[self.rows])


def require_within(actual: Tensor, exact: Tensor, sizes: Tensor, terms: int, name: str) -> None:
    """Exit if a sum of ``terms`` terms is outside its rounding error bound."""
    info = torch.finfo(actual.dtype)
    unit = torch.finfo(torch.float64 if actual.dtype == torch.float64 else torch.float32).eps
    bound = sizes * (2 * (terms + 4) * unit + info.eps) + info.smallest_normal
    if not bool(((actual.double() - exact).abs() <= bound).all()):
        sys.exit(f"WRONG: {name}")


class Report:
    """Prints rows as they arrive and writes the file after each."""

    def __init__(self, path: Path, facts: dict[str, Any]) -> None:
        self._path, self._facts = path, facts
        self.rows: list[dict[str, Any]] = []

    def add(self, what: str, dim: int, times: dict[str, float], **facts: float) -> None:
        """Add one row per kernel."""
        for name, ms in times.items():
            self.rows.append({"what": what, "dim": dim, "name": name, "ms": ms, **facts})
            print(f"{what:10} {dim:4} {name:38} {ms:8.4f} ms", flush=True)
        self._path.write_text(json.dumps({**self._facts, "results": self.rows}, indent=1) + "\n")


def matrix_of(block: Block, values: Tensor) -> Tensor:
    """Return the block as torch's CSR matrix."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.sparse_csr_tensor(
            block.indptr, block.indices, values, size=(block.num_dst, block.num_src),
            check_invariants=False,
        )  # fmt: skip


def dgl_block(dgl: Any, block: Block, edges: int) -> Any:
    """Return the block as DGL's.

    ``edges`` is the number of edges for operators with edge values, otherwise 0.
    """
    numbers = torch.arange(edges, dtype=torch.int32, device="cuda")
    csc = ("csc", (block.indptr, block.indices, numbers))
    return dgl.create_block(csc, num_src_nodes=block.num_src, num_dst_nodes=block.num_dst)


def forward_calls(block: Block, x: Tensor, theirs: Any, dgl: Any, peers: bool) -> dict[str, Call]:
    """Return the forward of every kernel by name."""
    ops = torch.ops.gnnbench
    args = (block.indptr, block.indices, x, block.num_dst, "sum")
    calls: dict[str, Call] = {
        "simple": lambda: ops.aggregate(*args),
        **{
            f"tuned, {rows} rows": lambda rows=rows: ops.aggregate_tuned(*args, None, rows)
            for rows in (1, 2, 4, 7)
        },
        "Memory-Aware 8 x 32": lambda: ops.aggregate_memory_aware(*args, None, 8, 32),
        "Memory-Aware by warps": lambda: ops.aggregate_memory_aware_warp(*args),
    }
    if x.dtype == torch.float32:
        groups = ops.neighbor_groups(block.indptr, 32)
        calls["groups of 32, made before"] = lambda: ops.aggregate_groups(
            *groups, block.indices, x, block.num_dst, 32
        )
        calls["groups of 32, made here"] = lambda: ops.aggregate_groups(
            *ops.neighbor_groups(block.indptr, 32), block.indices, x, block.num_dst, 32
        )
    if peers and x.dtype == torch.float32:
        matrix = matrix_of(block, torch.ones(block.num_edges, device="cuda"))
        calls["torch csr @ x"] = lambda: matrix @ x
        if dgl is not None:
            calls["dgl copy_u_sum"] = lambda: dgl.ops.copy_u_sum(theirs, x)
    return calls


def backward_calls(
    block: Block, x: Tensor, grad: Tensor, theirs: Any, dgl: Any, peers: bool
) -> dict[str, Call]:
    """Return the backward of every kernel by name; "transpose" marks those that include it."""
    ops = torch.ops.gnnbench
    back = ops.transpose(block.indptr, block.indices, block.num_src)

    def transpose() -> Any:
        return ops.transpose(block.indptr, block.indices, block.num_src)

    calls: dict[str, Call] = {
        "tuned": lambda: ops.aggregate_transposed(block.indptr, *back, grad, "sum"),
        "transpose + tuned": lambda: ops.aggregate_transposed(
            block.indptr, *transpose(), grad, "sum"
        ),
        "Memory-Aware 8 x 32": lambda: ops.aggregate_memory_aware_transposed(
            block.indptr, *back, grad, "sum", None, 8, 32
        ),
        "Memory-Aware 8 x 32, scatter": lambda: ops.aggregate_memory_aware_scattered(
            block.indptr, block.indices, grad, block.num_src, "sum", None, 8, 32
        ),
        "Memory-Aware by warps": lambda: ops.aggregate_memory_aware_warp_transposed(
            block.indptr, *back, grad, "sum"
        ),
    }
    if peers and x.dtype == torch.float32:
        values = torch.ones(block.num_edges, device="cuda")
        calls["transpose + torch csr.t() @ grad"] = lambda: matrix_of(block, values).t() @ grad
        if dgl is not None:
            leaf = x.detach().clone().requires_grad_()
            out = dgl.ops.copy_u_sum(theirs, leaf)
            calls["dgl copy_u_sum's gradient"] = lambda: torch.autograd.grad(
                out, leaf, grad, retain_graph=True
            )[0]
    return calls


def sums(options: argparse.Namespace, block: Block, dgl: Any, rate: float, out: Report) -> None:
    """Check and time the forward and the backward at every width."""
    exact = Exact(block)
    theirs = None if dgl is None else dgl_block(dgl, block, 0)
    for dim in options.dims:
        for dtype in (torch.float32, torch.bfloat16):
            draws = torch.Generator("cuda").manual_seed(dim)
            x = torch.randn(block.num_src, dim, generator=draws, device="cuda").to(dtype)
            grad = torch.randn(block.num_dst, dim, generator=draws, device="cuda").to(dtype)
            label = "" if dtype == torch.float32 else " bfloat16"
            rows = (block.num_src + block.num_dst) * dim * x.element_size()
            floor_ms = (rows + 4 * (block.num_edges + block.num_dst)) / rate * 1e3
            for what, calls, expected, sizes, terms in (
                ("forward", forward_calls(block, x, theirs, dgl, options.peers),
                 exact.forward(x), exact.forward(x.abs()), exact.longest),
                ("backward", backward_calls(block, x, grad, theirs, dgl, options.peers),
                 exact.backward(grad), exact.backward(grad.abs()), exact.most_uses),
            ):  # fmt: skip
                for name, call in calls.items():
                    require_within(call(), expected, sizes, terms, f"{what} {name} {dim}{label}")
                del expected, sizes
                results = block.num_dst if what == "forward" else block.num_src
                through = (block.num_edges + results) * dim * x.element_size() / 1e9
                times = time_alternating(calls, options.rounds, options.calls)
                out.add(what + label, dim, times, floor_ms=floor_ms, through_l2_gb=through)


def attention(options: argparse.Namespace, block: Block, dgl: Any, out: Report) -> None:
    """Check and time an attention layer without its products: forward, and with gradients."""
    ops = torch.ops.gnnbench
    draws = torch.Generator("cuda").manual_seed(1)

    def leaf(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draws, device="cuda").requires_grad_()

    z, of_source = leaf(block.num_src, HEADS, WIDTH), leaf(block.num_src, HEADS)
    of_destination, grad = leaf(block.num_dst, HEADS), leaf(block.num_dst, HEADS, WIDTH).detach()
    inputs = (z, of_source, of_destination)
    layers: dict[str, Callable[[], Tensor]] = {
        "ours": lambda: attend(block, *inputs, SLOPE),
        "Memory-Aware 8 x 32": lambda: attend_memory_aware(block, *inputs, SLOPE),
        "Memory-Aware by warps": lambda: attend_memory_aware_warp(block, *inputs, SLOPE),
    }
    if dgl is not None:
        theirs = dgl_block(dgl, block, block.num_edges)

        def of_dgl() -> Tensor:
            scores = dgl.ops.u_add_v(theirs, of_source, of_destination)
            scores = torch.nn.functional.leaky_relu(scores, SLOPE)
            shares = dgl.ops.edge_softmax(theirs, scores)
            out: Tensor = dgl.ops.u_mul_e_sum(theirs, z, shares.unsqueeze(-1))
            return out

        layers["dgl"] = of_dgl
    # Reference in float64 by torch.
    wide = [t.detach().double().requires_grad_() for t in inputs]
    exact = Exact(block)
    scores = torch.nn.functional.leaky_relu(wide[1][exact.columns] + wide[2][exact.rows], SLOPE)
    top = scores.detach().max()  # a global maximum suffices: the scores are small
    shares = (scores - top).exp()
    total = torch.zeros_like(wide[2]).index_add(0, exact.rows, shares)
    terms = (shares / total[exact.rows]).unsqueeze(-1) * wide[0][exact.columns]
    expected = terms.new_zeros(grad.shape).index_add(0, exact.rows, terms)
    gradients = torch.autograd.grad(expected, wide, grad.double())
    for name, layer in layers.items():
        actual = (layer(), *torch.autograd.grad(layer(), inputs, grad))
        for which, (a, b) in enumerate(zip(actual, (expected, *gradients), strict=True)):
            if not torch.allclose(a.double(), b, rtol=1e-3, atol=1e-3):
                sys.exit(f"WRONG: attention {name}, tensor {which}")
    times = time_alternating(layers, options.rounds, options.calls)
    out.add("attention", HEADS * WIDTH, times)
    both = {
        name: lambda layer=layer: torch.autograd.grad(layer(), inputs, grad)
        for name, layer in layers.items()
    }
    out.add("att. both", HEADS * WIDTH, time_alternating(both, options.rounds, options.calls))
    weights = torch.rand(block.num_edges, HEADS, generator=draws, device="cuda")
    back = ops.transpose(block.indptr, block.indices, block.num_src)
    x, ids = z.detach(), (block.indptr, block.indices)
    parts: dict[str, Call] = {
        "edge_add": lambda: ops.edge_add(*ids, of_source.detach(), of_destination.detach()),
        "edge_softmax": lambda: ops.edge_softmax(block.indptr, weights),
        "edge_softmax_backward": lambda: ops.edge_softmax_backward(block.indptr, weights, weights),
        "aggregate_heads": lambda: ops.aggregate_heads(*ids, x, weights, block.num_dst),
        "aggregate_heads_transposed": lambda: ops.aggregate_heads_transposed(*back, grad, weights),
        "edge_dots": lambda: ops.edge_dots(*ids, grad, x),
        "edge_sums by destination": lambda: ops.edge_sums(block.indptr, weights),
        "edge_sums by source": lambda: ops.edge_sums(back[0], weights, back[2]),
    }
    out.add("att. parts", HEADS * WIDTH, time_alternating(parts, options.rounds, options.calls))


def transposes(options: argparse.Namespace, block: Block, out: Report) -> None:
    """Check and time the transpose, which must equal a stable sort."""
    ops = torch.ops.gnnbench
    _, dst, edge = ops.transpose(block.indptr, block.indices, block.num_src)
    order = torch.argsort(block.indices, stable=True)
    if not torch.equal(edge.long(), order) or not torch.equal(dst.long(), Exact(block).rows[order]):
        sys.exit("WRONG: transpose")
    calls: dict[str, Call] = {
        "transpose": lambda: ops.transpose(block.indptr, block.indices, block.num_src),
        "torch sort, stable": lambda: torch.sort(block.indices, stable=True),
        "neighbor_groups": lambda: ops.neighbor_groups(block.indptr, 32),
    }
    out.add("prepare", 0, time_alternating(calls, options.rounds, options.calls))


def table(rows: list[dict[str, Any]]) -> None:
    """Print the times, one line per kernel and one column per width."""
    dims = sorted({r["dim"] for r in rows if r["what"] in ("forward", "backward")})
    print("\nms" + " " * 48 + "".join(f"{d:>10}" for d in dims))
    for what in ("forward", "backward"):
        own = [r for r in rows if r["what"] == what]
        floors = {r["dim"]: r["floor_ms"] for r in own}
        names = {"floor": floors}
        for r in own:
            names.setdefault(r["name"], {})[r["dim"]] = r["ms"]
        for name, times in names.items():
            cells = "".join(f"{times[d]:10.4f}" if d in times else " " * 10 for d in dims)
            print(f"{what:10} {name:38} {cells}")


def main() -> None:
    """Check and time all kernels."""
    options = arguments()
    load_native()
    begin = time.perf_counter()
    block = input_block(options)
    rate = copy_rate()
    facts = {
        "torch": torch.__version__, "device": torch.cuda.get_device_name(),
        "destinations": block.num_dst, "sources": block.num_src, "edges": block.num_edges,
        "copy_gb_per_s": rate / 1e9, "turns": options.rounds, "calls": options.calls,
    }  # fmt: skip
    print(f"{facts} (made in {time.perf_counter() - begin:.1f} s)", flush=True)
    dgl = dgl_or_none() if options.peers else None
    out = Report(options.out, facts)
    transposes(options, block, out)
    sums(options, block, dgl, rate, out)
    attention(options, block, dgl, out)
    table(out.rows)


if __name__ == "__main__":
    main()
