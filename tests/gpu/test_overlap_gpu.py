"""Match, window and Greedy Reorder on a GPU: bits, what is loaded, the same work as on a CPU."""

from types import SimpleNamespace

import compose
import pytest
import torch
from compose import counted, run

from gnnbench.cell import Cell
from gnnbench.measure.timeline import Timeline
from gnnbench.ops.match import match_degrees, overlaps
from gnnbench.stages.counts import Counts
from gnnbench.stages.features import Match, Window
from gnnbench.stages.job import Job

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


@pytest.mark.parametrize("order", [{}, {"order": "greedy", "order.window": 3}], ids=["", "greedy"])
@pytest.mark.parametrize("path", ["host", "uva"])
@pytest.mark.parametrize("store", ["match", "window"])
def test_an_epoch_is_the_cpus(store, path, order, small_graph):
    """The same numbers draw the same batches: digests and rows loaded are those of a CPU."""
    settings = {"features": store, **order}
    here = compose.make(small_graph, settings=settings, until="memory_io", **SMALL)
    there = compose.make(
        small_graph, settings={**settings, "features.table": path, "sampler.pick": "floyd"},
        until="memory_io", device="cuda", **SMALL,
    )  # fmt: skip
    assert there.check().ok
    for epoch in range(3):
        right, found = here.verify(epoch, Timeline.on("cpu")), there.verify(epoch, clock())
        assert found.ok, found.reason
        assert found.digest == right.digest
        one, other = counted(right), counted(found)
        bytes_of = ("features", "feature_bytes")
        assert other[*bytes_of, WHERE[path]] == one[*bytes_of, "host"]
        assert other[*bytes_of, "reused"] == one[*bytes_of, "reused"]
    assert run(there, 7).ok
    alone, fault = there.probe([0, 1])
    assert fault == "" and min(alone.values()) > 0
    there.close()


def clock():
    timeline = Timeline.on("cuda")
    timeline.start()
    return timeline


def test_overlaps_are_the_hosts():
    batches = [torch.randperm(5000)[: 100 * (i + 1)] for i in range(30)]
    here, there = overlaps(batches), overlaps([b.cuda() for b in batches])
    assert torch.equal(here, there)
    assert torch.equal(match_degrees(here), match_degrees(there))


def test_a_window_is_fetched_once(small_graph):
    graph = SimpleNamespace(name="t", features=small_graph.features, num_nodes=400)
    job = Job(Cell("e", "s", "t", "", device="cuda"), graph, Counts())
    store = Window(window=2).build(job)
    one, other = (SimpleNamespace(input_nodes=torch.tensor(i).cuda()) for i in ([4, 2], [9, 4]))
    store.announce([one, other])
    assert torch.equal(store.load(one).cpu(), small_graph.features[[4, 2]])
    assert torch.equal(store.load(other).cpu(), small_graph.features[[9, 4]])
    rows = {where: n for _, name, where, n in job.counts.rows() if name == "feature_bytes"}
    assert rows == {"host_copy": 3 * 24 * 4, "reused": 24 * 4}
    store.close()
