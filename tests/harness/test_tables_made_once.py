"""Features without a file: generated in shared memory with the bytes of the disk version."""

import os
import pickle
import signal
from pathlib import Path

import pytest
import torch
from test_shared_cache import cell_of, processes_using, wait_until

from gnnbench.core.errors import DataError, UsageError
from gnnbench.datasets import shared_memory
from gnnbench.datasets.prepare import load_dataset, prepare
from gnnbench.datasets.store import layout
from gnnbench.datasets.store.reader import open_graph, verify
from gnnbench.datasets.store.seal import stamp
from gnnbench.harness.process import WorkerProcess
from gnnbench.harness.shared_cache import SharedMemoryCache

TWIN = "products~twin@0.001"


@pytest.fixture
def in_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "store"))
    monkeypatch.setenv("GNNBENCH_FEATURES", "memory")
    return tmp_path


def on_disk(tmp_path, name=TWIN):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GNNBENCH_FEATURES", "disk")
        return load_dataset(name, root=tmp_path / "disk")


@pytest.mark.parametrize(
    "name", [TWIN, f"{TWIN}+sym", "rmat@9x3x7", "rmat@9x3x128+sym", "rows@500x33"]
)
def test_generated_features_equal_those_on_disk(in_memory, name):
    on_disk_graph, made = on_disk(in_memory, name), load_dataset(name)
    assert not layout.file_of(made.path, "features").exists()
    assert layout.file_of(on_disk_graph.path, "features").exists()
    assert torch.equal(made.features, on_disk_graph.features)
    assert torch.equal(made.indices, on_disk_graph.indices)
    assert verify(made.path).ok
    assert "features.bin" not in stamp(made.path)
    assert torch.equal(open_graph(made.path).features, on_disk_graph.features)
    assert prepare(name) == made.path  # already complete


def test_graph_without_a_features_file_serves_disk_mode(in_memory, monkeypatch):
    made = prepare(TWIN)
    monkeypatch.setenv("GNNBENCH_FEATURES", "disk")
    assert prepare(TWIN) == made
    monkeypatch.setenv("GNNBENCH_FEATURES", "tape")
    with pytest.raises(UsageError, match="it is disk or memory"):
        prepare(f"{TWIN.partition('@')[0]}@0.002")


@pytest.mark.parametrize("name", [TWIN, "rmat@12x2x7", "rows@3kx17"])
def test_shared_array_has_the_bytes_of_the_file(in_memory, monkeypatch, name):
    on_disk_graph, folder = on_disk(in_memory, name), prepare(name)
    monkeypatch.setattr(shared_memory, "CHUNK_BYTES", 1 << 16)
    threads = torch.get_num_threads()
    descriptor = shared_memory.array_sharer(folder, "features")()
    torch.set_num_threads(threads)
    content = os.pread(descriptor, on_disk_graph.features.numel() * 4 + 1, 0)
    assert content == on_disk_graph.features.numpy().tobytes()
    graph = open_graph(folder, stamp(folder), {"features": shared_memory.address_of(descriptor)})
    again = pickle.loads(pickle.dumps(graph))  # another process maps the same memory
    assert again.shared == graph.shared
    os.close(descriptor)
    for one in (graph, again):
        assert torch.equal(one.features, on_disk_graph.features)


def test_unknown_generator_of_features_is_refused(in_memory):
    folder = prepare(TWIN)
    meta = layout.read_meta(folder)
    meta["arrays"]["features"]["made"] = "hand"
    (folder / layout.META).write_text(layout.meta_text(meta))
    with pytest.raises(DataError, match="made by 'hand', which this gnnbench lacks"):
        shared_memory.array_sharer(folder, "features")()


def test_run_shares_generated_features_and_frees_them(in_memory):
    """The owner and a worker are killed while they use the memory."""
    cell = cell_of(in_memory)
    cache = SharedMemoryCache(in_memory, 60.0)
    assert cache.prepare(cell) is None
    preparation = cache.prepared[cell.dataset]
    assert 0 < preparation["seconds"] < 60 and preparation["peak_rss_bytes"] > 1 << 26
    assert "peak_gpu_bytes" not in preparation  # no GPU was used
    worker = WorkerProcess(cell, in_memory / "log", 60.0)
    try:
        graph = cache.graph(cell)
        assert set(graph["shared"]) == {"features"}
        facts = cache.facts[cell.dataset]["features"]
        assert facts["bytes"] == on_disk(in_memory).features.numel() * 4
        assert facts["seconds"] > 0
        inode = Path(graph["shared"]["features"]).stat().st_ino
        worker.open(graph)
        worker.call("setup")
        assert processes_using(inode) == {worker.pid, cache._owner.pid}
        os.kill(cache._owner.pid, signal.SIGKILL)
        assert wait_until(lambda: processes_using(inode) == {worker.pid})
        check = worker.call("check")
        assert check["ok"], check["reason"]
        os.kill(worker.pid, signal.SIGKILL)
        assert wait_until(lambda: processes_using(inode) == set())
        again = Path(cache.graph(cell)["shared"]["features"]).stat().st_ino
        assert again != inode
    finally:
        cache.close()
        worker.kill()
    assert wait_until(lambda: processes_using(again) == set())
