"""GraphBolt's features in a file, with a fake GraphBolt: rows, counts, files, and refusals."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from gnnbench.core.cell import Cell
from gnnbench.core.counters import WRITE_TIME, Counts
from gnnbench.core.errors import MissingError, UnsupportedError, UsageError
from gnnbench.core.job import Job
from gnnbench.features import bolt_file
from gnnbench.features.foreign_spec import BoltGather

METHODS = ["io_uring", "mmap"]


class TorchBased:
    """Rows of a tensor."""

    def __init__(self, table):
        self.table = table

    def read(self, ids):
        return self.table[ids.long()]


class DiskBased(TorchBased):
    """Rows of a file that stays open."""

    def __init__(self, path):
        super().__init__(torch.from_numpy(np.load(path, mmap_mode="r+")))


class Cache:
    """Counts rows that were not read before."""

    def __init__(self, shape, dtype):
        self.shape, self.total_miss, self.known = shape, 0, set()


class Cached:
    """Reads all rows of the fallback."""

    def __init__(self, fallback, cache):
        self.fallback, self.cache = fallback, cache

    def read(self, ids):
        new = set(ids.tolist()) - self.cache.known
        self.cache.known |= new
        self.cache.total_miss += len(new)
        return self.fallback.read(ids)


@pytest.fixture
def bolt(monkeypatch):
    """Installs a fake GraphBolt and returns it."""
    fake = SimpleNamespace(
        DiskBasedFeature=DiskBased, TorchBasedFeature=TorchBased, CPUFeatureCache=Cache,
        CPUCachedFeature=Cached, numpy_save_aligned=np.save,
    )  # fmt: skip
    monkeypatch.setattr(bolt_file, "require_graphbolt", lambda device: fake)
    fake.ops = SimpleNamespace(detect_io_uring=lambda: True)
    monkeypatch.setattr(torch.ops, "graphbolt", fake.ops, raising=False)
    return fake


def store(graph, **options):
    spec = BoltGather(**options).resolved("cpu")
    return spec.build(Job(Cell("e", "s", graph.name, "gcn"), graph, Counts()))


def batch(*ids, dtype=torch.int64):
    return SimpleNamespace(input_nodes=torch.tensor(ids, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("method", METHODS)
def test_rows_equal_the_table(method, dtype, small_graph, bolt):
    made = store(small_graph, file=method)
    for ids in ([3, 399, 0], [7, 7], list(range(50))):
        rows = made.load(batch(*ids, dtype=dtype))
        assert rows.numpy().tobytes() == small_graph.features[ids].numpy().tobytes()
    assert made.job.counts.rows() == [
        ["features", "feature_bytes", "disk", 55 * 96], ["features", "calls", "disk", 3],
    ]  # fmt: skip
    assert made.prepare(None)[WRITE_TIME] > 0
    made.close()


@pytest.mark.parametrize("method", METHODS)
def test_file_is_next_to_the_graph_until_it_is_open(method, small_graph, bolt, tmp_path):
    (tmp_path / "graph").mkdir()
    saved = []
    bolt.numpy_save_aligned = lambda path, rows: (saved.append(path), np.save(path, rows))
    made = store(replace(small_graph, path=tmp_path / "graph"), file=method)
    (path,) = saved
    assert path.startswith(str(tmp_path / ".tmp-")) and path.endswith("features.npy")
    assert [entry.name for entry in tmp_path.iterdir()] == ["graph"]
    assert torch.equal(made.load(batch(9, 4)), small_graph.features[[9, 4]])


@pytest.mark.parametrize("method", METHODS)
def test_cached_rows_are_counted_apart(method, small_graph, bolt):
    made = store(small_graph, file=method, cache_gib=20 * 96 / 2**30)
    assert made._cache.shape == (20, 24) and made._cache.total_miss == 0
    for ids in ([1, 2, 3], [3, 4, 1]):
        assert torch.equal(made.load(batch(*ids)), small_graph.features[ids])
    counted = {where: n for _, name, where, n in made.job.counts.rows() if name == "feature_bytes"}
    assert counted == {"disk": 4 * 96, "host": 2 * 96}
    with pytest.raises(UnsupportedError, match="a batch has 11 nodes, and the cache 20 rows"):
        made.load(batch(*range(11)))


def test_io_uring_may_be_unavailable(small_graph, bolt):
    bolt.ops.detect_io_uring = lambda: False
    with pytest.raises(
        UnsupportedError, match=r"cannot use io_uring here; allow it .* features.file=mmap"
    ):
        store(small_graph, file="io_uring")
    del bolt.ops.detect_io_uring  # of an older GraphBolt
    with pytest.raises(UnsupportedError, match="cannot use io_uring"):
        store(small_graph, file="io_uring")
    assert store(small_graph, file="mmap").load(batch(1)).shape == (1, 24)


@pytest.mark.parametrize(
    ("absent", "options"),
    [("DiskBasedFeature", {"file": "io_uring"}), ("TorchBasedFeature", {"file": "mmap"}),
     ("CPUFeatureCache", {"file": "mmap", "cache_gib": 1.0})],
)  # fmt: skip
def test_missing_class_has_an_installation_hint(absent, options, small_graph, bolt):
    delattr(bolt, absent)
    with pytest.raises(MissingError, match=f"has no {absent}; install a newer DGL"):
        store(small_graph, **options)


@pytest.mark.parametrize("error", [RuntimeError("npy_load: Unable to open file"), IndexError()])
def test_unreadable_file_is_unsupported(error, small_graph, bolt, tmp_path):
    def refuse(path):
        raise error

    bolt.DiskBasedFeature = refuse
    (tmp_path / "graph").mkdir()
    with pytest.raises(UnsupportedError, match=f"below {tmp_path} .{type(error).__name__}: "):
        store(replace(small_graph, path=tmp_path / "graph"), file="io_uring")
    assert [entry.name for entry in tmp_path.iterdir()] == ["graph"]


def test_full_disk_is_unsupported(small_graph, bolt, tmp_path):
    def full(path, rows):
        raise OSError(28, "No space left on device")

    bolt.numpy_save_aligned = full
    with pytest.raises(UnsupportedError, match=r"No space left on device.; free some space"):
        store(replace(small_graph, path=tmp_path / "graph"), file="mmap")
    with pytest.raises(UnsupportedError, match="No such file or directory"):
        store(replace(small_graph, path=tmp_path / "absent" / "graph"), file="mmap")


def test_defaults_keep_their_cells():
    assert BoltGather().resolved("cuda").plain() == {"name": "graphbolt"}
    assert BoltGather(file="io_uring", cache_gib=2).plain() == {
        "name": "graphbolt", "file": "io_uring", "cache_gib": 2.0,
    }  # fmt: skip
    shared = {f: BoltGather(file=f).shared("cuda") for f in ("none", *METHODS)}
    assert shared == {"none": ("features",), "io_uring": (), "mmap": ()}


def test_cache_needs_a_file():
    with pytest.raises(UnsupportedError, match="give file=io_uring or mmap, or cache_gib=0"):
        BoltGather(cache_gib=1).resolved("cuda")
    with pytest.raises(UsageError, match="file"):
        BoltGather(file="gpu")
