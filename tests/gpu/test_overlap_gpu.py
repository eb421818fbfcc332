"""Match, window and Greedy Reorder on a GPU: rows, loaded bytes, and the same work as on a CPU."""

from types import SimpleNamespace

import compose
import pytest
import torch
from compose import counted, run

from gnnbench.core.cell import Cell
from gnnbench.core.counters import Counts
from gnnbench.core.job import Job
from gnnbench.features import Cache, Host, Match, Uva, Window
from gnnbench.kernels import match
from gnnbench.kernels.match import match_degrees, overlaps
from gnnbench.measure.timeline import Timeline

pytestmark = pytest.mark.gpu

WHERE = {"host": "host_copy", "uva": "zero_copy"}
SMALL = {"batch_size": 20, "fanouts": (3, 2)}
NODES = 500


@pytest.mark.parametrize("width", [1, 7, 128])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("path", ["host", "uva"])
def test_match_for_hundreds_of_steps(path, dtype, width):
    bits = torch.Generator().manual_seed(1)
    raw = torch.randint(
        0, 256, (NODES * width * dtype.itemsize,), dtype=torch.uint8, generator=bits
    )
    table = raw.view(dtype).view(NODES, width)
    graph = SimpleNamespace(name="t", features=table, num_nodes=NODES)
    job = Job(Cell("e", "s", "t", "", device="cuda"), graph, Counts())
    store = Match(table=path).build(job)
    last, loaded = set(), 0
    for _ in range(300):
        some = torch.randperm(NODES, generator=bits)
        some = some[: int(torch.randint(1, NODES, (1,), generator=bits))]
        rows = store.load(SimpleNamespace(input_nodes=some.int().cuda())).cpu()
        assert torch.equal(rows.view(torch.uint8), table[some].view(torch.uint8))
        loaded, last = loaded + len(set(some.tolist()) - last), set(some.tolist())
    known = {where: n for _, name, where, n in job.counts.rows() if name == "feature_bytes"}
    assert known[WHERE[path]] == loaded * width * dtype.itemsize
    store.close()


@pytest.mark.parametrize("ratio", [0.0, 0.07, 0.5, 1.0])
@pytest.mark.parametrize("access", ["page-ordered", "naive"])
def test_match_over_a_cache_serves_equal_rows_and_counts(access, ratio):
    """In a single pass (page-ordered), by masks (naive), and by the published masks (host)."""
    bits = torch.Generator().manual_seed(1)
    table = torch.randn(NODES, 9, generator=bits)
    graph = SimpleNamespace(
        name="t", features=table, num_nodes=NODES, num_edges=NODES, indptr=torch.arange(NODES + 1),
        train_idx=torch.arange(NODES), indices=torch.arange(NODES, dtype=torch.int32),
    )  # fmt: skip
    counts, stores = [Counts(), Counts()], []
    for counted_by, innermost in zip(counts, (Uva(access=access), Host()), strict=True):
        job = Job(Cell("e", "s", "t", "", device="cuda"), graph, counted_by)
        cache = Cache(policy="degree", ratio=ratio, table=innermost)
        stores.append(Match(table=cache).resolved("cuda").build(job))
        stores[-1].prepare(lambda epoch: iter([]))
    for _ in range(50):
        some = torch.randperm(NODES, generator=bits)
        some = some[: int(torch.randint(1, NODES, (1,), generator=bits))]
        for store in stores:
            rows = store.load(SimpleNamespace(input_nodes=some.int().cuda()))
            assert torch.equal(rows.cpu(), table[some])
    served = [
        {where: n for _, name, where, n in one.rows()
         if name == "feature_bytes" and n}
        for one in counts
    ]  # fmt: skip
    read = [
        one.pop(where, 0) for one, where in zip(served, ("zero_copy", "host_copy"), strict=True)
    ]
    assert served[0] == served[1] and read[0] == read[1]
    for store in stores:
        store.close()


@pytest.mark.parametrize("order", [{}, {"order": "greedy", "order.window": 3}], ids=["", "greedy"])
@pytest.mark.parametrize(
    "store,how",
    [
        ("match", {"table": "host"}), ("match", {"table": "uva"}), ("window", {"table": "host"}),
        ("window", {"table": "uva", "holds": "union"}), ("window", {"table": "uva"}),
    ],
)  # fmt: skip
def test_epoch_equals_the_cpu(store, how, order, small_graph):
    """Equal seeds draw equal batches: digests and loaded rows equal those of a CPU."""
    settings, path = {"features": store, **order}, how["table"]
    here = compose.make(small_graph, settings=settings, until="memory_io", **SMALL)
    there = compose.make(
        small_graph, until="memory_io", device="cuda", **SMALL,
        settings={**settings, **{f"features.{k}": v for k, v in how.items()},
                  "sampler.pick": "floyd"},
    )  # fmt: skip
    assert there.check().ok
    for epoch in range(3):
        right, actual = here.verify(epoch, Timeline.on("cpu")), there.verify(epoch, clock())
        assert actual.ok, actual.reason
        assert actual.digest == right.digest
        one, other = counted(right), counted(actual)
        bytes_of = ("features", "feature_bytes")
        assert other[*bytes_of, WHERE[path]] == one[*bytes_of, "host"]
        assert other[*bytes_of, "reused"] == one[*bytes_of, "reused"]
    assert run(there, 7).ok
    alone, fault = there.probe([0, 1])
    assert fault == "" and min(map(min, alone.values())) > 0
    there.close()


def clock():
    timeline = Timeline.on("cuda")
    timeline.start()
    return timeline


@pytest.mark.parametrize("sizes", [[100 * (i + 1) for i in range(30)], [0, 7, 0, 900], [5000] * 3])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_overlaps_equal_the_cpu(sizes, dtype):
    draw = torch.Generator().manual_seed(7)
    batches = [torch.randperm(5000, generator=draw)[:n].to(dtype) for n in sizes]
    here, there = overlaps(batches), overlaps([b.cuda() for b in batches])
    assert torch.equal(here, there)
    assert torch.equal(match_degrees(here), match_degrees(there))


@pytest.mark.parametrize("tile_bytes", [1, 40_000_000, 1 << 31])
def test_overlaps_in_tiles_of_any_size(tile_bytes, monkeypatch):
    """More batches than bits of a word, hubs in all of them, sparse ids."""
    monkeypatch.setattr(match, "TILE_BYTES", tile_bytes)
    draw = torch.Generator().manual_seed(8)
    nodes = torch.randint(0, 1 << 40, (30_000,), generator=draw).unique()
    hubs = nodes[:2500]
    batches = []
    for _ in range(150):
        some = nodes[2500:][torch.randperm(nodes.numel() - 2500, generator=draw)[:1500]]
        batches.append(torch.cat([some, hubs]))
    actual = overlaps([b.cuda() for b in batches])
    assert torch.equal(actual, overlaps(batches))
    assert int(actual.min()) >= 2500


def test_overlaps_of_a_thousand_batches():
    """Pairs are compared with Python sets."""
    draw = torch.Generator(device="cuda").manual_seed(9)
    batches = [
        torch.randint(0, 3_000_000, (30_000,), generator=draw, device="cuda").unique().int()
        for _ in range(1000)
    ]
    actual = overlaps(batches)
    assert torch.equal(actual, actual.T)
    assert actual.diagonal().tolist() == [b.numel() for b in batches]
    for i, j in ((0, 1), (0, 999), (500, 731), (998, 999)):
        shared = set(batches[i].tolist()) & set(batches[j].tolist())
        assert int(actual[i, j]) == len(shared)


def window_store(features, **settings):
    """A window store over a table without a graph, and its counts of rows by path."""
    graph = SimpleNamespace(name="t", features=features, num_nodes=features.shape[0])
    job = Job(Cell("e", "s", "t", "", device="cuda"), graph, Counts())
    store = Window(**settings).resolved("cuda").build(job)
    row = features.shape[1] * features.element_size()

    def counted():
        rows = job.counts.rows()
        return {where: n // row for _, name, where, n in rows if name == "feature_bytes"}

    return store, counted


WAYS = [("host", "union"), ("uva", "union"), ("uva", "batches")]


@pytest.mark.parametrize("ids", [torch.int32, torch.int64])
@pytest.mark.parametrize("width", [1, 7, 128])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("path,holds", WAYS)
def test_windows_for_hundreds_of_steps(path, holds, dtype, width, ids):
    """Windows of any length, a shorter one at the end of each epoch, and empty batches."""
    bits = torch.Generator().manual_seed(2)
    size = NODES * width * dtype.itemsize
    raw = torch.randint(0, 256, (size,), dtype=torch.uint8, generator=bits)
    features = raw.view(dtype).view(NODES, width)
    store, counted = window_store(features, table=path, holds=holds)
    loaded = served = steps = 0
    for nth in range(60):
        length = 8 if nth % 10 else int(torch.randint(1, 8, (1,), generator=bits))
        batches = []
        for _ in range(length):
            some = torch.randperm(NODES, generator=bits)
            some = some[: int(torch.randint(0, NODES, (1,), generator=bits))]
            batches.append((some, SimpleNamespace(input_nodes=some.to(ids).cuda())))
        if nth % 10 == 0:
            store.forget()
        store.announce([one for _, one in batches])
        for some, one in batches:
            rows = store.load(one)
            assert rows.dtype is dtype and rows.shape == (some.numel(), width)
            assert torch.equal(rows.cpu().view(torch.uint8), features[some].view(torch.uint8))
        loaded += len({i for some, _ in batches for i in some.tolist()})
        served += sum(some.numel() for some, _ in batches)
        steps += length
    assert steps > 400
    assert counted() == {WHERE[path]: loaded, "reused": served - loaded}
    store.close()


@pytest.mark.parametrize("path,holds", WAYS)
def test_window_is_fetched_once(small_graph, path, holds):
    features = small_graph.features
    store, counted = window_store(features, table=path, holds=holds, window=2)
    one, other = (SimpleNamespace(input_nodes=torch.tensor(i).cuda()) for i in ([4, 2], [9, 4]))
    store.announce([one, other])
    assert torch.equal(store.load(one).cpu(), features[[4, 2]])
    assert torch.equal(store.load(other).cpu(), features[[9, 4]])
    assert counted() == {WHERE[path]: 3, "reused": 1}
    stranger = SimpleNamespace(input_nodes=torch.tensor([4]))  # on the host, not announced
    assert torch.equal(store.load(stranger).cpu(), features[[4]])
    assert counted() == {WHERE[path]: 4, "reused": 1}
    store.close()


@pytest.mark.parametrize("path,holds", WAYS[1:])
def test_memory_of_a_window_is_reported(small_graph, path, holds):
    """To the byte."""
    features = small_graph.features
    store, _ = window_store(features, table=path, holds=holds, window=2)
    given = [torch.tensor(i, dtype=torch.int32).cuda() for i in ([4, 2], [9, 4])]
    batches = [SimpleNamespace(input_nodes=ids) for ids in given]
    store.announce(batches)
    for one in batches:
        store.load(one)
    known = {name: n for _, name, _, n in store.job.counts.rows()}
    row, words = 24 * 4, 8 * -(-400 // 32)
    with_room = 5 * row  # a quarter more than requested
    assert known["window_bytes"] == (with_room if holds == "batches" else 3 * row + 3 * 4 + words)
    store.close()


def test_window_with_batches_does_not_block_the_host(small_graph):
    store, counted = window_store(small_graph.features, table="uva", holds="batches", window=2)
    ids = [torch.tensor(i).cuda() for i in ([4, 2], [9, 4])]
    batches = [SimpleNamespace(input_nodes=one) for one in ids]
    for asleep in (False, True):  # first calls have loaded and locked everything
        torch.cuda.synchronize()
        if asleep:
            torch.cuda._sleep(1_000_000_000)
        store.announce(batches)
        rows = [store.load(one) for one in batches]
        if asleep:
            assert not torch.cuda.current_stream().query()
    for one, actual in zip(ids, rows, strict=True):
        assert torch.equal(actual.cpu(), small_graph.features[one.cpu()])
    assert counted() == {"zero_copy": 6, "reused": 2}
    store.close()
