"""The shared-memory cache of a run: equal bytes, read-only, freed after the last use."""

import faulthandler
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
from warm import Cold

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


def processes_using(inode):
    """Processes that map an anonymous file or have it open."""
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


def open_memory_files():
    """Anonymous files that this process or a descendant has open."""
    found = set()
    me = psutil.Process()
    for process in (me, *me.children(recursive=True)):
        with suppress(OSError):
            for link in Path(f"/proc/{process.pid}/fd").iterdir():
                with suppress(OSError):
                    if "/memfd:gnnbench:" in str(link.readlink()):
                        found.add(link.stat().st_ino)
    return found


def wait_until(condition):
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


@pytest.mark.parametrize("size", [0, 1, 4096, (1 << 20) + 3])
def test_shared_file_has_the_bytes_of_the_file(tmp_path, monkeypatch, size):
    monkeypatch.setattr(shared_memory, "CHUNK_BYTES", 1 << 16)  # many chunks, the last one short
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


def test_failing_filler_leaves_no_shared_memory():
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


def test_killed_filler_leaves_no_shared_memory():
    filler = subprocess.Popen([sys.executable, "-c", FILLER], stdout=subprocess.PIPE, text=True)
    try:
        assert filler.stdout.readline() == "filling\n"
        links = list(Path(f"/proc/{filler.pid}/fd").iterdir())
        inode = next(one.stat().st_ino for one in links if "gnnbench:table" in str(one.readlink()))
        assert processes_using(inode) == {filler.pid}
    finally:
        filler.kill()
        filler.wait()
    assert wait_until(lambda: processes_using(inode) == set())


def test_filler_fills_a_table_in_chunks(monkeypatch):
    monkeypatch.setattr(shared_memory, "CHUNK_BYTES", 80)

    def count(part, start):
        values = np.frombuffer(part, np.int64)
        values[:] = np.arange(start // 8, start // 8 + len(values))

    descriptor = shared_memory.create_shared("counted", 8 * 1001, count, threads=3)
    table = shared.map_shared(shared_memory.address_of(descriptor), torch.int64, (77, 13))
    os.close(descriptor)
    assert torch.equal(table, torch.arange(1001).view(77, 13))


def test_shared_memory_is_aligned_to_huge_pages(monkeypatch):
    size = (5 << 20) + 12345
    content = np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)

    def fill(part, start):
        part[:] = content[start : start + len(part)].tobytes()

    for possible in (True, False):
        if not possible:  # a kernel without huge pages: same content
            monkeypatch.setattr(shared_memory.pages, "make_huge", lambda address, size: None)
        descriptor = shared_memory.create_shared("table", size, fill, threads=2)
        sizes = shared_memory.memory_sizes(descriptor)
        table = shared.map_shared(shared_memory.address_of(descriptor), torch.uint8, (size,))
        os.close(descriptor)
        assert table.data_ptr() % shared_memory.pages.HUGE_BYTES == 0
        assert np.array_equal(table.numpy(), content)
        assert sizes["bytes"] == size
        assert sizes["huge_bytes"] in ((0, 4 << 20) if possible else (0,))


def test_chunks_are_multiples_of_the_unit(monkeypatch):
    monkeypatch.setattr(shared_memory, "CHUNK_BYTES", 1000)
    chunks = []
    descriptor = shared_memory.create_shared(
        "table", 7 * 300, lambda p, s: chunks.append((s, len(p))), unit=300
    )
    os.close(descriptor)
    assert sorted(chunks) == [(0, 900), (900, 900), (1800, 300)]


def write_to_shared_memory(address, pipe):
    faulthandler.disable()  # the fault is expected
    table = shared.map_shared(address, torch.float32, (32, 32))
    assert float(table.sum()) == 0
    assert shared.region_of(table[3:]) is not None and shared.region_of(table.clone()) is None
    pipe.send("read")
    table[3] = 1
    pipe.send("written")


def test_write_to_shared_memory_kills_the_process_and_changes_nothing(tmp_path):
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
def test_cells_share_arrays_that_they_read_from_host_memory(tmp_path, device, recipe, arrays):
    cache = SharedMemoryCache(tmp_path, 60.0)
    cell = cell_of(tmp_path, device, **recipe)
    assert cache.graph(cell) is None
    assert cache.prepare(cell) is None
    try:
        assert set(cache.graph(cell).get("shared", {})) == set(arrays)
        assert (cache._owner is None) == (not arrays)
    finally:
        cache.close()


def test_processes_share_one_copy_freed_with_the_last(tmp_path):
    """Owner and workers are killed in turn; the others continue, and no memory remains."""
    cell = cell_of(tmp_path)
    cache = SharedMemoryCache(tmp_path, 60.0)
    assert cache.prepare(cell) is None
    graph = cache.graph(cell_of(tmp_path, "cuda"))
    inode = Path(graph["shared"]["features"]).stat().st_ino
    workers = [WorkerProcess(cell, tmp_path / f"{n}.log", 60.0) for n in range(2)]
    try:
        for worker in workers:
            worker.open(graph)
            worker.call("setup")
        owner = cache._owner.pid
        assert processes_using(inode) == {owner, *(w.pid for w in workers)}
        os.kill(workers[0].pid, signal.SIGKILL)
        assert wait_until(lambda: processes_using(inode) == {owner, workers[1].pid})
        os.kill(owner, signal.SIGKILL)
        assert wait_until(lambda: processes_using(inode) == {workers[1].pid})
        check = workers[1].call("check")
        assert check["ok"], check["reason"]
        again = cache.graph(cell_of(tmp_path, "cuda"))["shared"]["features"]
        assert Path(again).stat().st_ino != inode
        workers[1].kill()
        assert wait_until(lambda: processes_using(inode) == set())
        inode = Path(again).stat().st_ino
        assert processes_using(inode) == {cache._owner.pid}
    finally:
        cache.close()
        for worker in workers:
            worker.kill()
    assert wait_until(lambda: processes_using(inode) == set())


def test_cache_is_reused_by_the_next_run_of_the_same_dataset(tmp_path):
    first = cell_of(tmp_path, "cuda")
    other = replace(first, dataset="products~twin@0.002")
    addresses = []
    with closing(SharedMemoryCache()) as cache:
        for run, cell in enumerate((first, first, other)):
            (logs := tmp_path / str(run)).mkdir()
            cache.start_run(logs, 60.0 + run, cache.environments, cell.dataset)
            assert (cache._owner is not None) == (run == 1)
            assert cache.prepare(cell) is None
            addresses.append(cache.graph(cell)["shared"]["features"])
            assert (logs / f"prepare-{cell.id}.log").exists()
            assert cache.timeout_s == 60.0 + run
        assert cache.facts.keys() == {DATASET, other.dataset}
    assert addresses[0] == addresses[1] != addresses[2]


def test_rebuilt_graph_is_cached_again(tmp_path, monkeypatch):
    cell = cell_of(tmp_path, "cuda")
    with closing(SharedMemoryCache(tmp_path, 60.0)) as cache:
        assert cache.prepare(cell) is None
        cache.graph(cell)
        assert cache.prepare(cell) is None and cache._owner is not None
        cache._graphs[DATASET] = {**cache._graphs[DATASET], "stamp": "another"}
        assert cache.prepare(cell) is None and cache._owner is None


def run_until_killed(cache, cell, folder, pipe):
    """A runner with a worker that maps the shared memory of another process."""
    subprocess.Popen = Cold  # it cannot adopt what another process forks
    graph = cache.graph(replace(cell, device="cuda"))
    worker = WorkerProcess(cell, folder / "log", 60.0)
    worker.open(graph)
    pipe.send((Path(graph["shared"]["features"]).stat().st_ino, worker.pid, cache._owner.pid))
    time.sleep(600)


def test_killed_runner_leaves_no_processes_and_memory(tmp_path):
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    cache, cell = SharedMemoryCache(tmp_path, 60.0), cell_of(tmp_path)
    assert cache.prepare(cell) is None
    runner = context.Process(target=run_until_killed, args=(cache, cell, tmp_path, sender))
    runner.start()
    sender.close()
    try:
        inode, *others = receiver.recv()
        assert processes_using(inode) == set(others)
    finally:
        runner.kill()
        runner.join()
    assert wait_until(lambda: processes_using(inode) == set())
    assert wait_until(lambda: not any(map(psutil.pid_exists, others)))


def test_graph_that_changes_while_it_is_cached_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "store"))
    cell = cell_of(tmp_path)
    cache = SharedMemoryCache(tmp_path, 60.0)
    assert cache.prepare(cell) is None
    graph = cache.graph(cell_of(tmp_path, "cuda"))
    features = Path(graph["folder"]) / "features.bin"
    content = features.read_bytes()
    try:
        features.write_bytes(content)  # the same bytes with a new time stamp
        with (
            WorkerProcess(cell, tmp_path / "log", 60.0) as worker,
            pytest.raises(WorkerFailed, match="changed while its graph was in use"),
        ):
            worker.open(graph)
        cache.close()
        with pytest.raises(WorkerFailed, match="changed while its graph was in use"):
            cache.graph(cell_of(tmp_path, "cuda"))
        assert cache._owner is None
    finally:
        cache.close()


def test_host_memory_exhausted_by_the_cache_fails_the_cell(tmp_path, monkeypatch, cold):
    """The owner runs under a limit far below the table's size."""
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "store"))
    cell = cell_of(tmp_path)
    cache = SharedMemoryCache(tmp_path, 60.0)
    assert cache.prepare(cell) is None

    class Limited(WorkerProcess):
        def call(self, op, **arguments):
            psutil.Process(self.pid).rlimit(psutil.RLIMIT_AS, (200 << 20, 200 << 20))
            return super().call(op, **arguments)

    features = Path(cache.graph(cell)["folder"]) / "features.bin"
    with features.open("r+b") as file:
        file.truncate(1 << 30)  # a hole that is never read
    monkeypatch.setattr(shared_cache, "WorkerProcess", Limited)
    try:
        before = open_memory_files()
        with pytest.raises(WorkerFailed, match="memory is exhausted; take a smaller @scale"):
            cache.graph(cell_of(tmp_path, "cuda"))
        assert cache._owner is None
        assert wait_until(lambda: open_memory_files() <= before)
    finally:
        cache.close()
