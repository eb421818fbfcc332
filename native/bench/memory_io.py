"""Rates of reading rows of a large table in locked host memory, and the time of a match matrix.

Batches of distinct ids, some of them hubs that many batches have, are read out of a table of rows
whose first bytes tell their number: each batch by itself (``page-ordered``), and in windows, as
``features=window`` does: each row read once and written to every batch (``batches``), or the union
fetched and batches copied out of it (``union``). For comparison, ids as they come (``naive``,
``aligned``), ids that are in order as they come (``ids in order``), what the last batch had not
(``match``) and, with ``--peers``, DGL's and GraphBolt's gathers of the same rows. From registered
memory and from the driver (``vmm``), which takes seconds to make; also a pinned copy of as many
bytes as a batch has. Then overlaps of ``--matrix`` batches. Rates are of distinct rows,
ordering and copying out included; medians. The rows read are compared with the table's first bytes.
Exit code 1 where they differ.

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
BACK_TO_BACK_S = 0.02  # short calls are repeated for so long before the host waits for them


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table-gib", type=float, default=48.0)
    parser.add_argument("--row-bytes", type=int, default=512)
    parser.add_argument("--rows", type=int, default=1_260_000, help="distinct rows of a batch")
    parser.add_argument("--hubs", type=float, default=0.5, help="of a batch's rows: among the hubs")
    parser.add_argument("--windows", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--blocks", type=int, nargs="+", default=[READERS], help="of the reader")
    parser.add_argument("--depths", type=int, nargs="+", default=[DEPTH], help="rows at once")
    parser.add_argument("--page-bytes", type=int, nargs="+", default=[PAGE_BYTES])
    parser.add_argument("--peers", action="store_true", help="DGL and GraphBolt, built with CUDA")
    parser.add_argument("--memory", nargs="+", default=[REGISTERED, VMM])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--matrix", type=int, nargs=3, default=[1000, 300_000, 100_000_000],
                        metavar=("BATCHES", "IDS", "NODES"))  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("memory_io.json"))
    return parser.parse_args()


def seconds(call: Callable[[], Any], repeats: int) -> float:
    """Seconds of a call among some back to back, as in an epoch; median after a warm-up."""
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


def drawn(count: int, rows: int, nodes: int, hubs: float) -> list[Tensor]:
    """Batches of distinct int32 ids in random order; a share of each is drawn of few nodes."""
    draw = torch.Generator("cuda").manual_seed(1)
    few = max(1, int(rows * 1.5))  # hubs: two thirds of them are in a batch where its share is 1
    spread = torch.randperm(nodes, generator=draw, device="cuda", dtype=torch.int32)
    found = []
    for _ in range(count):
        chosen = torch.randperm(few, generator=draw, device="cuda")[: int(rows * hubs)]
        rest = torch.randint(few, nodes, (rows,), generator=draw, device="cuda").unique()
        rest = rest[torch.randperm(rest.numel(), generator=draw, device="cuda")]
        ids = spread[torch.cat([chosen, rest[: rows - chosen.numel()]])]
        found.append(ids[torch.randperm(ids.numel(), generator=draw, device="cuda")])
    return found


def made(nodes: int, columns: int, memory: str) -> Tensor:
    """A table of int32 ``[nodes, columns]`` that the GPU reads, registered in place or made so."""
    if memory == VMM:
        return vmm_memory(nodes * columns * 4, "cuda").view(torch.int32).view(nodes, columns)
    table = torch.empty((nodes, columns), dtype=torch.int32).fill_(0)  # its pages are there
    if code := lock(table):
        sys.exit(f"the table cannot be locked (CUDA error {code})")
    return table


def require(rows: Tensor, ids: Tensor, what: str) -> None:
    """End the program where a row does not begin with its number."""
    if not torch.equal(rows[:, 0], ids):
        sys.exit(f"NOT EQUAL: {what}")


def peers(table: Tensor) -> dict[str, Callable[[Tensor], Tensor]]:
    """How DGL and GraphBolt have a GPU gather rows of locked memory, by name."""
    import dgl
    from dgl import graphbolt

    return {
        "dgl": lambda ids: dgl.utils.gather_pinned_tensor_rows(table, ids),
        "graphbolt": lambda ids: graphbolt.index_select(table, ids),
    }


def read(table: Tensor, batches: list[Tensor], options: argparse.Namespace) -> list[Row]:
    """Rates by the way of reading, window and the reader's shape."""
    found = []
    for window in options.windows:
        some = batches[:window]
        ways: dict[str, Callable[[Tensor], Tensor]] = {
            access: partial(gather_zero_copy, table, access=access)
            for access in ACCESSES
            if access != PAGE_ORDERED
        }
        ways |= peers(table) if options.peers else {}
        for way, gather in ways.items() if window == options.windows[0] else ():
            found.append(one_by_one(table, some, way, gather, options))
        if window == options.windows[0]:
            inorder = [ids.sort().values for ids in some]
            found.append(one_by_one(table, inorder, "ids in order", ways["naive"], options))
        for blocks, depth, page in itertools.product(
            options.blocks, options.depths, options.page_bytes
        ):

            def ordered(ids: Tensor) -> Tensor:
                return gather_zero_copy(table, ids, PAGE_ORDERED, page, blocks, depth)  # noqa: B023

            shape = {"blocks": blocks, "depth": depth, "page_bytes": page}
            found.append(one_by_one(table, some, PAGE_ORDERED, ordered, options) | shape)
            if page == options.page_bytes[0]:
                found += [
                    row | {**shape, "page_bytes": None} if row["way"] == "batches" else row | shape
                    for row in together(table, some, ordered, blocks, depth, options)
                ]
        if window > 1:
            found.append(matched(table, some[:2], options))
        nodes = table.shape[0]
        set_ms = seconds(lambda: union_ids(some, nodes), options.repeats) * 1e3  # noqa: B023
        found.append({"way": "union_ids alone", "window": window, "ms": set_ms})
    return found


def rate(way: str, some: list[Tensor], loaded: int, took: float, row_bytes: int) -> Row:
    """A line of the results; ``loaded`` rows went over the link."""
    asked = sum(b.numel() for b in some)
    return {
        "way": way, "window": len(some), "asked": asked, "share": loaded / asked, "ms": took * 1e3,
        "gb_per_s": loaded * row_bytes / took / 1e9,
    }  # fmt: skip


def one_by_one(
    table: Tensor, some: list[Tensor], way: str, gather: Callable[[Tensor], Tensor],
    options: argparse.Namespace,
) -> Row:  # fmt: skip
    """Each batch by itself."""

    def call() -> Tensor:
        for ids in some:
            rows = gather(ids)
        return rows

    require(call(), some[-1], way)
    took = seconds(call, options.repeats)
    return rate(way, some, sum(b.numel() for b in some), took, table.shape[1] * 4)


def together(
    table: Tensor, some: list[Tensor], ordered: Callable[[Tensor], Tensor], blocks: int, depth: int,
    options: argparse.Namespace,
) -> list[Row]:  # fmt: skip
    """All batches at once: rows read once, or their union fetched and copied out of."""
    nodes = table.shape[0]
    distinct = union_ids(some, nodes).ids.numel()
    count = torch.zeros(1, dtype=torch.int64, device="cuda")
    asked = sum(b.numel() for b in some)
    out = torch.empty((asked, table.shape[1]), dtype=torch.int32, device="cuda")

    def once() -> Tensor:
        return gather_once(table, some, count, out, blocks, depth)

    def copied() -> Tensor:
        held = union_ids(some, nodes)
        rows = ordered(held.ids)
        for ids in some:
            batch = held.gather(rows, ids)
        return batch

    require(once(), torch.cat(some), "gather_once")
    if int(count) != distinct:
        sys.exit("NOT EQUAL: rows read once")
    require(copied(), some[-1], "union")
    row_bytes = table.shape[1] * 4
    return [
        rate(way, some, distinct, seconds(call, options.repeats), row_bytes)
        for way, call in {"batches": once, "union": copied}.items()
    ]


def matched(table: Tensor, two: list[Tensor], options: argparse.Namespace) -> Row:
    """Two batches in turns over the rows of the other (Match): its cost and what it saves.

    ``own_ms``: time beyond that of reading the rows that the other has not, their ids given.
    ``cost_of_transfer``: that, by the time in which the bytes not read are read at the rate of the
    others; ``cost_of_saved``: by the time that reading all rows takes beyond reading those, which
    is less, for few rows of a large table are read at a lower rate than many.
    """
    nodes = table.shape[0]
    slots, generations = torch.zeros(2, nodes, dtype=torch.int32, device="cuda").unbind()
    hits = torch.zeros(1, dtype=torch.int64, device="cuda")
    kept, generation = table[:0].cuda(), 1

    def step(ids: Tensor) -> Tensor:
        nonlocal kept, generation
        kept = gather_over(table, kept, slots, generations, generation, ids, hits, remember=True)
        generation += 1
        return kept

    def ordered(some: Sequence[Tensor]) -> Callable[[], list[Tensor]]:
        return lambda: [gather_zero_copy(table, ids, PAGE_ORDERED) for ids in some]

    one, other = two
    shared = torch.isin(one, other), torch.isin(other, one)
    missing = [ids[~there] for ids, there in zip(two, shared, strict=True)]
    for ids in (one, other, one):
        hits.zero_()
        require(step(ids), ids, "match")
    if int(hits) != int(shared[0].sum()):
        sys.exit("NOT EQUAL: rows kept by match")
    took = seconds(lambda: (step(other), step(one)), options.repeats)
    whole, least = (seconds(ordered(some), options.repeats) for some in (two, missing))
    loaded = sum(ids.numel() for ids in missing)
    rates = rate("match", two, loaded, took, table.shape[1] * 4)
    kept_s = whole * (1 - rates["share"])
    return rates | {
        "all_ms": whole * 1e3, "missing_ms": least * 1e3, "own_ms": (took - least) * 1e3,
        "cost_of_transfer": (took - least) / kept_s,
        "cost_of_saved": (took - least) / (whole - least),
    }  # fmt: skip


def matrix(batches: int, ids: int, nodes: int) -> Row:
    """Overlaps of random batches; two pairs are counted again."""
    draw = torch.Generator("cuda").manual_seed(2)
    given = [
        torch.randint(nodes, (ids,), generator=draw, device="cuda").unique().int()
        for _ in range(batches)
    ]
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    begin = time.perf_counter()
    found = overlaps(given)
    took = time.perf_counter() - begin
    for i, j in ((0, 1), (0, batches - 1)):
        if int(found[i, j]) != int(torch.isin(given[i], given[j]).sum()):
            sys.exit("NOT EQUAL: overlaps")
    peak = torch.cuda.max_memory_allocated() - before
    return {"way": "overlaps", "batches": batches, "s": took, "bytes": peak}


def main() -> None:
    """Everything, shown as it comes and written after each part."""
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
        add([matrix(*options.matrix)])
    pinned = torch.zeros(options.rows * columns * 4, dtype=torch.uint8).pin_memory()
    here = torch.empty_like(pinned, device="cuda")
    took = seconds(lambda: here.copy_(pinned, non_blocking=True), options.repeats)
    add([{"way": "pinned copy", "gb_per_s": pinned.numel() / took / 1e9}])
    batches = drawn(max(options.windows), options.rows, nodes, options.hubs)
    for memory in options.memory:
        begin = time.perf_counter()
        table = made(nodes, columns, memory)
        add([{"way": "locking", "s": time.perf_counter() - begin}], memory=memory)
        table[:, 0] = torch.arange(nodes, dtype=torch.int32)
        add(read(table, batches, options), memory=memory)
        if memory == REGISTERED:
            unlock(table)
        del table


if __name__ == "__main__":
    main()
