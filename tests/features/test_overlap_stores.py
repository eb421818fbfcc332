"""Match and window: the table's rows bit by bit for hundreds of steps, and what is loaded."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gnnbench.core.cell import Cell
from gnnbench.core.counters import LOCK_TIME, Counts
from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.core.job import Job
from gnnbench.features import Cache, Match, Uva, Window, window
from gnnbench.features.base import RowStore
from gnnbench.kernels.access import PAGE_ORDERED, READERS
from gnnbench.kernels.reference import features as reference

NODES = 60


def batch(ids, dtype=torch.int32):
    return SimpleNamespace(input_nodes=torch.as_tensor(ids, dtype=dtype))


def made(spec, table):
    """A store over a table that stands for a graph's, and what it counts in rows."""
    graph = SimpleNamespace(name="t", features=table, num_nodes=table.shape[0])
    store = spec.build(Job(Cell("e", "s", "t", ""), graph, Counts()))
    row = table.shape[1] * table.element_size()

    def counted():
        rows = store.job.counts.rows()
        return {where: n // row for _, name, where, n in rows if name == "feature_bytes"}

    return store, counted


def table(dtype=torch.float32, width=7):
    """Rows whose bits are any, infinities and not-a-numbers among them."""
    bits = torch.Generator().manual_seed(1)
    size = NODES * width * dtype.itemsize
    raw = torch.randint(0, 256, (size,), dtype=torch.uint8, generator=bits)
    return raw.view(dtype).view(NODES, width)


def same(rows, right):
    return rows.dtype is right.dtype and torch.equal(
        rows.contiguous().view(torch.uint8), right.contiguous().view(torch.uint8)
    )


def test_the_papers_example():
    """FastGL Fig. 6: of the second batch only nodes 10 and 12 are loaded."""
    store, counted = made(Match(), table())
    store.load(batch([0, 1, 2, 3, 4, 5])).fill_(7)  # to tell the rows that are kept
    assert counted() == {"host": 6, "reused": 0}
    rows = store.load(batch([0, 3, 4, 10, 12]))
    assert (rows[:3] == 7).all() and same(rows[3:], table()[[10, 12]])
    assert counted() == {"host": 8, "reused": 3}


def test_match_serves_right_rows_after_a_batch_that_it_refused():
    """Slots set by the refused batch have no rows."""
    store, _ = made(Match(), torch.arange(60.0)[:, None].repeat(1, 3))
    for ids in ([0, 1, 2, 3], [10, 11, 2, 60], [5, 6, 3, 2], [10, 11, 7, 8], [7, 10, 0, 5]):
        if 60 in ids:
            with pytest.raises(UsageError, match="ids holds 60 at position 3"):
                store.load(batch(ids))
        else:
            assert store.load(batch(ids))[:, 0].tolist() == ids


def test_over_another_store_that_one_is_asked_for_no_others():
    store, counted = made(Match(table=Cache(policy="random", ratio=0.5)), table())
    store.prepare(lambda epoch: iter([]))
    asked = []
    below = store._fallback.fetch
    store._fallback.fetch = lambda ids: asked.append(ids.tolist()) or below(ids)
    for ids in [0, 1, 2, 3, 4, 5], [0, 3, 4, 10, 12]:
        assert same(store.load(batch(ids)), table()[ids])
    assert asked == [[0, 1, 2, 3, 4, 5], [10, 12]]
    assert counted()["reused"] == 3


@pytest.mark.parametrize("ids", [torch.int32, torch.int64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("width", [1, 7, 128])
def test_match_for_hundreds_of_steps(width, dtype, ids):
    """Rows are the table's in every step; what is loaded is the next batch less the last."""
    features = table(dtype, width)
    store, counted = made(Match(), features)
    draw, last, loaded, reused = torch.Generator().manual_seed(5), set(), 0, 0
    for step in range(300):
        some = torch.randperm(NODES, generator=draw)
        some = some[: int(torch.randint(0, NODES, (1,), generator=draw))]
        if step % 50 == 49:
            store.forget()
            last = set()
        rows = store.load(batch(some, ids))
        assert same(rows, features[some])
        found = set(some.tolist())
        loaded, reused, last = loaded + len(found - last), reused + len(found & last), found
        assert counted() == {"host": loaded, "reused": reused}
    store.close()


@given(
    st.lists(st.lists(st.integers(0, NODES - 1), unique=True), min_size=1, max_size=12),
    st.integers(1, 5),
)
@settings(max_examples=60)
def test_a_windows_rows_are_loaded_once(batches, length):
    features = table()
    store, counted = made(Window(window=length), features)
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


def test_a_batch_that_was_not_announced_is_a_window_by_itself():
    features = table(torch.float16, 3)
    store, counted = made(Window(), features)
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


def test_the_memory_of_the_largest_window_is_told():
    """The union's ids, its rows in a buffer with room for 5, and 8 bytes for every 32 nodes."""
    features = table(torch.float16, 3)
    store, _ = made(Window(window=2), features)
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
    """Rows are the table's in every step; windows of any length, empty batches among them."""
    features = table(dtype, width)
    store, counted = made(Window(window=8), features)
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
def reads_itself(monkeypatch):
    """A store whose table a GPU would read, on the CPU: windows hold the rows of batches."""

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


def test_a_window_that_holds_the_rows_of_its_batches(reads_itself):
    """Rows, and what is counted once it is asked; an empty batch and one not announced."""
    features = table(torch.bfloat16, 5)
    store = reads_itself(features, 3)
    first = [batch([4, 2, 9]), batch([]), batch([9, 0])]
    for batches in first, [batch([1])]:
        store.announce(batches)
        for one in batches:
            assert same(store.load(one), features[one.input_nodes.long()])
    stranger = batch([2, 5], torch.int64)
    assert same(store.load(stranger), features[[2, 5]])
    assert same(store.load(stranger), features[[2, 5]])
    rows = {(name, where): n for _, name, where, n in store.job.counts.rows()}
    assert rows == {
        ("feature_bytes", "zero_copy"): 7 * 10, ("feature_bytes", "reused"): 10,
        ("calls", "zero_copy"): 3, ("calls", "reused"): 3,
        ("window_bytes", ""): 6 * 10,  # a quarter more than the largest window takes
    }  # fmt: skip
    store.job.counts.clear()
    assert store.job.counts.rows() == []
    store.close()


@pytest.mark.parametrize("max_in_flight,windows", [(1, 1), (3, 2), (4, 3), (6, 4)])
def test_rows_of_windows_in_flight_stay_valid(reads_itself, max_in_flight, windows):
    """Not one buffer more than that takes; rows that were not announced lie apart."""
    features = table(torch.float32, 4)
    store = reads_itself(features, 2, max_in_flight=max_in_flight)
    assert len(store._ring.reserve(0)) == windows
    served = []
    for ids in [[1, 2], [3]], [[4], [5, 1]], [[6, 7, 8], []], [[9], [0]]:
        batches = [batch(one) for one in ids]
        store.announce(batches)
        for one in batches:
            served.append((store.load(one), features[one.input_nodes.long()]))
            assert all(same(*pair) for pair in served[-max_in_flight:])
    kept = served[-1]
    for _ in range(max_in_flight):
        store.load(batch([2, 3]))
    assert same(*kept)
    store.close()


def test_what_the_store_below_takes_is_told():
    store, _ = made(Window(), table())
    assert store.prepare(None) == {}
    store._fallback.prepare = lambda footprint: {LOCK_TIME: 0.25}
    assert store.prepare(None) == {LOCK_TIME: 0.25}


def test_what_may_be_asked_for():
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
