"""Time gathers by PyTorch-Direct's Listing 2, and FastGL's Match over a cache.

``listing2``: 200,000 distinct random rows of a host table of 4 GiB, by each kind of access, for
rows around 1024 bytes. The requests per row by the model of the addresses are written next to the
time. Before that, the elementwise gathers are compared with ``index_select`` for many dtypes and
widths. For comparison: a copy of as many pinned bytes (``copy_seconds``).

``match``: an epoch of 20 batches of 8000 seeds, 15/10/5, on an R-MAT graph of scale 21 with 128
columns. Static caches of hubs, and Match over them, read the other rows on the GPU (``uva``) or
gather them with the cores (``host``, as published); in one pass or by masks. Rows and counts are
compared first.

``ncu``: hardware counters of the gathers of ``listing2``, if ``ncu`` (Nsight Compute) is on the
PATH; else ``no_ncu`` says why there are none.

Times are medians between two events; caches are not flushed. Writes OUT/gathers.json. A check or a
part that fails is listed under ``failed``, the others go on, and the program exits with 1.

    python native/bench/published_gathers.py OUT
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import torch
from operators import rmat
from published_samplers import Record, parse_out
from torch import Tensor

from gnnbench.core.cell import Cell
from gnnbench.core.counters import Counts
from gnnbench.core.errors import UsageError
from gnnbench.core.job import Job
from gnnbench.features.base import RowStore
from gnnbench.features.cache import StaticCache
from gnnbench.features.host import StagedGather
from gnnbench.features.match import MatchStore
from gnnbench.features.policies.policy import Policy
from gnnbench.features.single_pass import CachedSinglePassGather
from gnnbench.features.uva import ZeroCopyGather
from gnnbench.kernels.access import ACCESSES, ELEMENTWISE
from gnnbench.kernels.features import gather_zero_copy
from gnnbench.kernels.library import load_native
from gnnbench.kernels.locked import lock, unlock
from gnnbench.kernels.reference.zero_copy import lines
from gnnbench.kernels.rng import key
from gnnbench.kernels.sampler import hop_by_hop
from gnnbench.roofline import gathers
from gnnbench.roofline.perf import NoCounters

ROW_BYTES = (480, 1024, 1028, 1032, 1036, 1040, 1044)
ROWS, TABLE_BYTES = 200_000, 4 << 30
REPEATS = 9  # of a copy or gather
MODEL_TOLERANCE = 0.03  # of counted requests to modelled ones, before a difference is printed

CHECKED_ROWS, CHECKED_IDS = 3000, 4001
CHECKED_DTYPES = (
    torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.uint8, torch.int64,
)  # fmt: skip
CHECKED_WIDTHS = (1, 2, 3, 4, 31, 32, 33, 45, 64, 100, 120, 128, 257, 261, 602, 1024)

SCALE, EDGES, DIM = 21, 123_000_000, 128
BATCH_SIZE, BATCHES, FANOUTS = 8000, 20, (15, 10, 5)
CACHED_SHARES = (0.0, 0.07, 0.5, 1.0)
UVA_EPOCHS, HOST_EPOCHS = 7, 2  # timed


def median_seconds(call: Callable[[], Any], repeats: int) -> float:
    """Return the median seconds of single calls between events, after two calls of warm-up."""
    call()
    call()
    seconds = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        seconds.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(seconds)


def check_elementwise(record: Record) -> None:
    """Compare elementwise gathers with ``index_select``; odd widths in bytes must be refused."""
    draws, cases, refused = torch.Generator().manual_seed(1), 0, 0
    for dtype, width in product(CHECKED_DTYPES, CHECKED_WIDTHS):
        size = CHECKED_ROWS * width * dtype.itemsize
        raw = torch.randint(0, 256, (size,), dtype=torch.uint8, generator=draws)
        table = raw.view(dtype).view(CHECKED_ROWS, width).pin_memory()
        ids = torch.randint(0, CHECKED_ROWS, (CHECKED_IDS,), generator=draws)
        expected = table.view(torch.uint8).index_select(0, ids)  # bytes: NaNs must be equal, too
        for access, given in product(ELEMENTWISE, (ids.cuda(), ids.int().cuda())):
            name = f"{access} {dtype} {width} {given.dtype}"
            cases += 1
            if width * dtype.itemsize % 4:
                refused += record.check(f"not refused: {name}", is_refused(table, given, access))
            else:
                rows = gather_zero_copy(table, given, access)
                record.check(name, torch.equal(rows.cpu().view(torch.uint8), expected))
    record.say(f"{cases} gathers checked, {refused} of them refused (no multiple of 4 bytes)")


def is_refused(table: Tensor, ids: Tensor, access: str) -> bool:
    """Return whether a gather raises ``UsageError``."""
    try:
        gather_zero_copy(table, ids, access)
    except UsageError:
        return True
    return False


def measure_listing2(record: Record) -> None:
    """Check and time every kind of access for every width of a row."""
    flat = torch.arange(TABLE_BYTES // 4, dtype=torch.int32)
    if (code := lock(flat)) != 0:
        raise RuntimeError(f"cannot lock a table of {TABLE_BYTES} bytes: CUDA error {code}")
    print("bytes   lines  access               model  GB/s  of copy")
    try:
        for row_bytes in ROW_BYTES:
            measure_width(record, flat, row_bytes)
    finally:
        unlock(flat)


def measure_width(record: Record, flat: Tensor, row_bytes: int) -> None:
    """Check and time every kind of access for one width; ``flat`` holds 0, 1, 2 ... as int32."""
    width = row_bytes // 4
    table = flat[: flat.numel() // width * width].view(-1, width)
    ids = gathers.random_ids(row_bytes, ROWS, TABLE_BYTES)
    on_gpu = ids.cuda()
    expected = on_gpu[:, None] * width + torch.arange(width, device="cuda")
    modelled_ids = ids[: gathers.MODEL_ROWS]
    lines_per_row = lines(modelled_ids.numpy(), width) / modelled_ids.numel()
    target = torch.empty(ROWS, width, dtype=torch.int32, device="cuda")
    copy_seconds = median_seconds(lambda: target.copy_(table[:ROWS], non_blocking=True), REPEATS)
    for access in ACCESSES:
        gather = partial(gather_zero_copy, table, on_gpu, access)
        equal = bool((gather() == expected).all())
        record.check(f"{access} rows of {row_bytes} bytes", equal)
        seconds = median_seconds(gather, REPEATS)
        model = gathers.modelled(access, modelled_ids, row_bytes)
        rate = ROWS * row_bytes / seconds
        record.results["listing2"].append({
            "row_bytes": row_bytes, "access": access, "rows": ROWS, "seconds": seconds,
            "model_requests": model, "lines": lines_per_row, "bytes_per_s": rate,
            "copy_seconds": copy_seconds,
        })  # fmt: skip
        requests = "" if model is None else f"{model:.2f}"
        print(f"{row_bytes:5}  {lines_per_row:6.2f}  {access:20} {requests:>5}  {rate / 1e9:5.2f}"
              f"  {copy_seconds / seconds:6.3f}", flush=True)  # fmt: skip


def sample_epoch() -> tuple[SimpleNamespace, list[SimpleNamespace]]:
    """Return an R-MAT graph with random features in host memory, and an epoch's batches.

    A batch has only its ``input_nodes``, int32 ``[n]`` on the GPU.
    """
    indptr, indices = rmat(SCALE, EDGES, 1)
    nodes, batches = 1 << SCALE, []
    draws = torch.Generator("cuda").manual_seed(2)
    order = torch.randperm(nodes, generator=draws, device="cuda")
    seeds_of_epoch = order[: BATCHES * BATCH_SIZE].int()
    for number, seeds in enumerate(seeds_of_epoch.split(BATCH_SIZE)):
        batch = hop_by_hop(
            indptr, indices, seeds, FANOUTS, pick="floyd", frontier="cumulative",
            key=key(0, 0, "sample"), batch=number,
        )  # fmt: skip
        batches.append(SimpleNamespace(input_nodes=batch.input_nodes.clone()))
    table = torch.randn(nodes, DIM, generator=torch.Generator().manual_seed(3))
    graph = SimpleNamespace(
        name="rmat", features=table, num_nodes=nodes, num_edges=indices.numel(),
        indptr=indptr.cpu(), indices=indices.cpu(), train_idx=torch.arange(nodes), feature_dim=DIM,
    )  # fmt: skip
    return graph, batches


def build_stores(
    job: Job, share: float, uva: ZeroCopyGather, host: StagedGather
) -> dict[str, RowStore]:
    """Build caches of a share of the nodes, by degree, and Match over them, by name."""
    cache = StaticCache(job, Policy.named("degree"), share, 0, uva)
    of_cores = StaticCache(job, Policy.named("degree"), share, 0, host)
    for store in (cache, of_cores):
        store.prepare(lambda _: iter([]))
    masks = MatchStore(job, cache)
    if not isinstance(masks._single_pass, CachedSinglePassGather):
        raise RuntimeError("Match over a cache that the GPU fills does not gather in one pass")
    masks._single_pass = None  # no option turns it off
    return {
        "cache uva": cache,
        "match over cache uva, single pass": MatchStore(job, cache),
        "match over cache uva, masks": masks,
        "cache host": of_cores,
        "match over cache host, masks (published)": MatchStore(job, of_cores),
    }


def load_epoch(store: RowStore, batches: list[SimpleNamespace]) -> None:
    """Load the rows of all batches."""
    store.forget()
    for batch in batches:
        store.load(batch)


def check_rows(
    record: Record, label: str, store: RowStore, batches: list[SimpleNamespace], table: Tensor
) -> None:
    """Compare batches' rows with those of the table, up to the first difference."""
    for number, batch in enumerate(batches):
        equal = torch.equal(store.load(batch), table[batch.input_nodes.long()])
        if not record.check(f"{label} batch {number}", equal):
            break


def rows_per_batch(counts: Counts) -> dict[str, float]:
    """Return the mean rows of a batch by where they come from, and reset the counts."""
    row_bytes = DIM * 4
    sums = {where: n // row_bytes for _, name, where, n in counts.rows()
            if name == "feature_bytes" and n}  # fmt: skip
    counts.clear()
    return {where: rows / BATCHES for where, rows in sums.items()}


def measure_match(record: Record) -> None:
    """Check and time caches and Match over them, for every cached share."""
    graph, batches = sample_epoch()
    record.results["batch_rows"] = statistics.mean(b.input_nodes.numel() for b in batches)
    record.say(f"{len(batches)} batches of {record.results['batch_rows']:.0f} input nodes")
    on_gpu = graph.features.cuda()
    counts = Counts()
    job = Job(Cell("e", "s", "t", "", device="cuda"), graph, counts)
    uva, host = ZeroCopyGather(job), StagedGather(job)
    print("share  store                                       ms/batch  rows per batch")
    for share in CACHED_SHARES:
        expected: dict[str, float] = {}
        for name, store in build_stores(job, share, uva, host).items():
            store.forget()
            counts.clear()
            check_rows(record, f"{name} {share}", store, batches, on_gpu)
            counted = rows_per_batch(counts)
            if name.startswith("match"):  # all must reuse and fetch as many rows
                sources = {"host_copy": "fetched", "zero_copy": "fetched"}
                plain = {sources.get(where, where): rows for where, rows in counted.items()}
                expected = expected or plain
                label = f"counts of {name} {share}: {plain} are not {expected}"
                record.check(label, plain == expected)
            epochs = HOST_EPOCHS if "host" in name else UVA_EPOCHS
            seconds = median_seconds(partial(load_epoch, store, batches), epochs) / len(batches)
            counts.clear()
            record.results["match"].append(
                {"ratio": share, "store": name, "seconds": seconds, "rows_per_batch": counted}
            )
            shown = {where: round(rows) for where, rows in counted.items()}
            print(f"{share:5}  {name:42}  {seconds * 1e3:8.3f}  {shown}", flush=True)
        torch.cuda.empty_cache()
    uva.close()


def read_counters(record: Record) -> None:
    """Read the hardware counters of each gather, and print where requests differ from the model."""
    torch.cuda.empty_cache()  # for the process that ncu runs
    for widths in (ROW_BYTES[:3], ROW_BYTES[3:]):  # the first half is kept if the second fails
        begin = time.time()
        try:
            counted = gathers.counted(ACCESSES, widths, ROWS, TABLE_BYTES)
        except NoCounters as error:
            record.results["no_ncu"] = str(error)
            record.say("ncu:", error)
            return
        for one in counted:
            compare_requests(record, one)
            print({k: round(v, 2) if isinstance(v, float) else v for k, v in one.items()})
        record.results["ncu"] += counted
        record.save()
        record.say(f"ncu took {time.time() - begin:.0f} s")


def compare_requests(record: Record, counted: dict[str, Any]) -> None:
    """Add the ratio of counted to modelled requests, which is no check.

    The first cache may serve the rest of a line that an earlier request read.
    """
    model, requests = counted.get("model_requests"), counted.get("host_requests")
    if not model or requests is None:
        return
    counted["requests_over_model"] = requests / model
    if abs(requests / model - 1) > MODEL_TOLERANCE:
        record.say(f"ncu differs from the model: {counted['access']} {counted['row_bytes']} bytes:"
                   f" {requests:.2f} requests, model {model:.2f}")  # fmt: skip


def main() -> None:
    """Check and time the gathers, then read their counters."""
    out = parse_out(__doc__)
    record = Record(out / "gathers.json", {"listing2": [], "match": [], "ncu": []})
    load_native()
    parts = {
        "elementwise gathers": check_elementwise, "listing 2": measure_listing2,
        "match over a cache": measure_match, "counters": read_counters,
    }  # fmt: skip
    for name, run in parts.items():
        record.attempt(name, partial(run, record))
        record.save()
    record.finish()


if __name__ == "__main__":
    main()
