"""The stores ``match`` and ``window``: rows over hundreds of batches, and loaded rows."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from stores import batch, same

from gnnbench.core.cell import Cell
from gnnbench.core.counters import LOCK_TIME, Counts
from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.core.job import Job
from gnnbench.features import Cache, Match, Uva, Window, window
from gnnbench.features.base import RowStore
from gnnbench.kernels.access import PAGE_ORDERED, READERS
from gnnbench.kernels.reference import features as reference

NODES = 60


def store_over(spec, table):
    """A store over a table, and a function that returns its counters in rows."""
    graph = SimpleNamespace(name="t", features=table, num_nodes=table.shape[0])
    store = spec.build(Job(Cell("e", "s", "t", ""), graph, Counts()))
    row = table.shape[1] * table.element_size()

    def counted():
        rows = store.job.counts.rows()
        return {where: n // row for _, name, where, n in rows if name == "feature_bytes"}

    return store, counted


def table(dtype=torch.float32, width=7):
    """Rows with random bits, including infinities and NaNs."""
    bits = torch.Generator().manual_seed(1)
    size = NODES * width * dtype.itemsize
    raw = torch.randint(0, 256, (size,), dtype=torch.uint8, generator=bits)
    return raw.view(dtype).view(NODES, width)


def test_match_loads_only_new_nodes():
    """FastGL Fig. 6: only nodes 10 and 12 of the second batch are loaded."""
    store, counted = store_over(Match(), table())
    store.load(batch([0, 1, 2, 3, 4, 5])).fill_(7)  # marks reused rows
    assert counted() == {"host": 6, "reused": 0}
    rows = store.load(batch([0, 3, 4, 10, 12]))
    assert (rows[:3] == 7).all() and same(rows[3:], table()[[10, 12]])
    assert counted() == {"host": 8, "reused": 3}


def test_match_is_correct_after_a_refused_batch():
    """Slots set by the refused batch have no rows."""
    store, _ = store_over(Match(), torch.arange(60.0)[:, None].repeat(1, 3))
    for ids in ([0, 1, 2, 3], [10, 11, 2, 60], [5, 6, 3, 2], [10, 11, 7, 8], [7, 10, 0, 5]):
        if 60 in ids:
            with pytest.raises(UsageError, match="ids holds 60 at position 3"):
                store.load(batch(ids))
        else:
            assert store.load(batch(ids))[:, 0].tolist() == ids


def test_match_requests_only_new_nodes_from_its_table():
    store, counted = store_over(Match(table=Cache(policy="random", ratio=0.5)), table())
    store.prepare(lambda epoch: iter([]))
    requested = []
    below = store._fallback.fetch
    store._fallback.fetch = lambda ids: requested.append(ids.tolist()) or below(ids)
    for ids in [0, 1, 2, 3, 4, 5], [0, 3, 4, 10, 12]:
        assert same(store.load(batch(ids)), table()[ids])
    assert requested == [[0, 1, 2, 3, 4, 5], [10, 12]]
    assert counted()["reused"] == 3


@pytest.mark.parametrize("ids", [torch.int32, torch.int64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("width", [1, 7, 128])
def test_match_for_hundreds_of_steps(width, dtype, ids):
    """Rows equal the table; loaded rows are those of a batch not in the previous one."""
    features = table(dtype, width)
    store, counted = store_over(Match(), features)
    draw, last, loaded, reused = torch.Generator().manual_seed(5), set(), 0, 0
    for step in range(300):
        some = torch.randperm(NODES, generator=draw)
        some = some[: int(torch.randint(0, NODES, (1,), generator=draw))]
        if step % 50 == 49:
            store.forget()
            last = set()
        rows = store.load(batch(some, ids))
        assert same(rows, features[some])
        current = set(some.tolist())
        loaded, reused, last = loaded + len(current - last), reused + len(current & last), current
        assert counted() == {"host": loaded, "reused": reused}
    store.close()


@given(
    st.lists(st.lists(st.integers(0, NODES - 1), unique=True), min_size=1, max_size=12),
    st.integers(1, 5),
)
@settings(max_examples=60)
def test_rows_of_a_window_are_loaded_once(batches, length):
    features = table()
    store, counted = store_over(Window(window=length), features)
    assert store.window == length
    drawn, loaded, served = [batch(ids) for ids in batches], 0, 0
    for nth, one in enumerate(drawn):
        if nth % length == 0:
            announced = drawn[nth : nth + length]
            store.announce(announced)
            loaded += len({i for b in announced for i in b.input_nodes.tolist()})
            served += sum(b.input_nodes.numel() for b in announced)
        assert same(store.load(one), features[one.input_nodes.long()])
        assert counted() == {"host": loaded, "reused": served - loaded}
    store.close()


def test_unannounced_batch_is_a_window_of_its_own():
    features = table(torch.float16, 3)
    store, counted = store_over(Window(), features)
    one, other = batch([4, 2]), batch([2, 9, 0])
    store.announce([one])
    assert same(store.load(other), features[[2, 9, 0]])
    assert same(store.load(one), features[[4, 2]])
    store.forget()
    assert same(store.load(one), features[[4, 2]])
    assert counted() == {"host": 7, "reused": 0}


def window_bytes(store):
    rows = store.job.counts.rows()
    return [n for stage, name, _, n in rows if (stage, name) == ("features", "window_bytes")]


def test_window_bytes_is_the_memory_of_the_largest_window():
    """Ids of the union, a buffer for 5 rows, and 8 bytes per 32 nodes."""
    features = table(torch.float16, 3)
    store, _ = store_over(Window(window=2), features)
    assert window_bytes(store) == []
    words = 8 * -(-NODES // 32)
    for ids in ([4, 2], [2, 9, 0]), ([1], []), ([5, 6], [6, 5]):
        batches = [batch(one) for one in ids]
        store.announce(batches)
        for one in batches:
            store.load(one)
    assert window_bytes(store) == [4 * 4 + 5 * 6 + words]
    store.job.counts.clear()
    store.load(batch([1], torch.int64))
    assert window_bytes(store) == [8 + 5 * 6 + words]
    store.job.counts.clear()
    assert window_bytes(store) == []


@pytest.mark.parametrize("ids", [torch.int32, torch.int64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("width", [1, 7, 128])
def test_windows_for_hundreds_of_steps(width, dtype, ids):
    """Windows of any length, including empty batches."""
    features = table(dtype, width)
    store, counted = store_over(Window(window=8), features)
    draw, loaded, served = torch.Generator().manual_seed(6), 0, 0
    for nth in range(60):
        batches = []
        for _ in range(int(torch.randint(1, 9, (1,), generator=draw))):
            some = torch.randperm(NODES, generator=draw)
            batches.append(batch(some[: int(torch.randint(0, NODES, (1,), generator=draw))], ids))
        if nth % 20 == 19:
            store.forget()
        store.announce(batches)
        for one in batches:
            assert same(store.load(one), features[one.input_nodes.long()])
        loaded += len({i for one in batches for i in one.input_nodes.tolist()})
        served += sum(one.input_nodes.numel() for one in batches)
        assert counted() == {"host": loaded, "reused": served - loaded}
    store.close()


@pytest.fixture
def fake_zero_copy_window(monkeypatch):
    """Makes CPU windows over a fake zero-copy table; windows hold the rows of batches."""

    class Read(RowStore):
        access = PAGE_ORDERED
        blocks = 5
        table = None

        def fetch(self, ids):
            raise AssertionError("a window reads the table itself")

    def gather_once(features, batches, distinct, out, blocks):
        assert blocks == 5
        rows, read = reference.gather_once(features, batches)
        distinct += read
        return out.copy_(rows)

    monkeypatch.setattr(window, "ZeroCopyGather", Read)
    monkeypatch.setattr(window, "gather_once", gather_once)

    def store(features, length, max_in_flight=1):
        graph = SimpleNamespace(name="t", features=features, num_nodes=features.shape[0])
        job = Job(Cell("e", "s", "t", ""), graph, Counts(), max_in_flight)
        under = Read(job)
        under.table = features
        return window.WindowStore(job, under, length, holds_batches=True)

    return store


def test_window_that_holds_rows_of_batches(fake_zero_copy_window):
    """Rows and counters, with an empty batch and an unannounced batch."""
    features = table(torch.bfloat16, 5)
    store = fake_zero_copy_window(features, 3)
    first = [batch([4, 2, 9]), batch([]), batch([9, 0])]
    for batches in first, [batch([1])]:
        store.announce(batches)
        for one in batches:
            assert same(store.load(one), features[one.input_nodes.long()])
    unannounced = batch([2, 5], torch.int64)
    assert same(store.load(unannounced), features[[2, 5]])
    assert same(store.load(unannounced), features[[2, 5]])
    rows = {(name, where): n for _, name, where, n in store.job.counts.rows()}
    assert rows == {
        ("feature_bytes", "zero_copy"): 7 * 10, ("feature_bytes", "reused"): 10,
        ("calls", "zero_copy"): 3, ("calls", "reused"): 3,
        ("window_bytes", ""): 6 * 10,  # a quarter more than the largest window
    }  # fmt: skip
    store.job.counts.clear()
    assert store.job.counts.rows() == []
    store.close()


@pytest.mark.parametrize("max_in_flight,windows", [(1, 1), (3, 2), (4, 3), (6, 4)])
def test_rows_of_windows_in_flight_stay_valid(fake_zero_copy_window, max_in_flight, windows):
    """With the minimal number of buffers; unannounced rows have separate memory."""
    features = table(torch.float32, 4)
    store = fake_zero_copy_window(features, 2, max_in_flight=max_in_flight)
    assert len(store._ring.reserve(0)) == windows
    served = []
    for ids in [[1, 2], [3]], [[4], [5, 1]], [[6, 7, 8], []], [[9], [0]]:
        batches = [batch(one) for one in ids]
        store.announce(batches)
        for one in batches:
            served.append((store.load(one), features[one.input_nodes.long()]))
            assert all(same(*pair) for pair in served[-max_in_flight:])
    last = served[-1]
    for _ in range(max_in_flight):
        store.load(batch([2, 3]))
    assert same(*last)
    store.close()


def test_setup_metrics_of_the_fallback_store_are_reported():
    store, _ = store_over(Window(), table())
    assert store.prepare(None) == {}
    store._fallback.prepare = lambda footprint: {LOCK_TIME: 0.25}
    assert store.prepare(None) == {LOCK_TIME: 0.25}


def test_options_of_match_and_window():
    assert Match().resolved("cpu") == Match(table="host")
    assert Window().resolved("cpu") == Window(table="host", holds="union")
    assert Window().resolved("cuda") == Window(table=Uva(blocks=READERS), holds="batches")
    assert Window(holds="union").resolved("cuda").holds == "union"
    assert Window(table="host").resolved("cuda").holds == "union"
    for device, where in (("cpu", "default"), ("cuda", "host")):
        with pytest.raises(UnsupportedError, match="holds=batches needs a table that the GPU"):
            Window(table=where, holds="batches").resolved(device)
    assert Uva().shared("cuda") == ("features",) and Uva(memory="vmm").shared("cuda") == ()
    assert Match(table="uva").resolved("cuda").shared("cuda") == ("features",)
    assert Match().shared("cuda") == ("features",) and Match().shared("cpu") == ()
    with pytest.raises(UnsupportedError, match=r"features.table=uva needs a GPU"):
        Window(table="uva").resolved("cpu")
    with pytest.raises(UsageError, match=r"'window'.window cannot be 0; it is 1 to 1024"):
        Window(window=0)
    assert replace(Window(), window=16).plain()["window"] == 16
