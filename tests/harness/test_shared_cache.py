"""Memory held for all lives of a run: the same bytes, never written, freed to the last of them."""

import faulthandler
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import closing, suppress
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

from gnnbench.config.overrides import Overrides
from gnnbench.datasets import shared_memory
from gnnbench.harness import shared_cache
from gnnbench.harness.launch import make_request
from gnnbench.harness.process import WorkerFailed, WorkerProcess
from gnnbench.harness.shared_cache import SharedMemoryCache
from gnnbench.kernels import shared

DATASET = "products~twin@0.001"


def cell_of(tmp_path, device="cpu", **recipe):
    over = Overrides(profile="smoke", systems=("baseline",), datasets=(DATASET,))
    cell = make_request("breakdown", over, tmp_path).plan.cells[0]
    stages = {kind: {**cell.recipe[kind], **change} for kind, change in recipe.items()}
    return replace(cell, device=device, recipe={**cell.recipe, **stages})


def users(inode):
    """Processes that map a file without a name, or have it open."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            lines = (process / "maps").read_text().splitlines()
            if any("/memfd:gnnbench:" in one and one.split()[4] == str(inode) for one in lines):
                found.add(int(process.name))
        with suppress(OSError):
            for link in (process / "fd").iterdir():
                with suppress(OSError):
                    if "/memfd:gnnbench:" in str(link.readlink()) and link.stat().st_ino == inode:
                        found.add(int(process.name))
    return found


def holders():
    """Files without a name that this process or one below it has open."""
    found = set()
    me = psutil.Process()
    for process in (me, *me.children(recursive=True)):
        with suppress(OSError):
            for link in Path(f"/proc/{process.pid}/fd").iterdir():
                with suppress(OSError):
                    if "/memfd:gnnbench:" in str(link.readlink()):
                        found.add(link.stat().st_ino)
    return found


def wait_until(holds):
    deadline = time.monotonic() + 20
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    return holds()


@pytest.mark.parametrize("size", [0, 1, 4096, (1 << 20) + 3])
def test_held_bytes_are_those_of_the_file(tmp_path, monkeypatch, size):
    monkeypatch.setattr(shared_memory, "CHUNK_BYTES", 1 << 16)  # many pieces, the last one short
    content = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    (tmp_path / "a.bin").write_bytes(content.tobytes())
    descriptor = shared_memory.share_file(tmp_path / "a.bin")
    try:
        mapped = shared.map_shared(shared_memory.address_of(descriptor), torch.uint8, (size,))
        assert np.array_equal(mapped.numpy(), content)
        for other in (size + 1, max(size - 1, 0) + 2 * (size == 0)):
            with pytest.raises(OSError):  # the size is sealed
                os.ftruncate(descriptor, other)
            with pytest.raises(ValueError, match=f"holds {size} bytes where {other}"):
                shared.map_shared(shared_memory.address_of(descriptor), torch.uint8, (other,))
    finally:
        os.close(descriptor)
    assert np.array_equal(mapped.numpy(), content)  # a mapping needs no descriptor


def open_files():
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def test_what_a_filler_raises_leaves_nothing_held():
    before = open_files()

    def fail(part, start):
        raise OSError("the source ended")

    mapped = Path("/proc/self/maps").read_text().count("/memfd:gnnbench:")
    with pytest.raises(OSError, match="the source ended"):
        shared_memory.create_shared("table", 8 << 20, fail)
    with pytest.raises(MemoryError, match=r": table takes [0-9]+ bytes, [0-9]+ are free; take a"):
        shared_memory.create_shared("table", 1 << 60, fail)
    assert open_files() == before
    assert Path("/proc/self/maps").read_text().count("/memfd:gnnbench:") == mapped


FILLER = """
import time
from gnnbench.datasets import shared_memory
def fill(part, start):
    print("filling", flush=True)
    time.sleep(600)
shared_memory.create_shared("table", 8 << 20, fill)
"""


def test_a_kill_amid_filling_leaves_nothing():
    filler = subprocess.Popen([sys.executable, "-c", FILLER], stdout=subprocess.PIPE, text=True)
    try:
        assert filler.stdout.readline() == "filling\n"
        links = list(Path(f"/proc/{filler.pid}/fd").iterdir())
        inode = next(one.stat().st_ino for one in links if "gnnbench:table" in str(one.readlink()))
        assert users(inode) == {filler.pid}
    finally:
        filler.kill()
        filler.wait()
    assert wait_until(lambda: users(inode) == set())


def test_a_generator_fills_a_table_in_pieces(monkeypatch):
    monkeypatch.setattr(shared_memory, "CHUNK_BYTES", 80)

    def count(part, start):
        values = np.frombuffer(part, np.int64)
        values[:] = np.arange(start // 8, start // 8 + len(values))

    descriptor = shared_memory.create_shared("counted", 8 * 1001, count, threads=3)
    table = shared.map_shared(shared_memory.address_of(descriptor), torch.int64, (77, 13))
    os.close(descriptor)
    assert torch.equal(table, torch.arange(1001).view(77, 13))


def test_shared_memory_begins_with_a_huge_page_and_may_have_them(monkeypatch):
    size = (5 << 20) + 12345
    content = np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)

    def fill(part, start):
        part[:] = content[start : start + len(part)].tobytes()

    for possible in (True, False):
        if not possible:  # a kernel that has none: small pages hold the same
            monkeypatch.setattr(shared_memory.pages, "make_huge", lambda address, size: None)
        descriptor = shared_memory.create_shared("table", size, fill, threads=2)
        told = shared_memory.memory_sizes(descriptor)
        table = shared.map_shared(shared_memory.address_of(descriptor), torch.uint8, (size,))
        os.close(descriptor)
        assert table.data_ptr() % shared_memory.pages.HUGE_BYTES == 0
        assert np.array_equal(table.numpy(), content)
        assert told["bytes"] == size
        assert told["huge_bytes"] in ((0, 4 << 20) if possible else (0,))


def test_pieces_are_of_whole_units(monkeypatch):
    monkeypatch.setattr(shared_memory, "CHUNK_BYTES", 1000)
    seen = []
    descriptor = shared_memory.create_shared(
        "table", 7 * 300, lambda p, s: seen.append((s, len(p))), unit=300
    )
    os.close(descriptor)
    assert sorted(seen) == [(0, 900), (900, 900), (1800, 300)]


def write_to_shared_memory(address, pipe):
    faulthandler.disable()  # the fault is expected
    table = shared.map_shared(address, torch.float32, (32, 32))
    assert float(table.sum()) == 0
    assert shared.region_of(table[3:]) is not None and shared.region_of(table.clone()) is None
    pipe.send("read")
    table[3] = 1
    pipe.send("written")


def test_a_write_to_shared_memory_ends_its_process_and_changes_nothing(tmp_path):
    (tmp_path / "a.bin").write_bytes(bytes(4096))
    descriptor = shared_memory.share_file(tmp_path / "a.bin")
    address = shared_memory.address_of(descriptor)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=write_to_shared_memory, args=(address, sender))
    process.start()
    sender.close()
    process.join(60)
    assert process.exitcode == -signal.SIGSEGV
    assert receiver.recv() == "read"
    with pytest.raises(EOFError):
        receiver.recv()
    assert os.pread(descriptor, 4096, 0) == bytes(4096)
    os.close(descriptor)


@pytest.mark.parametrize(
    "device,recipe,arrays",
    [
        ("cpu", {}, ()),
        ("cuda", {}, ("features",)),
        ("cuda", {"features": {"name": "uva"}}, ("features",)),
        ("cuda", {"features": {"name": "uva", "memory": "vmm"}}, ()),
        ("cuda", {"features": {"name": "gpu"}}, ()),
        (
            "cuda",
            {"features": {"name": "gpu"}, "sampler": {"topology": "uva"}},
            ("indptr", "indices"),
        ),
    ],
)
def test_cells_ask_for_what_they_read_from_host_memory(tmp_path, device, recipe, arrays):
    kept = SharedMemoryCache(tmp_path, 60.0)
    cell = cell_of(tmp_path, device, **recipe)
    assert kept.graph(cell) is None
    assert kept.prepare(cell) is None
    try:
        assert set(kept.graph(cell).get("held", {})) == set(arrays)
        assert (kept._owner is None) == (not arrays)
    finally:
        kept.close()


def test_lives_share_one_copy_and_the_last_one_frees_it(tmp_path):
    """Owner and workers are killed in turn; the others go on, and nothing is left at the end."""
    cell = cell_of(tmp_path)
    kept = SharedMemoryCache(tmp_path, 60.0)
    assert kept.prepare(cell) is None
    graph = kept.graph(cell_of(tmp_path, "cuda"))
    inode = Path(graph["held"]["features"]).stat().st_ino
    workers = [WorkerProcess(cell, tmp_path / f"{n}.log", 60.0) for n in range(2)]
    try:
        for worker in workers:
            worker.open(graph)
            worker.call("setup")
        holder = kept._owner.pid
        assert users(inode) == {holder, *(w.pid for w in workers)}
        os.kill(workers[0].pid, signal.SIGKILL)
        assert wait_until(lambda: users(inode) == {holder, workers[1].pid})
        os.kill(holder, signal.SIGKILL)
        assert wait_until(lambda: users(inode) == {workers[1].pid})
        check = workers[1].call("check")
        assert check["ok"], check["reason"]
        again = kept.graph(cell_of(tmp_path, "cuda"))["held"]["features"]
        assert Path(again).stat().st_ino != inode
        workers[1].kill()
        assert wait_until(lambda: users(inode) == set())
        inode = Path(again).stat().st_ino
        assert users(inode) == {kept._owner.pid}
    finally:
        kept.close()
        for worker in workers:
            worker.kill()
    assert wait_until(lambda: users(inode) == set())


def test_what_one_run_holds_serves_the_next_of_the_same_dataset(tmp_path):
    first = cell_of(tmp_path, "cuda")
    other = replace(first, dataset="products~twin@0.002")
    addresses = []
    with closing(SharedMemoryCache()) as kept:
        for run, cell in enumerate((first, first, other)):
            (logs := tmp_path / str(run)).mkdir()
            kept.start_run(logs, 60.0 + run, kept.environments, cell.dataset)
            assert (kept._owner is not None) == (run == 1)
            assert kept.prepare(cell) is None
            addresses.append(kept.graph(cell)["held"]["features"])
            assert (logs / f"prepare-{cell.id}.log").exists()
            assert kept.timeout_s == 60.0 + run
        assert kept.facts.keys() == {DATASET, other.dataset}
    assert addresses[0] == addresses[1] != addresses[2]


def test_a_graph_that_was_made_anew_is_held_anew(tmp_path, monkeypatch):
    cell = cell_of(tmp_path, "cuda")
    with closing(SharedMemoryCache(tmp_path, 60.0)) as kept:
        assert kept.prepare(cell) is None
        kept.graph(cell)
        assert kept.prepare(cell) is None and kept._owner is not None
        kept._graphs[DATASET] = {**kept._graphs[DATASET], "stamp": "another"}
        assert kept.prepare(cell) is None and kept._owner is None


RUNNER = """
import json, os, sys, time
from dataclasses import asdict, replace
from pathlib import Path
from gnnbench.core.cell import Cell
from gnnbench.harness.shared_cache import SharedMemoryCache
from gnnbench.harness.process import WorkerProcess
cell, folder = Cell.from_json(json.loads(sys.argv[1])), Path(sys.argv[2])
keeper = SharedMemoryCache(folder, 60.0)
assert keeper.prepare(cell) is None
graph = keeper.graph(replace(cell, device="cuda"))
worker = WorkerProcess(cell, folder / "log", 60.0)
worker.open(graph)
print(os.stat(graph["held"]["features"]).st_ino, worker.pid, keeper._owner.pid, flush=True)
time.sleep(600)
"""


def test_a_killed_runner_leaves_nothing_behind(tmp_path):
    cell = json.dumps(asdict(cell_of(tmp_path)))
    runner = subprocess.Popen(
        [sys.executable, "-c", RUNNER, cell, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        inode, *others = map(int, runner.stdout.readline().split())
        assert users(inode) == set(others)
    finally:
        runner.kill()
        runner.wait()
    assert wait_until(lambda: users(inode) == set())
    assert wait_until(lambda: not any(map(psutil.pid_exists, others)))


def test_a_graph_that_changes_while_it_is_held_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "store"))
    cell = cell_of(tmp_path)
    kept = SharedMemoryCache(tmp_path, 60.0)
    assert kept.prepare(cell) is None
    graph = kept.graph(cell_of(tmp_path, "cuda"))
    features = Path(graph["folder"]) / "features.bin"
    content = features.read_bytes()
    try:
        features.write_bytes(content)  # the same bytes, but who knows
        with (
            WorkerProcess(cell, tmp_path / "log", 60.0) as worker,
            pytest.raises(WorkerFailed, match="changed while its graph was in use"),
        ):
            worker.open(graph)
        kept.close()
        with pytest.raises(WorkerFailed, match="changed while its graph was in use"):
            kept.graph(cell_of(tmp_path, "cuda"))
        assert kept._owner is None
    finally:
        kept.close()


def test_memory_that_is_not_there_is_the_cells_fate(tmp_path, monkeypatch, cold):
    """The holder runs under a limit far below the table."""
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "store"))
    cell = cell_of(tmp_path)
    kept = SharedMemoryCache(tmp_path, 60.0)
    assert kept.prepare(cell) is None

    class Limited(WorkerProcess):
        def call(self, op, **arguments):
            psutil.Process(self.pid).rlimit(psutil.RLIMIT_AS, (200 << 20, 200 << 20))
            return super().call(op, **arguments)

    features = Path(kept.graph(cell)["folder"]) / "features.bin"
    with features.open("r+b") as file:
        file.truncate(1 << 30)  # a hole: nothing of it is read
    monkeypatch.setattr(shared_cache, "WorkerProcess", Limited)
    try:
        before = holders()
        with pytest.raises(WorkerFailed, match="memory is exhausted; take a smaller @scale"):
            kept.graph(cell_of(tmp_path, "cuda"))
        assert kept._owner is None
        assert wait_until(lambda: holders() <= before)
    finally:
        kept.close()
