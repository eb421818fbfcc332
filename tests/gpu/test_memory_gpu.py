"""Memory by component on a GPU, compared with torch's allocator."""

import gc

import compose
import pytest
import torch

from gnnbench.datasets.prepare import load_dataset
from gnnbench.measure.timeline import Timeline
from gnnbench.systems.runtime import epoch_auditor

pytestmark = pytest.mark.gpu

STORES = {
    "host": {}, "uva": {"features": "uva"}, "gpu": {"features": "gpu"},
    "cache": {"features": "cache", "features.ratio": 0.25},
    "match": {"features": "match", "features.table": "uva"},
    "prefetch": {"features": "uva", "schedule": "prefetch"},
    "fused": {"sampler": "fused-map", "features": "uva"},
}  # fmt: skip
ROUNDED = 512  # bytes that torch's allocator rounds a tensor up to
POOLED = 1 << 20  # larger blocks are not split if less than this would remain


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return load_dataset("rmat@16x12x128", root=tmp_path_factory.mktemp("rmat"))


@pytest.fixture(autouse=True)
def no_garbage():
    """Free the systems of earlier tests: the peak starts at what is allocated."""
    gc.collect()


def inspect(graph, settings, system="baseline"):
    """An inspected system, its components at the peak, their maxima, and its host memory."""
    made = compose.make(
        graph, system, settings, setup=False, device="cuda", batch_size=1024, hidden=64,
        fanouts=(10, 10, 5), max_batches=6,
    )  # fmt: skip
    peaks = {"": {}, "held": {}}, {}
    for fact in made.memory(1 << 30):
        if fact["name"] == "memory_bytes":
            peaks[0][fact["where"]][fact["stage"]] = fact["value"]
        else:
            peaks[1][fact["stage"]] = fact["value"]
    return made, peaks[0][""], peaks[1], peaks[0]["held"]


@pytest.mark.parametrize("name", STORES)
def test_components_add_up_to_the_peak_of_the_allocator(name, graph):
    gc.collect()
    of_others = torch.cuda.memory_allocated()
    system, sizes, most, host_sizes = inspect(graph, STORES[name])
    peak = sizes.pop("epoch")
    assert sum(sizes.values()) == peak and all(size >= 0 for size in sizes.values())
    assert all(sizes[c] <= most[c] for c in sizes if c != "other")
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    compose.timed(system, 1 << 30)
    again = torch.cuda.max_memory_allocated() - of_others
    report = system.audit(1 << 30)
    assert report.ok, report.reason
    # The same epoch; threads of a schedule may keep a batch more or less.
    assert peak == pytest.approx(again, rel=0.25 if name == "prefetch" else 0.05, abs=POOLED)
    table = graph.features.nbytes
    assert host_sizes == ({} if name == "gpu" else {"features": table})
    system.close()


def test_known_components_are_reported(graph):
    tables = graph.indptr.nbytes + graph.indices.nbytes
    system, sizes, most, _ = inspect(graph, STORES["gpu"])
    assert sizes["topology"] == tables and sizes["labels"] == graph.labels.nbytes
    assert graph.features.nbytes <= most["features"] <= graph.features.nbytes + 16 * POOLED
    parameters = [p.nbytes for p in system.trainer.model.parameters()]
    assert sizes["model"] == 5 * sum(parameters)  # Adam's step counts are on the host
    assert most["setup"] >= tables + graph.features.nbytes + graph.labels.nbytes
    assert most["rows"] > 0 and most["blocks"] > 0 and most["activations"] > most["rows"] // 8
    system.close()
    cached, _, most, _ = inspect(graph, STORES["cache"])
    assert graph.features.nbytes // 4 <= most["features"]
    cached.close()


def test_match_keeps_one_batch_of_rows_and_a_table_of_ids(graph):
    """FastGL, section 4.1: no more than two batches' rows at a time."""
    uva, _, plain, _ = inspect(graph, STORES["uva"])
    match, _, kept, _ = inspect(graph, STORES["match"])
    ids = 8 * graph.num_nodes
    more = kept["features"] - plain.get("features", 0)
    assert ids <= more <= ids + 2 * kept["rows"] + 4 * POOLED
    assert kept["rows"] == plain["rows"]
    uva.close()
    match.close()


def test_dgl_is_inspected_with_the_same_allocator(graph):
    system, sizes, most, _ = inspect(graph, {}, "dgl")
    peak = sizes.pop("epoch")
    assert sum(sizes.values()) == peak and sizes["topology"] > 0 and most["blocks"] > ROUNDED
    system.close()


@pytest.mark.parametrize("until", ["sample", "memory_io", "compute"])
def test_memory_of_an_audit_does_not_count_for_the_peak(until, graph, monkeypatch):
    """Neither for the audited epoch nor for a later one."""
    gc.collect()
    ballast, others = 1 << 28, torch.cuda.memory_allocated()
    check_batches = epoch_auditor.check_batches

    def heavy(*given):
        torch.empty(ballast, dtype=torch.uint8, device="cuda")
        return check_batches(*given)

    monkeypatch.setattr(epoch_auditor, "check_batches", heavy)
    system = compose.make(graph, device="cuda", batch_size=512, max_batches=3, until=until)
    first, second = (compose.run(system, epoch) for epoch in range(2))
    assert first.ok and second.ok
    assert others < first.peak_alloc_bytes <= second.peak_alloc_bytes < others + ballast
    system.close()


@pytest.mark.gpu(count=2)
def test_memory_of_an_inspection_does_not_count_for_the_peak_of_ranks(graph):
    """Ranks report the same peak of an epoch before and after its batches are inspected."""
    settings = {"schedule": "data-parallel", "schedule.ranks": 2}
    system = compose.make(
        graph, settings=settings, device="cuda", batch_size=4096, fanouts=(10, 10), max_batches=2,
        until="memory_io",
    )  # fmt: skip

    def allocated():
        report = compose.run(system, 5)
        assert report.ok, report.reason
        counts = compose.counted(report)
        return [counts["schedule", "rank_peak_bytes", rank] for rank in "01"]

    before = allocated()
    assert min(before) > 1 << 20
    timeline = Timeline.on("cuda")
    timeline.start()
    assert system.verify(6, timeline).ok
    timeline.stop()
    assert allocated() == pytest.approx(before, rel=0.02)
    system.close()
