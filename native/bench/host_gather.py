"""Time the host gather and copies of as many bytes; with a GPU also the transfer of rows to it.

Each round calls every method once, each with different ids, so that no rows are still cached and
background load affects all methods. Times are wall time and CPU time per thread (which excludes
waiting for other processes). Ratios are taken per round. Writes JSON to --out. Exits with 1 if rows
differ from the table's.

    python native/bench/host_gather.py --pages shared --out host_gather.json

Tables: ``small`` pages (4 KiB), ``huge`` pages (2 MiB, if the kernel supports them), or ``shared``,
in the shared-memory cache of a run. Methods: ``copy``, torch's copy of consecutive rows; ``streamed
copy``, our gather of consecutive rows with non-temporal stores; ``gather`` and torch's
``index_select`` of random rows. With a GPU: ``pinned copy`` alone, torch's index_select into pinned
memory followed by a copy, and our gather with copies in chunks.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from gnnbench.core.counters import Counts
from gnnbench.datasets import shared_memory
from gnnbench.features.host import StagedGather
from gnnbench.kernels import shared
from gnnbench.kernels.features import gather

Call = Callable[[Tensor, int], Tensor]  # (ids, first row of as many consecutive rows) -> rows


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table-bytes", type=int, default=1 << 32)
    parser.add_argument("--row-bytes", type=int, default=512)
    parser.add_argument("--rows", type=int, default=275_000, help="distinct rows per gather")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=0, help="0: all usable cores")
    parser.add_argument(
        "--pages", choices=("small", "huge", "shared"), default="huge",
        type=lambda pages: "shared" if pages == "held" else pages,  # earlier name
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("host_gather.json"))
    return parser.parse_args()


def make_table(options: argparse.Namespace) -> tuple[Tensor, int]:
    """Create a table and return it with the number of its bytes in huge pages.

    Each word is the hash of its position. Rows are float32 if the width allows, else uint8.
    """
    rows = options.table_bytes // options.row_bytes
    size = rows * options.row_bytes

    def fill(part: memoryview, start: int) -> None:
        whole = torch.frombuffer(part, dtype=torch.uint8)
        words = whole[: len(part) // 8 * 8].view(torch.int64)
        torch.arange(start // 8, start // 8 + len(words), out=words)
        words.mul_(-7046029254386353131)  # odd, so that all words differ

    if options.pages == "shared":
        descriptor = shared_memory.create_shared("table", size, fill)
        table = shared.map_shared(shared_memory.address_of(descriptor), torch.uint8, (size,))
        huge = shared_memory.memory_sizes(descriptor)["huge_bytes"]
        os.close(descriptor)
    else:
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(mmap.MADV_HUGEPAGE if options.pages == "huge" else mmap.MADV_NOHUGEPAGE)
        view = memoryview(memory)
        for start in range(0, size, shared_memory.CHUNK_BYTES):
            fill(view[start : start + shared_memory.CHUNK_BYTES], start)
        table = torch.frombuffer(memory, dtype=torch.uint8)
        smaps = Path("/proc/self/smaps").read_text().splitlines()
        huge = 1024 * sum(int(one.split()[1]) for one in smaps if one.startswith("AnonHuge"))
    whole = torch.float32 if options.row_bytes % 4 == 0 else torch.uint8
    return table.view(whole).view(rows, -1), huge


def bits(rows: Tensor) -> Tensor:
    """Return the bytes of rows, which can contain NaN."""
    return rows.view(torch.uint8)


def host_methods(table: Tensor, n: int) -> dict[str, Call]:
    """Return the methods without a GPU by name; all write to one result."""
    out = torch.empty((n, table.shape[1]), dtype=table.dtype)
    consecutive = torch.arange(len(table))
    return {
        "copy": lambda ids, first: out.copy_(table[first : first + n]),
        "streamed copy": lambda ids, first: gather(table, consecutive[first : first + n], out),
        "gather": lambda ids, first: gather(table, ids, out),
        "index_select": lambda ids, first: torch.index_select(table, 0, ids, out=out),
    }


def gpu_methods(table: Tensor, n: int) -> dict[str, Call]:
    """Return the methods with a GPU by name; each synchronises."""
    device = torch.device("cuda", 0)
    pinned = torch.empty((n, table.shape[1]), dtype=table.dtype, pin_memory=True)
    on_gpu = torch.empty((n, table.shape[1]), dtype=table.dtype, device=device)
    job: Any = SimpleNamespace(
        graph=SimpleNamespace(features=table), device=device, counts=Counts()
    )
    store = StagedGather(job)

    def synchronized(rows: Tensor) -> Tensor:
        torch.cuda.synchronize()
        return rows

    def selected(ids: Tensor) -> Tensor:
        torch.index_select(table, 0, ids, out=pinned)
        return synchronized(on_gpu.copy_(pinned, non_blocking=True))

    return {
        "pinned copy": lambda ids, first: synchronized(on_gpu.copy_(pinned, non_blocking=True)),
        "index_select + pinned copy": lambda ids, first: selected(ids),
        "gather + copy in chunks": lambda ids, first: synchronized(store.fetch(ids)),
    }


def main() -> None:
    """Check and time all methods."""
    options = arguments()
    if options.threads:
        torch.set_num_threads(options.threads)
    begin = time.perf_counter()
    table, huge = make_table(options)
    rows, n, threads = len(table), options.rows, torch.get_num_threads()
    facts = {
        "torch": torch.__version__, "threads": threads, "table_bytes": bits(table).numel(),
        "huge_bytes": huge, "pages": options.pages, "row_bytes": options.row_bytes, "rows": n,
        "load_1min": os.getloadavg()[0],
    }  # fmt: skip
    print(f"{facts} (made in {time.perf_counter() - begin:.1f} s)", flush=True)
    calls = host_methods(table, n)
    if torch.cuda.is_available():
        facts["device"] = torch.cuda.get_device_name()
        calls |= gpu_methods(table, n)
    draws = torch.Generator().manual_seed(options.seed)
    order = torch.randperm(rows, generator=draws)
    id_sets = [order[k * n : (k + 1) * n].contiguous() for k in range(rows // n)]
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for number in range(-len(calls), options.rounds * len(calls)):  # one round of warm-up
        name = list(calls)[number % len(calls)]
        ids, first = id_sets[number % len(id_sets)], (number * 7919) % (rows // n) * n
        wall, cpu = time.perf_counter(), time.process_time()
        actual = calls[name](ids, first)
        taken = time.perf_counter() - wall, (time.process_time() - cpu) / threads
        if number >= 0:
            times[name].append(taken)
            continue
        expected = table[ids] if "copy" not in name or "+" in name else table[first : first + n]
        if name != "pinned copy" and not torch.equal(bits(actual.cpu()), bits(expected)):
            sys.exit(f"NOT EQUAL: {name}")
    size = n * options.row_bytes
    results = []
    for name, own in times.items():
        row: dict[str, Any] = {"name": name}
        for which, clock in enumerate(("wall", "cpu")):
            values = sorted(t[which] for t in own)
            row[f"{clock}_ms"] = statistics.median(values) * 1e3
            row[f"{clock}_min_ms"] = values[0] * 1e3
            row[f"{clock}_gb_per_s"] = size / statistics.median(values) / 1e9
            for other in ("copy", "streamed copy", "index_select + pinned copy"):
                if other in times:
                    pairs = zip(times[other], own, strict=True)
                    ratio = statistics.median(o[which] / t[which] for o, t in pairs)
                    row[f"{clock}_rate_over {other}"] = ratio
        results.append(row)
        text = ", ".join(f"{k} {v:.3g}" for k, v in row.items() if k != "name")
        print(f"{name:<28} {text}", flush=True)
    options.out.write_text(json.dumps({**facts, "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
