"""Time gathers from a table sharded over several GPUs, and compare them with the link's rate.

There is one process per GPU, like ranks: each fills its shard, maps the other shards (CUDA IPC) and
gathers distinct random rows, concurrently. Each launch shape is first compared with the table's
rows. Cases: `all`: rows of the whole table, 1/N of them in the own shard; `peers`: rows of other
shards only; `own`: rows of the own shard only; `gather`: the same by the simple gather kernel. For
comparison: a peer copy (cudaMemcpyPeer) in a ring, concurrently on all GPUs, of as many bytes as
`all` reads from other shards, and, if installed, WholeGraph's gather from chunked and continuous
memory. Times are of the slowest rank, between two events around back-to-back calls; medians over
rounds.

    python3 native/bench/sharded.py --gpus 2 --out sharded.json
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # if gnnbench is not installed
os.environ["NCCL_NVLS_ENABLE"] = "0"  # no multicast over NVLink
os.environ["GLOO_SOCKET_IFNAME"] = "lo"

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor

from gnnbench.core.rendezvous import Peers
from gnnbench.features.shard_memory import Shards
from gnnbench.kernels.features import gather
from gnnbench.kernels.sharded import check_peer_access, gather_sharded
from gnnbench.kernels.wholegraph_import import wholegraph_missing

FACTOR = 1_000_003  # a row holds multiples of it
FILLED = 1 << 20  # rows written at a time
SETS = 4  # alternating sets of ids
WAVES = (0, 4, 8, 16)  # blocks of 256 threads per multiprocessor; 0: no limit
DEPTHS = (1, 2, 4)


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gpus", type=int, default=0, help="number of ranks; 0: all GPUs")
    parser.add_argument("--rows", type=int, default=1 << 26, help="rows of the table, all shards")
    parser.add_argument("--row-bytes", type=int, default=512)
    parser.add_argument("--ids", type=int, default=1 << 20, help="rows per call")
    parser.add_argument("--rounds", "--turns", dest="rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=40, help="back-to-back calls per round")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without-wholegraph", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("sharded.json"))
    options = parser.parse_args()
    options.gpus = options.gpus or torch.cuda.device_count()
    return options


def rows_of(ids: Tensor, columns: int) -> Tensor:
    """Return rows of the table: int32 ``[n, columns]``, which vary by row and column."""
    column = torch.arange(columns, device=ids.device, dtype=torch.int64) * 7919
    return (ids.long()[:, None] * FACTOR + column).to(torch.int32)


def fill(shard: Tensor, first: int, step: int) -> None:
    """Fill a shard with rows first, first + step ... of the table."""
    for begin in range(0, shard.shape[0], FILLED):
        part = shard[begin : begin + FILLED]
        places = torch.arange(begin, begin + part.shape[0], device=shard.device)
        part.copy_(rows_of(places * step + first, shard.shape[1]))
    torch.cuda.synchronize()


def sets_of_ids(options: argparse.Namespace, rank: int, owners: list[int]) -> list[Tensor]:
    """Draw distinct random ids of rows in the shards of ``owners``, int64 ``[ids]`` each."""
    draws = torch.Generator("cuda").manual_seed(options.seed * 1000 + rank)
    rows = options.rows // options.gpus
    id_sets = []
    for _ in range(SETS):
        places = torch.randperm(rows * len(owners), generator=draws, device="cuda")[: options.ids]
        owner = torch.tensor(owners, device="cuda")[places % len(owners)]
        id_sets.append(places // len(owners) * options.gpus + owner)
    return id_sets


def timed(call: Callable[[int], Any], options: argparse.Namespace) -> float:
    """Return milliseconds per call of the slowest rank; all ranks start a round together."""
    times = []
    for number in range(options.rounds + 1):  # the first is warm-up
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        dist.barrier()
        begin.record()
        for nth in range(options.calls):
            call(nth % SETS)
        end.record()
        end.synchronize()
        ms = torch.tensor([begin.elapsed_time(end) / options.calls], dtype=torch.float64)
        if dist.get_backend() == "nccl":
            ms = ms.cuda()
        dist.all_reduce(ms, dist.ReduceOp.MAX)
        if number:
            times.append(float(ms))
    return statistics.median(times)


def run_rank(rank: int, options: argparse.Namespace, port: int, answers: Any) -> None:
    """Run all cases in a rank's process; rank 0 reports the times."""
    torch.cuda.set_device(rank)
    device = torch.device("cuda", rank)
    peers = Peers.another(rank, options.gpus, port)
    dist.init_process_group("gloo", store=peers.store, rank=rank, world_size=options.gpus)
    columns = options.row_bytes // 4
    like = torch.empty(0, columns, dtype=torch.int32)
    shards = Shards(like, options.rows, device, peers)
    fill(shards.own, rank, options.gpus)
    shards.share("the table of the benchmark")
    counts = torch.zeros(3, dtype=torch.int64, device=device)
    ranks = list(range(options.gpus))
    cases = {"all": ranks, "peers": [r for r in ranks if r != rank] or [rank], "own": [rank]}
    ids = {name: sets_of_ids(options, rank, owners) for name, owners in cases.items()}
    processors = torch.cuda.get_device_properties(device).multi_processor_count
    results: list[dict[str, Any]] = []

    def read(name: str, nth: int, depth: int, wave: int) -> Tensor:
        return gather_sharded(
            shards.all, rank, None, None, ids[name][nth], counts, wave * processors, depth
        )

    def call_of(name: str, depth: int, wave: int) -> Callable[[int], Any]:
        return lambda nth: read(name, nth, depth, wave)

    for name in cases:
        expected = rows_of(ids[name][0], columns)
        own = int((ids[name][0] % options.gpus == rank).sum())
        for depth in DEPTHS:
            for wave in WAVES:
                counts.zero_()
                if not torch.equal(read(name, 0, depth, wave), expected):
                    raise AssertionError(f"rank {rank}: wrong rows, {name} {depth} {wave}")
                if counts.tolist() != [own, options.ids - own, 0]:
                    raise AssertionError(f"rank {rank}: wrong counts {counts.tolist()}, {name}")
                ms = timed(call_of(name, depth, wave), options)
                case = {"case": name, "depth": depth, "blocks_per_sm": wave, "ms": ms}
                results.append({**case, "peer_rows": options.ids - own})
    local = [each // options.gpus for each in ids["own"]]
    if not torch.equal(gather(shards.own, local[0]), rows_of(ids["own"][0], columns)):
        raise AssertionError(f"rank {rank}: wrong rows of the simple gather")
    ms = timed(lambda nth: gather(shards.own, local[nth]), options)
    results.append({"case": "gather", "ms": ms, "peer_rows": 0})
    if options.gpus > 1:  # the copy engine on mapped memory
        other, rows = shards.all[(rank + 1) % options.gpus], options.ids // options.gpus
        target = torch.empty_like(shards.own[:rows])
        ms = timed(lambda nth: target.copy_(other[nth * rows : (nth + 1) * rows]), options)
        results.append({"case": "mapped copy", "ms": ms, "peer_rows": rows, "rows": rows})
    dist.barrier()
    if rank == 0:
        answers.put(results)
    dist.destroy_process_group()  # shards stay until process exit: other ranks may map them


def gathers_of(table: Any, ids: list[Tensor]) -> Callable[[int], Any]:
    """Return WholeGraph's gather by number of the set of ids."""
    return lambda nth: table.gather(ids[nth])


def run_wholegraph(rank: int, options: argparse.Namespace, port: int, answers: Any) -> None:
    """Run WholeGraph in a rank's process; it creates its own process group."""
    torch.cuda.set_device(rank)
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    import librmm

    librmm.load_library()
    import pylibwholegraph.torch as wgth

    size = (rank, options.gpus, rank, options.gpus)
    _, comm = wgth.init_torch_env_and_create_wm_comm(*size, wm_log_level="warn")
    columns = options.row_bytes // 4
    ids = sets_of_ids(options, rank, list(range(options.gpus)))
    results = []
    for memory in ("chunked", "continuous"):
        if not comm.support_type_location(memory, "cuda"):
            continue
        table = wgth.create_wholememory_tensor(
            comm, memory, "cuda", [options.rows, columns], torch.float32, [columns, 1]
        )
        part, first = table.get_local_tensor(host_view=False)
        fill(part.view(torch.int32), first, 1)
        dist.barrier()
        if not torch.equal(table.gather(ids[0]).view(torch.int32), rows_of(ids[0], columns)):
            raise AssertionError(f"rank {rank}: wrong rows of WholeGraph's {memory} memory")
        ms = timed(gathers_of(table, ids), options)
        own = part.shape[0]
        peers = int(((ids[0] < first) | (ids[0] >= first + own)).sum())
        if own == options.rows and options.gpus > 1:
            raise AssertionError(f"rank {rank}: WholeGraph's {memory} memory is not shared")
        results.append({"case": f"wholegraph {memory}", "ms": ms, "peer_rows": peers})
        dist.barrier()
        wgth.destroy_wholememory_tensor(table)
    if rank == 0:
        answers.put(results)
    wgth.finalize()


def peer_copies(options: argparse.Namespace, size: int) -> float:
    """Return milliseconds of concurrent peer copies of ``size`` bytes, each to the next GPU."""
    gpus = range(options.gpus)
    for gpu in gpus:
        check_peer_access(gpu, list(gpus))
    sources = [torch.ones(size, dtype=torch.uint8, device=f"cuda:{g}") for g in gpus]
    targets = [torch.empty_like(s, device=f"cuda:{(g + 1) % options.gpus}")
               for g, s in enumerate(sources)]  # fmt: skip
    streams = [torch.cuda.Stream(s.device) for s in sources]
    times = []
    for number in range(options.rounds + 1):
        for gpu in gpus:
            torch.cuda.synchronize(gpu)
        begin = time.perf_counter()
        for _ in range(options.calls):
            for source, target, stream in zip(sources, targets, streams, strict=True):
                with torch.cuda.stream(stream):
                    target.copy_(source, non_blocking=True)
        for gpu in gpus:
            torch.cuda.synchronize(gpu)
        if number:
            times.append((time.perf_counter() - begin) / options.calls * 1e3)
    if not all(bool(t.all()) for t in targets):
        raise AssertionError("a copy from GPU to GPU lost bytes")
    return statistics.median(times)


def run_peer_copies(rank: int, options: argparse.Namespace, size: int, answers: Any) -> None:
    """Run the copies in a separate process, which frees its contexts at exit."""
    answers.put(peer_copies(options, size))


def in_processes(run: Any, ranks: int, *given: Any) -> Any:
    """Return what rank 0 reports. Raise the error of a failed process."""
    answers = mp.get_context("spawn").SimpleQueue()
    processes = mp.spawn(run, args=(*given, answers), nprocs=ranks, join=False)
    result = None
    while not processes.join(timeout=0.2):
        if result is None and not answers.empty():
            result = answers.get()
    return answers.get() if result is None else result


def main() -> int:
    """Measure, print a table and write the results."""
    options = arguments()
    options.rows -= options.rows % max(options.gpus, 1)
    if options.gpus < 1 or options.gpus > torch.cuda.device_count():
        print(f"sharded.py: {options.gpus} GPUs requested, {torch.cuda.device_count()} found")
        return 2
    if options.rows < SETS * options.ids * options.gpus or options.row_bytes % 4:
        print(f"sharded.py: need --rows >= {SETS} * --ids * GPUs, --row-bytes a multiple of 4")
        return 2
    size = options.ids * options.row_bytes * (options.gpus - 1) // options.gpus
    copy_ms = None
    if options.gpus > 1:
        copy_ms = in_processes(run_peer_copies, 1, options, size)
    first = Peers.first(options.gpus, lambda: None)
    results = in_processes(run_rank, options.gpus, options, first.port)
    notes = []
    missing = wholegraph_missing()
    if options.without_wholegraph or missing is not None:
        notes.append("WholeGraph: skipped" if missing is None else missing.reason)
    else:
        try:
            results += in_processes(run_wholegraph, options.gpus, options, _free_port())
        except Exception as error:
            notes.append(f"WholeGraph failed: {str(error).strip().splitlines()[-1]}")
    copy_rate = size / copy_ms / 1e6 if copy_ms else None
    for row in results:
        rows = row.setdefault("rows", options.ids)
        row["gb_s"] = rows * options.row_bytes / row["ms"] / 1e6
        row["peer_gb_s"] = row["peer_rows"] * options.row_bytes / row["ms"] / 1e6
        row["peer_of_copy"] = row["peer_gb_s"] / copy_rate if copy_rate else None
    answers = {
        "device": torch.cuda.get_device_name(0), "torch": torch.__version__,
        "gpus": options.gpus, "rows": options.rows, "row_bytes": options.row_bytes,
        "ids": options.ids, "turns": options.rounds, "calls": options.calls, "seed": options.seed,
        "copy_bytes": size, "copy_ms": copy_ms, "copy_gb_s": copy_rate, "notes": notes,
        "results": results,
    }  # fmt: skip
    options.out.write_text(json.dumps(answers, indent=1) + "\n")
    print(f"{answers['device']} x {options.gpus}, torch {answers['torch']}: {options.ids} rows of"
          f" {options.row_bytes} B out of {options.rows} in {options.gpus} shards")  # fmt: skip
    if copy_rate:
        print(f"peer copy, all GPUs at once: {copy_rate:.1f} GB/s into each")
    print(
        f"{'case':22}{'depth':>6}{'blocks/SM':>10}{'ms':>9}{'GB/s':>9}{'peer GB/s':>10}"
        f"{'of copy':>8}"
    )
    for row in results:
        of_copy = f"{row['peer_of_copy']:.2f}" if row["peer_rows"] and copy_rate else ""
        print(
            f"{row['case']:22}{row.get('depth', ''):>6}{row.get('blocks_per_sm', ''):>10}"
            f"{row['ms']:9.3f}{row['gb_s']:9.1f}{row['peer_gb_s']:10.1f}{of_copy:>8}"
        )
    for note in notes:
        print(note)
    return 0


def _free_port() -> int:
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
    return port


if __name__ == "__main__":
    sys.exit(main())
