"""Measure the rates of reading rows of a large table in pinned host memory, and a match matrix.

Batches have distinct ids, some of them hubs that many batches contain. The first bytes of a table
row are its number. Rows are read per batch (``page-ordered``), or in windows as ``features=window``
does: each row is read once and written to every batch (``batches``), or the union is fetched and
batches are copied from it (``union``). For comparison: unordered ids (``naive``, ``aligned``),
sorted ids (``ids in order``), only the rows that the previous batch lacks (``match``) and, with
``--peers``, DGL's and GraphBolt's gathers of the same rows. The table is in registered memory and
in memory of the driver (``vmm``), whose allocation takes seconds. Also: a pinned copy of a batch's
bytes, and the overlaps of ``--matrix`` batches. Rates count distinct rows and include ordering and
copies; medians. The rows read are compared with the row numbers. Exits with 1 if they differ.

    python native/bench/memory_io.py --table-gib 48 --out memory_io.json
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gnnbench.kernels.features import (
    ACCESSES,
    DEPTH,
    PAGE_BYTES,
    PAGE_ORDERED,
    READERS,
    gather_once,
    gather_over,
    gather_zero_copy,
)
from gnnbench.kernels.id_set import union_ids
from gnnbench.kernels.library import load_native
from gnnbench.kernels.locked import REGISTERED, VMM, lock, unlock, vmm_memory
from gnnbench.kernels.match import overlaps
from gnnbench.measure.machine import revision

Row = dict[str, Any]
BACK_TO_BACK_S = 0.02  # duration of back-to-back calls before a synchronisation


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table-gib", type=float, default=48.0)
    parser.add_argument("--row-bytes", type=int, default=512)
    parser.add_argument("--rows", type=int, default=1_260_000, help="distinct rows per batch")
    parser.add_argument("--hubs", type=float, default=0.5, help="share of hubs in a batch")
    parser.add_argument("--windows", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--blocks", type=int, nargs="+", default=[READERS], help="reader blocks")
    parser.add_argument("--depths", type=int, nargs="+", default=[DEPTH], help="rows at once")
    parser.add_argument("--page-bytes", type=int, nargs="+", default=[PAGE_BYTES])
    parser.add_argument("--peers", action="store_true", help="also time DGL and GraphBolt")
    parser.add_argument("--memory", nargs="+", default=[REGISTERED, VMM])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--matrix", type=int, nargs=3, default=[1000, 300_000, 100_000_000],
                        metavar=("BATCHES", "IDS", "NODES"))  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("memory_io.json"))
    return parser.parse_args()


def seconds(call: Callable[[], Any], repeats: int) -> float:
    """Return seconds per back-to-back call, as in an epoch; median after a warm-up."""
    taken, calls = [], 1
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
        taken.append((time.perf_counter() - begin) / calls)
        calls = max(1, int(BACK_TO_BACK_S / taken[0]))
    return statistics.median(taken[1:])


def draw_batches(count: int, rows: int, nodes: int, hubs: float) -> list[Tensor]:
    """Draw batches of distinct int32 ids in random order; ``hubs`` is the share of hubs."""
    draw = torch.Generator("cuda").manual_seed(1)
    num_hubs = max(1, int(rows * 1.5))  # a batch of hubs only contains two thirds of them
    spread = torch.randperm(nodes, generator=draw, device="cuda", dtype=torch.int32)
    batches = []
    for _ in range(count):
        chosen = torch.randperm(num_hubs, generator=draw, device="cuda")[: int(rows * hubs)]
        rest = torch.randint(num_hubs, nodes, (rows,), generator=draw, device="cuda").unique()
        rest = rest[torch.randperm(rest.numel(), generator=draw, device="cuda")]
        ids = spread[torch.cat([chosen, rest[: rows - chosen.numel()]])]
        batches.append(ids[torch.randperm(ids.numel(), generator=draw, device="cuda")])
    return batches


def make_table(nodes: int, columns: int, memory: str) -> Tensor:
    """Create an int32 ``[nodes, columns]`` table that the GPU can read, in ``memory``."""
    if memory == VMM:
        return vmm_memory(nodes * columns * 4, "cuda").view(torch.int32).view(nodes, columns)
    table = torch.empty((nodes, columns), dtype=torch.int32).fill_(0)  # allocates its pages
    if code := lock(table):
        sys.exit(f"the table cannot be pinned (CUDA error {code})")
    return table


def require_rows(rows: Tensor, ids: Tensor, what: str) -> None:
    """Exit if a row does not begin with its number."""
    if not torch.equal(rows[:, 0], ids):
        sys.exit(f"NOT EQUAL: {what}")


def peer_gathers(table: Tensor) -> dict[str, Callable[[Tensor], Tensor]]:
    """Return DGL's and GraphBolt's gathers from pinned memory by name."""
    import dgl
    from dgl import graphbolt

    return {
        "dgl": lambda ids: dgl.utils.gather_pinned_tensor_rows(table, ids),
        "graphbolt": lambda ids: graphbolt.index_select(table, ids),
    }


def read_rates(table: Tensor, batches: list[Tensor], options: argparse.Namespace) -> list[Row]:
    """Measure rates by method, window and launch shape."""
    results = []
    for window in options.windows:
        some = batches[:window]
        ways: dict[str, Callable[[Tensor], Tensor]] = {
            access: partial(gather_zero_copy, table, access=access)
            for access in ACCESSES
            if access != PAGE_ORDERED
        }
        ways |= peer_gathers(table) if options.peers else {}
        for way, gather in ways.items() if window == options.windows[0] else ():
            results.append(per_batch(table, some, way, gather, options))
        if window == options.windows[0]:
            inorder = [ids.sort().values for ids in some]
            results.append(per_batch(table, inorder, "ids in order", ways["naive"], options))
        for blocks, depth, page in itertools.product(
            options.blocks, options.depths, options.page_bytes
        ):

            def ordered(ids: Tensor) -> Tensor:
                return gather_zero_copy(table, ids, PAGE_ORDERED, page, blocks, depth)  # noqa: B023

            shape = {"blocks": blocks, "depth": depth, "page_bytes": page}
            results.append(per_batch(table, some, PAGE_ORDERED, ordered, options) | shape)
            if page == options.page_bytes[0]:
                results += [
                    row | {**shape, "page_bytes": None} if row["way"] == "batches" else row | shape
                    for row in windowed(table, some, ordered, blocks, depth, options)
                ]
        if window > 1:
            results.append(match_rate(table, some[:2], options))
        nodes = table.shape[0]
        set_ms = seconds(lambda: union_ids(some, nodes), options.repeats) * 1e3  # noqa: B023
        results.append({"way": "union_ids alone", "window": window, "ms": set_ms})
    return results


def rate(way: str, some: list[Tensor], loaded: int, took: float, row_bytes: int) -> Row:
    """Return a result row; ``loaded`` rows crossed the link."""
    requested = sum(b.numel() for b in some)
    return {
        "way": way, "window": len(some), "asked": requested, "share": loaded / requested,
        "ms": took * 1e3, "gb_per_s": loaded * row_bytes / took / 1e9,
    }  # fmt: skip


def per_batch(
    table: Tensor, some: list[Tensor], way: str, gather: Callable[[Tensor], Tensor],
    options: argparse.Namespace,
) -> Row:  # fmt: skip
    """Time reading each batch separately."""

    def call() -> Tensor:
        for ids in some:
            rows = gather(ids)
        return rows

    require_rows(call(), some[-1], way)
    took = seconds(call, options.repeats)
    return rate(way, some, sum(b.numel() for b in some), took, table.shape[1] * 4)


def windowed(
    table: Tensor, some: list[Tensor], ordered: Callable[[Tensor], Tensor], blocks: int, depth: int,
    options: argparse.Namespace,
) -> list[Row]:  # fmt: skip
    """Time reading a window: rows read once, or their union fetched and copied from."""
    nodes = table.shape[0]
    distinct = union_ids(some, nodes).ids.numel()
    count = torch.zeros(1, dtype=torch.int64, device="cuda")
    requested = sum(b.numel() for b in some)
    out = torch.empty((requested, table.shape[1]), dtype=torch.int32, device="cuda")

    def once() -> Tensor:
        return gather_once(table, some, count, out, blocks, depth)

    def copied() -> Tensor:
        union = union_ids(some, nodes)
        rows = ordered(union.ids)
        for ids in some:
            batch = union.gather(rows, ids)
        return batch

    require_rows(once(), torch.cat(some), "gather_once")
    if int(count) != distinct:
        sys.exit("NOT EQUAL: rows read once")
    require_rows(copied(), some[-1], "union")
    row_bytes = table.shape[1] * 4
    return [
        rate(way, some, distinct, seconds(call, options.repeats), row_bytes)
        for way, call in {"batches": once, "union": copied}.items()
    ]


def match_rate(table: Tensor, two: list[Tensor], options: argparse.Namespace) -> Row:
    """Time two alternating batches that reuse each other's rows (Match): cost and saving.

    ``own_ms``: time beyond that of reading only the rows that the other batch lacks.
    ``cost_of_transfer``: ``own_ms`` relative to the transfer time of the bytes not read, at the
    rate of all rows. ``cost_of_saved``: relative to the time that reading all rows takes beyond
    reading the missing ones. That time is shorter, because few rows are read at a lower rate.
    """
    nodes = table.shape[0]
    slots, generations = torch.zeros(2, nodes, dtype=torch.int32, device="cuda").unbind()
    hits = torch.zeros(1, dtype=torch.int64, device="cuda")
    cached, generation = table[:0].cuda(), 1

    def step(ids: Tensor) -> Tensor:
        nonlocal cached, generation
        cached = gather_over(
            table, cached, slots, generations, generation, ids, hits, remember=True
        )
        generation += 1
        return cached

    def ordered(some: Sequence[Tensor]) -> Callable[[], list[Tensor]]:
        return lambda: [gather_zero_copy(table, ids, PAGE_ORDERED) for ids in some]

    one, other = two
    shared = torch.isin(one, other), torch.isin(other, one)
    missing = [ids[~in_both] for ids, in_both in zip(two, shared, strict=True)]
    for ids in (one, other, one):
        hits.zero_()
        require_rows(step(ids), ids, "match")
    if int(hits) != int(shared[0].sum()):
        sys.exit("NOT EQUAL: rows cached by match")
    took = seconds(lambda: (step(other), step(one)), options.repeats)
    whole, missing_s = (seconds(ordered(some), options.repeats) for some in (two, missing))
    loaded = sum(ids.numel() for ids in missing)
    rates = rate("match", two, loaded, took, table.shape[1] * 4)
    saved_s = whole * (1 - rates["share"])
    return rates | {
        "all_ms": whole * 1e3, "missing_ms": missing_s * 1e3, "own_ms": (took - missing_s) * 1e3,
        "cost_of_transfer": (took - missing_s) / saved_s,
        "cost_of_saved": (took - missing_s) / (whole - missing_s),
    }  # fmt: skip


def match_matrix(batches: int, ids: int, nodes: int) -> Row:
    """Time the overlaps of random batches; verify two pairs."""
    draw = torch.Generator("cuda").manual_seed(2)
    id_sets = [
        torch.randint(nodes, (ids,), generator=draw, device="cuda").unique().int()
        for _ in range(batches)
    ]
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    begin = time.perf_counter()
    counts = overlaps(id_sets)
    took = time.perf_counter() - begin
    for i, j in ((0, 1), (0, batches - 1)):
        if int(counts[i, j]) != int(torch.isin(id_sets[i], id_sets[j]).sum()):
            sys.exit("NOT EQUAL: overlaps")
    peak = torch.cuda.max_memory_allocated() - before
    return {"way": "overlaps", "batches": batches, "s": took, "bytes": peak}


def main() -> None:
    """Measure all parts, and print and write each as it completes."""
    options = arguments()
    load_native()
    columns = options.row_bytes // 4
    nodes = int(options.table_gib * (1 << 30)) // (columns * 4)
    results: list[Row] = []

    def add(rows: Sequence[Row], **also: Any) -> None:
        for row in rows:
            results.append({**also, **row})
            print(json.dumps(results[-1]), flush=True)
        facts = {**revision(), "torch": torch.__version__,
                 "device": torch.cuda.get_device_name(),
                 "table_rows": nodes, "row_bytes": columns * 4}  # fmt: skip
        options.out.write_text(json.dumps({**facts, "results": results}, indent=1) + "\n")

    if options.matrix[0] > 1:
        add([match_matrix(*options.matrix)])
    pinned = torch.zeros(options.rows * columns * 4, dtype=torch.uint8).pin_memory()
    on_gpu = torch.empty_like(pinned, device="cuda")
    took = seconds(lambda: on_gpu.copy_(pinned, non_blocking=True), options.repeats)
    add([{"way": "pinned copy", "gb_per_s": pinned.numel() / took / 1e9}])
    batches = draw_batches(max(options.windows), options.rows, nodes, options.hubs)
    for memory in options.memory:
        begin = time.perf_counter()
        table = make_table(nodes, columns, memory)
        add([{"way": "locking", "s": time.perf_counter() - begin}], memory=memory)
        table[:, 0] = torch.arange(nodes, dtype=torch.int32)
        add(read_rates(table, batches, options), memory=memory)
        if memory == REGISTERED:
            unlock(table)
        del table


if __name__ == "__main__":
    main()
